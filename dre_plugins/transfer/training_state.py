"""The state of a meta-training, in memory and on disk, so that it can be interrupted.

One safetensors file holds weights, moments of Adam, the best weights and the state of the random
generator; its header holds the counters and the plan, which must be that of the training that
resumes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save as to_bytes
from torch import Tensor

from dre_plugins.engine.checkpoint import parsed
from dre_plugins.engine.files import regular, replacing
from dre_plugins.engine.scorers import Parameters

FORMAT = "dre-plugins/meta-training"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Progress:
    """Hold what one look at the validation tasks found.

    Args:
        step: Steps done.
        n_steps: Steps planned.
        loss: Mean training loss since the last look.
        validation_loss: Mean validation loss; that of training without validation tasks.
        best: Smallest validation loss so far.
    """

    step: int
    n_steps: int
    loss: float
    validation_loss: float
    best: float


@dataclass(slots=True)
class TrainingState:
    """Hold all that changes during a meta-training.

    Args:
        parameters: Present weights.
        first_moments: Adam's mean of the gradients, by parameter.
        second_moments: Adam's mean of their squares, by parameter.
        generator: Source of all draws, on the CPU.
        step: Steps done.
        best: Weights of the smallest validation loss; empty before the first look.
        history: One entry a look.
    """

    parameters: Parameters
    first_moments: Parameters
    second_moments: Parameters
    generator: torch.Generator
    step: int = 0
    best: Parameters = field(default_factory=dict)
    history: list[Progress] = field(default_factory=list)


def save(path: str | os.PathLike[str], state: TrainingState, plan: Mapping[str, Any]) -> None:
    """Write the state; the file is replaced as a whole, so that an interruption harms nothing.

    Args:
        plan: JSON-ready description of the training.
    """
    tensors: dict[str, Tensor] = {"generator": state.generator.get_state()}
    for kind in ("parameters", "first_moments", "second_moments", "best"):
        for name, value in getattr(state, kind).items():
            tensors[f"{kind}/{name}"] = value.detach().cpu().contiguous()
    header = {
        "format": FORMAT,
        "version": str(VERSION),
        "plan": json.dumps(plan, sort_keys=True),
        "step": str(state.step),
        "history": json.dumps([astuple(look) for look in state.history]),
    }
    with replacing(path) as unfinished:
        unfinished.write_bytes(to_bytes(tensors, metadata=header))


def load(path: str | os.PathLike[str], state: TrainingState, plan: Mapping[str, Any]) -> None:
    """Set a new state to what `save` wrote.

    Raises:
        ValueError: If the file is damaged, foreign, or belongs to another training.
    """
    name = os.fspath(path)
    try:
        header, tensors = parsed(regular(name).read_bytes())
        if header.get("format") != FORMAT or header.get("version") != str(VERSION):
            raise ValueError("it is no checkpoint of this version")
        if json.loads(header["plan"]) != json.loads(json.dumps(plan)):
            raise ValueError("it belongs to a training with other data, settings or seed")
        for kind in ("parameters", "first_moments", "second_moments"):
            _restore(getattr(state, kind), kind, tensors)
        device = next(iter(state.parameters.values())).device
        best = {key: value for key, value in tensors.items() if key.startswith("best/")}
        state.best = {key.removeprefix("best/"): value.to(device) for key, value in best.items()}
        state.generator.set_state(tensors["generator"])
        state.step = int(header["step"])
        state.history = [_look(values) for values in json.loads(header["history"])]
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"checkpoint {name!r} cannot be resumed ({error}); delete it or name another file."
        ) from error


def _restore(target: Parameters, kind: str, tensors: Mapping[str, Tensor]) -> None:
    for name, value in target.items():
        stored = tensors[f"{kind}/{name}"]
        if stored.shape != value.shape:  # `copy_` would repeat what is smaller
            raise ValueError(f"{kind}/{name} has shape {[*stored.shape]}, not {[*value.shape]}")
        with torch.no_grad():
            value.copy_(stored)


def _look(values: list[float]) -> Progress:
    step, n_steps, loss, validation_loss, best = values
    return Progress(int(step), int(n_steps), float(loss), float(validation_loss), float(best))
