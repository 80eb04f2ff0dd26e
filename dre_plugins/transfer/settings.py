"""The settings of a meta-training, validated where they are built."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dre_plugins.engine.settings import LOSS_NAMES, require


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaTrainingSettings:
    """Describe a meta-training.

    Args:
        n_steps: Adam steps.
        learning_rate: Learning rate of the first step; it anneals to zero by a cosine.
        loss: Name of a loss in `engine.losses.LOSSES`.
        n_lists: Lists B that each member sees in one step.
        list_length: Entries L of a query; shorter lists are taken whole.
        max_support: Largest support S; sizes are drawn uniformly from 0 to S, and at most half of
            a list. It counts only if the scorers have a context.
        validate_every: Steps between two validations.
        patience: Validations without a better loss after which training ends.

    Raises:
        ValueError: If a setting is invalid.
    """

    n_steps: int = 4000
    learning_rate: float = 0.01
    loss: str = "weighted-list-mle"
    n_lists: int = 4
    list_length: int = 100
    max_support: int = 40
    validate_every: int = 250
    patience: int = 20

    def __post_init__(self) -> None:
        for name in ("n_steps", "n_lists", "max_support", "validate_every", "patience"):
            value = getattr(self, name)
            require(value >= 1, name, value, "at least 1")
        require(self.learning_rate > 0, "learning_rate", self.learning_rate, "positive")
        require(self.loss in LOSS_NAMES, "loss", self.loss, f"one of {LOSS_NAMES}")
        require(self.list_length >= 2, "list_length", self.list_length, "at least 2")

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON-ready values."""
        return asdict(self)
