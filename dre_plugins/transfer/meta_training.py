"""Meta-training of an ensemble on past tasks (Algorithm 1 of the paper), batched.

One step draws `B` lists for every one of the `M` members, each with a support set of its own, and
takes one Adam step on all of them, batched into a few products. Each member has its own draws, as
section 3.2 of the paper requires.

Notation: `M` members, `B` lists of one step and member, `T` lists of past tasks, `L` entries of a
query, `S` largest support; see docs/architecture.md.
"""

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial

import torch
from torch import Tensor

from dre_plugins.engine.fitting import adam_step
from dre_plugins.engine.losses import LOSSES, Loss
from dre_plugins.engine.ranks import rank_normalised
from dre_plugins.engine.runtime import isolated
from dre_plugins.engine.scorers import Parameters, context_vectors, initial_parameters, score
from dre_plugins.engine.settings import FittingError, ScorerSettings
from dre_plugins.transfer import training_state
from dre_plugins.transfer.task_lists import Batch, TaskLists, training_batches, validation_batch
from dre_plugins.transfer.training_state import MetaTrainingSettings, Progress, TrainingState

LossOfBatch = Callable[[Parameters, Batch], Tensor]

__all__ = ["MetaTrainingSettings", "Progress", "meta_train"]


def meta_train(
    lists: TaskLists,
    validation: TaskLists | None,
    scorer: ScorerSettings,
    settings: MetaTrainingSettings,
    *,
    seed: int,
    device: str = "cpu",
    n_threads: int = 1,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> TrainingState:
    """Meta-train an ensemble (Algorithm 1) and return its last state, with the best weights.

    Args:
        validation: Lists of other tasks, of which at most `MAX_VALIDATION` are used; the weights
            that rank them best are returned, on the CPU. None returns the last weights.
        seed: Seed of weights and draws; equal seeds give equal weights on the same machine.
        checkpoint: File to which the state of the training is written at every validation.
        resume: Whether to continue from that file if it exists, with the same result in the end.

    Raises:
        ValueError: If the checkpoint belongs to another training.
        FittingError: If the training diverged.
    """
    with isolated(device, n_threads):
        state = _initial_state(scorer, lists.n_features, seed, device)
        plan = {"settings": asdict(settings), "scorer": asdict(scorer), "seed": seed}
        plan["data"] = [lists.digest(), validation.digest() if validation is not None else None]
        if checkpoint is not None and resume and os.path.exists(checkpoint):
            training_state.load(checkpoint, state, plan)
        held_out = validation_batch(validation, scorer, settings, device)
        loss = partial(_loss, scorer=scorer, loss=LOSSES[settings.loss])
        batches = training_batches(lists.to(device), scorer, settings, state)
        for progress in _train(state, batches, held_out, settings, loss):
            if checkpoint is not None:
                training_state.save(checkpoint, state, plan)
            if on_progress is not None:
                on_progress(progress)
        best = state.best if validation is not None and state.best else state.parameters
        state.parameters = {name: value.detach().cpu().clone() for name, value in best.items()}
    return state


def _initial_state(
    scorer: ScorerSettings, n_features: int, seed: int, device: str
) -> TrainingState:
    generator = torch.Generator(device="cpu").manual_seed(seed)
    drawn = initial_parameters(scorer, n_features, generator)
    parameters = {name: value.to(device).requires_grad_() for name, value in drawn.items()}
    first, second = (
        {name: torch.zeros_like(value) for name, value in parameters.items()} for _ in range(2)
    )
    return TrainingState(parameters, first, second, generator)


def _train(
    state: TrainingState,
    batches: Iterator[Batch],
    held_out: Batch | None,
    settings: MetaTrainingSettings,
    loss: LossOfBatch,
) -> Iterator[Progress]:
    """Take steps until the plan or the patience ends; yield at every validation."""
    parameters = [*state.parameters.values()]
    means = [state.first_moments[name] for name in state.parameters]
    squares = [state.second_moments[name] for name in state.parameters]
    step = float(state.step)
    counts = [torch.tensor(step, dtype=torch.float32, device=p.device) for p in parameters]
    total = torch.zeros((), dtype=torch.float32, device=parameters[0].device)
    while state.step < settings.n_steps and not _is_stagnating(state, settings):
        annealed = 0.5 * (1.0 + math.cos(math.pi * state.step / settings.n_steps))
        value = loss(state.parameters, next(batches))
        gradients = [*torch.autograd.grad(value, parameters)]
        rate = settings.learning_rate * annealed
        with torch.no_grad():
            adam_step(parameters, gradients, means, squares, counts, rate)
        total += value.detach()
        state.step += 1
        if state.step % settings.validate_every == 0 or state.step == settings.n_steps:
            since = (state.step - 1) % settings.validate_every + 1
            yield _validated(state, float(total) / since, held_out, settings, loss)
            total.zero_()


def _validated(
    state: TrainingState,
    training_loss: float,
    held_out: Batch | None,
    settings: MetaTrainingSettings,
    loss: LossOfBatch,
) -> Progress:
    """Validate, keep the best weights, and write one line of history."""
    validation_loss = training_loss
    if held_out is not None:
        with torch.no_grad():
            validation_loss = float(loss(state.parameters, held_out))
    if not (math.isfinite(training_loss) and math.isfinite(validation_loss)):
        raise FittingError(
            f"meta-training diverged before step {state.step}: the loss is {training_loss}; "
            f"use a smaller learning_rate than {settings.learning_rate}."
        )
    best = state.history[-1].best if state.history else math.inf
    if validation_loss < best:
        state.best = {name: value.detach().clone() for name, value in state.parameters.items()}
    best = min(best, validation_loss)
    progress = Progress(state.step, settings.n_steps, training_loss, validation_loss, best)
    state.history.append(progress)
    return progress


def _is_stagnating(state: TrainingState, settings: MetaTrainingSettings) -> bool:
    losses = [entry.validation_loss for entry in state.history]
    return len(losses) > settings.patience and min(losses[-settings.patience :]) > min(losses)


def _loss(parameters: Parameters, batch: Batch, scorer: ScorerSettings, loss: Loss) -> Tensor:
    """Return the mean loss over members and lists."""
    context = None
    if scorer.context is not None:
        quantiles = rank_normalised(batch.support_values, batch.support_mask)
        context = context_vectors(
            parameters, batch.support_features, quantiles, batch.support_mask, scorer.activation
        )
    scores = score(parameters, scorer, batch.features, context)
    return loss(scores, loss.prepare(batch.values, batch.mask)).mean()
