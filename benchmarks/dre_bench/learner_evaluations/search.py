"""A simple evolution: the next configuration from the best ones so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dre_bench.learner_evaluations.evaluation import loss_of
from dre_bench.learner_evaluations.parameters import Configuration, Space, decode, encode
from dre_bench.learner_evaluations.spaces import CLASSIFICATION

# Parents are the best eighth, at least four; the i-th of them is drawn with weight DECAY ** i.
PARENT_SHARE, LEAST_PARENTS, DECAY = 8, 4, 0.8
CROSSOVER = 0.5
# Standard deviation of a mutation in the unit cube: drawn between these on a logarithmic scale.
LEAST_STEP, MOST_STEP = 0.02, 0.3
LEAST_MUTATION_RATE = 0.3
ATTEMPTS = 20


def metrics_for(task: str, number: int) -> tuple[str, ...]:
    """Name the metrics that a step of the search ranks by: the first, ties by the second.

    Studies maximise accuracy about as often as they minimise log loss, so the steps take turns.
    """
    if task != CLASSIFICATION:
        return ("rmse",)
    return ("log_loss", "accuracy") if number % 2 == 0 else ("accuracy", "log_loss")


def next_configuration(
    space: Space,
    task: str,
    history: Sequence[Mapping[str, Any]],
    number: int,
    generator: np.random.Generator,
) -> Configuration:
    """Recombine and mutate the best configurations of a history; avoid ones evaluated before.

    Args:
        space: the learner's space.
        task: `classification` or `regression`.
        history: the records so far.
        number: how many steps of the search came before.
        generator: source of randomness of this step.
    """
    finished = [record for record in history if record["status"] == "ok"]
    ranked = sorted(
        finished,
        key=lambda record: tuple(loss_of(record, name) for name in metrics_for(task, number)),
    )
    parents = [
        encode(space, record["configuration"])
        for record in ranked[: max(LEAST_PARENTS, len(finished) // PARENT_SHARE)]
    ]
    evaluated = [record["configuration"] for record in history]
    child: Configuration = {}
    for _ in range(ATTEMPTS):
        child = decode(space, _child(space, parents, generator))
        if child not in evaluated:
            break
    return child


def _child(
    space: Space, parents: Sequence[np.ndarray], generator: np.random.Generator
) -> np.ndarray:
    """Make a point `[D]` of the unit cube from parents; a uniform one if there are none."""
    anywhere = generator.random(len(space))
    if not parents:
        return anywhere
    weights = DECAY ** np.arange(len(parents))
    first, second = generator.choice(len(parents), size=2, p=weights / weights.sum())
    point = parents[first].copy()
    if generator.random() < CROSSOVER:
        taken = generator.random(len(space)) < 0.5
        point[taken] = parents[second][taken]
    point = np.where(np.isnan(point), anywhere, point)
    rate = max(1 / len(space), LEAST_MUTATION_RATE)
    mutated = generator.random(len(space)) < rate
    mutated[generator.integers(len(space))] = True
    step = np.exp(generator.uniform(np.log(LEAST_STEP), np.log(MOST_STEP)))
    moved = _reflect(point + generator.normal(scale=step, size=len(space)))
    is_category = np.array([bool(parameter.choices) for parameter in space])
    return np.where(mutated, np.where(is_category, anywhere, moved), point)


def _reflect(point: np.ndarray) -> np.ndarray:
    """Fold coordinates beyond the ends of [0, 1] back inside."""
    folded = np.abs(point) % 2
    return np.minimum(folded, 2 - folded)
