"""Meta-training of an ensemble on past tasks (Algorithm 1 of the paper), batched.

One step draws `B` lists for every one of the `M` members, each with a support set of its own, and
takes one Adam step on all of them: `M × B` lists for the price of a few products. Each member has
its own draws, as section 3.2 of the paper asks for.

Notation: `M` members, `B` lists of one step and member, `T` lists of past tasks, `L` entries of a
query, `S` largest support; see docs/architecture.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from dre_plugins.engine.fitting import FittingError
from dre_plugins.engine.losses import Loss, get_loss
from dre_plugins.engine.runtime import isolated
from dre_plugins.engine.scorers import Parameters, context_vectors, initial_parameters, score
from dre_plugins.engine.settings import ScorerSettings
from dre_plugins.engine.sorting import rank_normalised
from dre_plugins.transfer.draws import Batch, draws, validation_batch
from dre_plugins.transfer.settings import MetaTrainingSettings
from dre_plugins.transfer.task_lists import TaskLists

__all__ = ["MetaTrained", "MetaTrainingSettings", "Progress", "meta_train"]


@dataclass(frozen=True, slots=True)
class Progress:
    """Hold what a validation found.

    Args:
        step: Steps done.
        n_steps: Steps planned.
        loss: Mean training loss since the last validation.
        validation_loss: Mean validation loss; that of training without validation tasks.
        best: Smallest validation loss so far.
    """

    step: int
    n_steps: int
    loss: float
    validation_loss: float
    best: float


@dataclass(frozen=True, slots=True)
class MetaTrained:
    """Hold the outcome of a meta-training.

    Args:
        parameters: Weights of the smallest validation loss, on the CPU.
        history: One entry for each validation.
    """

    parameters: Parameters
    history: tuple[Progress, ...]


def meta_train(
    lists: TaskLists,
    validation: TaskLists | None,
    scorer: ScorerSettings,
    settings: MetaTrainingSettings,
    *,
    seed: int,
    device: str = "cpu",
    n_threads: int = 1,
    on_progress: Callable[[Progress], None] | None = None,
) -> MetaTrained:
    """Meta-train an ensemble (Algorithm 1).

    Args:
        validation: Lists of other tasks; the weights that rank them best are returned, of many
            lists `MAX_VALIDATION`. None returns the last weights.
        seed: Seed of weights and draws; equal seeds give equal weights on the same machine.

    Raises:
        FittingError: If the training diverged.
    """
    with isolated(device, n_threads):
        generator = torch.Generator(device="cpu").manual_seed(seed)
        drawn = initial_parameters(scorer, lists.n_features, generator)
        parameters = {name: value.to(device).requires_grad_() for name, value in drawn.items()}
        held_out = validation_batch(validation, scorer, settings, device)
        batches = draws(lists.to(device), scorer, settings, generator)
        kept, history = parameters, list[Progress]()
        for progress in _train(parameters, batches, held_out, scorer, settings):
            is_better = not history or progress.best < history[-1].best
            if held_out is not None and is_better:
                kept = {name: value.detach().clone() for name, value in parameters.items()}
            history.append(progress)
            if on_progress is not None:
                on_progress(progress)
        kept = {name: value.detach().cpu().clone() for name, value in kept.items()}
    return MetaTrained(kept, tuple(history))


def _train(
    parameters: Parameters,
    batches: Iterator[Batch],
    held_out: Batch | None,
    scorer: ScorerSettings,
    settings: MetaTrainingSettings,
) -> Iterator[Progress]:
    """Take steps, which change the parameters, until the plan or the patience ends.

    Yields at every validation.
    """
    loss = get_loss(settings.loss)
    optimiser = torch.optim.Adam([*parameters.values()], lr=settings.learning_rate, fused=True)
    total = torch.zeros((), device=next(iter(parameters.values())).device)
    last_validation, losses = 0, list[float]()
    for step in range(1, settings.n_steps + 1):
        annealed = 0.5 * (1.0 + math.cos(math.pi * (step - 1) / settings.n_steps))
        optimiser.param_groups[0]["lr"] = settings.learning_rate * annealed
        value = _loss(parameters, next(batches), scorer, loss)
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        total += value.detach()
        if step % settings.validate_every and step < settings.n_steps:
            continue
        training_loss = validation_loss = float(total) / (step - last_validation)
        if held_out is not None:
            with torch.no_grad():
                validation_loss = float(_loss(parameters, held_out, scorer, loss))
        if not (math.isfinite(training_loss) and math.isfinite(validation_loss)):
            raise FittingError(
                f"meta-training diverged before step {step}: the loss is {training_loss}; "
                f"use a smaller learning_rate than {settings.learning_rate}."
            )
        losses.append(validation_loss)
        yield Progress(step, settings.n_steps, training_loss, validation_loss, min(losses))
        if len(losses) > settings.patience and min(losses[-settings.patience :]) > min(losses):
            return
        total.zero_()
        last_validation = step


def _loss(parameters: Parameters, batch: Batch, scorer: ScorerSettings, loss: Loss) -> Tensor:
    """Return the mean loss over members and lists."""
    context = None
    if scorer.context is not None:
        quantiles = rank_normalised(batch.support_values, batch.support_mask)
        context = context_vectors(
            parameters, batch.support_features, quantiles, batch.support_mask, scorer.activation
        )
    scores = score(parameters, scorer, batch.features, context)
    return loss(scores, batch.values, mask=batch.mask)
