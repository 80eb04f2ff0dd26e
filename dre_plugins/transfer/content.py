"""What a prior is made of: scorers, search space, best configurations and a card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from dre_plugins.engine.settings import require
from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.space import SearchSpace
from dre_plugins.space.base import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """Say where a prior comes from.

    Args:
        name: Short name.
        description: One sentence.
        tasks: Names of the tasks that it was meta-trained on.
        n_evaluations: Evaluations of these tasks.
        source: Where they come from.
        licence: Licence of the tasks, and hence of the prior.
        created: Date, ISO 8601.
        rebuild: Command that makes the prior anew; empty if there is none.
        defaults: Values of the prior's parameters that a study does not tune, by name.
        training: Settings of the meta-training, JSON-ready.
        validation: Figures, by name.
    """

    name: str
    description: str = ""
    tasks: tuple[str, ...] = ()
    n_evaluations: int = 0
    source: str = ""
    licence: str = ""
    created: str = ""
    rebuild: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    validation: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("defaults", "training", "validation"):
            value = getattr(self, name)
            is_mapping = isinstance(value, Mapping) and all(isinstance(key, str) for key in value)
            require(is_mapping, name, value, "a mapping of names")

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Card:
        """Rebuild a card from its dictionary, without entries that this version does not know."""
        names = {entry.name for entry in fields(cls)}
        values = {name: value for name, value in state.items() if name in names}
        return cls(**{**values, "tasks": tuple(values.get("tasks", ()))})


@dataclass(frozen=True, slots=True, eq=False)
class PriorContent:
    """Hold what meta-training yields and the file of a prior contains; see `Prior` for each."""

    ensemble: DeepRankingEnsemble = field(repr=False)  # thousands of weights
    space: SearchSpace
    card: Card
    favourites: Array = field(repr=False)
    portfolio: Array | None = field(default=None, repr=False)
