"""The settings of a meta-training, and its state, which can be saved and resumed.

One safetensors file holds weights, moments of Adam, the best weights and the state of the random
generator; its header holds the counters and the plan, by which another training is refused.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from typing import Any

import torch
from torch import Tensor

from dre_plugins.checks import require
from dre_plugins.engine import checkpoint
from dre_plugins.engine.scorers import Parameters
from dre_plugins.engine.settings import LOSS_NAMES
from dre_plugins.files import regular

FORMAT = "dre-plugins/meta-training"
VERSION = 1


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


@dataclass(frozen=True, slots=True)
class Progress:
    """Hold the result of a validation."""

    step: int  # steps done
    n_steps: int  # steps planned
    loss: float  # mean training loss since the last validation
    validation_loss: float  # mean validation loss; that of training without validation tasks
    best: float  # smallest validation loss so far


@dataclass(slots=True)
class TrainingState:
    """Hold all that changes during a meta-training."""

    parameters: Parameters  # present weights
    first_moments: Parameters  # Adam's mean of the gradients, by parameter
    second_moments: Parameters  # Adam's mean of their squares, by parameter
    generator: torch.Generator  # source of all draws, on the CPU
    step: int = 0  # steps done
    # weights of the smallest validation loss; empty before the first validation
    best: Parameters = field(default_factory=dict)
    history: list[Progress] = field(default_factory=list)  # one entry for each validation


def save(path: str | os.PathLike[str], state: TrainingState, plan: Mapping[str, Any]) -> None:
    """Write the state and the plan of the training, which has JSON's values only.

    The file is replaced as a whole, so that an interruption harms nothing.
    """
    header = {
        "format": FORMAT,
        "version": str(VERSION),
        "plan": json.dumps(plan, sort_keys=True),
        "step": str(state.step),
        "history": json.dumps([astuple(entry) for entry in state.history]),
    }
    checkpoint.save(path, {**_tensors(state), "generator": state.generator.get_state()}, header)


def load(path: str | os.PathLike[str], state: TrainingState, plan: Mapping[str, Any]) -> None:
    """Set a new state to what `save` wrote; a ValueError says why it cannot be resumed."""
    name = os.fspath(path)
    try:
        content = regular(name).read_bytes()
        header, tensors = checkpoint.read(name, content, FORMAT, VERSION, writer="meta_train")
        if json.loads(header["plan"]) != json.loads(json.dumps(plan)):
            raise ValueError("it belongs to a training with other data, settings or seed")
        for key, value in _tensors(state).items():
            if tensors[key].shape != value.shape:  # `copy_` would broadcast
                raise ValueError(f"{key} has not the shape {[*value.shape]}")
            value.copy_(tensors[key])
        device = next(iter(state.parameters.values())).device
        best = {key: value for key, value in tensors.items() if key.startswith("best/")}
        state.best = {key.removeprefix("best/"): value.to(device) for key, value in best.items()}
        state.generator.set_state(tensors["generator"])
        state.step = int(header["step"])
        state.history = [Progress(*values) for values in json.loads(header["history"])]
    except (OSError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"checkpoint {name!r} cannot be resumed ({error}); delete it or name another file."
        ) from error


def _tensors(state: TrainingState) -> dict[str, Tensor]:
    """Return all tensors of a state by name, without those of the generator."""
    return {
        f"{kind}/{name}": value.detach()
        for kind in ("parameters", "first_moments", "second_moments", "best")
        for name, value in getattr(state, kind).items()
    }
