"""The universal prior, fine-tuned on the studies of a memory, on held-out studies.

    PYTHONPATH=.:benchmarks:lab nice -n 15 python lab/memory_universal.py base.jsonl

`base.jsonl` is the memory of `memory_priors.py base`. Held-out studies are random configurations
of validation tasks: the network reads 5, 10 or 20 of them and predicts 200 others.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from memory_lives import read
from memory_priors import NAMES, drawn_of, held_out, past_task
from scipy.stats import kendalltau

from dre_bench.universal.lessons import LIMIT, Lesson
from dre_bench.universal.training import MAX_GRADIENT, loss
from dre_plugins.transfer.metadata import Task
from dre_plugins.universal.file import SHIPPED, load
from dre_plugins.universal.network import UniversalPrior
from dre_plugins.universal.targets import blended

N_STEPS, LOOK_AT = 400, (0, 100, 200, 400)
RATES = (1e-4, 1e-3)
N_TASKS, N_VIEWS, N_QUERIES = 4, 4, 10
SUPPORTS = (5, 10, 20)


def lesson_of(task: Task, n_trials: int, n_views: int, rng: np.random.Generator) -> Lesson:
    """Return views of one study: some of its trials, and others to predict."""
    features = torch.from_numpy(task.space.features(task.units)).float()
    values = torch.from_numpy(task.values).float()
    rows = np.stack([rng.permutation(len(values)) for _ in range(n_views)])
    seen, asked = rows[:, :n_trials], rows[:, n_trials : n_trials + N_QUERIES]
    targets, scale = blended(values[seen], values[seen])
    answers = scale.targets(values[asked]).clamp(-LIMIT, LIMIT)
    return Lesson(features[seen], targets, features[asked], answers)


def fine_tuned(tasks: Sequence[Task], rate: float, looks: Sequence[int]):
    """Yield the network after some numbers of steps."""
    rng = np.random.default_rng(0)
    network = load(SHIPPED).requires_grad_(True)
    optimiser = torch.optim.Adam(network.parameters(), lr=rate)
    for step in range(N_STEPS + 1):
        if step in looks:
            yield step, network
        optimiser.zero_grad()
        for row in rng.integers(len(tasks), size=N_TASKS):
            n_trials = round(np.exp(rng.uniform(np.log(3), np.log(28))))
            (loss(network, lesson_of(tasks[row], n_trials, N_VIEWS, rng)) / N_TASKS).backward()
        norm = torch.nn.utils.clip_grad_norm_(network.parameters(), MAX_GRADIENT)
        if torch.isfinite(norm):
            optimiser.step()


def look(network: UniversalPrior, tasks: Sequence[Task]) -> dict[tuple[str, int], list[float]]:
    """Return the mean loss and rank correlation of held-out studies by scenario and support."""
    found: dict[tuple[str, int], list[list[float]]] = {}
    for task in tasks:
        features = torch.from_numpy(task.space.features(task.units)).float()
        values = torch.from_numpy(task.values).float()
        for n in SUPPORTS:
            targets, scale = blended(values[None, :n], values[None, :n])
            answers = scale.targets(values[None, n:]).clamp(-LIMIT, LIMIT)
            lesson = Lesson(features[None, :n], targets, features[None, n:], answers)
            with torch.no_grad():
                density = float(loss(network, lesson))
                processes, weights = network(lesson.features, lesson.targets)
                means, _ = processes.posterior(lesson.queries)
                expected = (weights[0, :, None].exp() * means[0]).sum(0).numpy()
            tau = kendalltau(expected, values[n:]).statistic
            found.setdefault((task.name.split()[0], n), []).append([density, tau])
    return {key: np.nanmean(rows, axis=0).round(3).tolist() for key, rows in found.items()}


def main() -> None:
    torch.set_num_threads(1)
    tasks = [past_task(row) for row in read(Path(sys.argv[1]))]
    held = []
    for name, task, variant in held_out():
        units, values, space = drawn_of(task, variant, 220)
        n = len(values)
        held.append(Task(f"{name} {task}", space, units, values, np.zeros(n, bool), {}))
    for rate in RATES:
        for step, network in fine_tuned(tasks, rate, LOOK_AT):
            figures = look(network, held)
            for name in NAMES:
                line = [figures[name, n] for n in SUPPORTS]
                print(
                    f"rate {rate} step {step:4} {name:14} loss, tau @{SUPPORTS}: {line}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
