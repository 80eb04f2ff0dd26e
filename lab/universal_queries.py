"""Train a universal prior on the queries that its own acquisition chooses, for some seconds.

    PYTHONPATH=.:benchmarks:lab python lab/universal_queries.py OUT --seconds 500 --device cuda

With `--chosen 0` queries are drawn as `dre-bench train-universal` draws them. OUT is a folder; at
the steps of `AT` and at the end it gets an average of the weights over about 200 steps, so that
one training tells how its length matters. On the GPU the figures of
lab/2026-11-27-amplitude-and-trend.md were computed with `torch.linalg.cholesky_ex` and triangular
solves in `processes.py` instead of `cholesky` and `cholesky_solve`.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import multiprocessing
import time
from multiprocessing.queues import Queue
from pathlib import Path

import numpy as np
import torch

from dre_bench.universal.lessons import Lesson, draw_lesson
from dre_bench.universal.training import (
    MAX_GRADIENT,
    MAX_TRIALS,
    MIN_TRIALS,
    N_QUERIES,
    N_WARM_UP,
    initial,
    loss,
    save,
    validated,
    validation_lessons,
)
from dre_plugins.recommend.universal_prior import log_improvements
from dre_plugins.universal.network import UniversalPrior, UniversalSettings

AT = (300, 600, 1000, 1500, 2500, 4000, 6000)
N_CELLS, MAX_TASKS, RATE, KEPT = 2400, 80, 0.0015, 0.995
N_POOL, N_CHOSEN = 192, 12  # queries to choose from, and how many of them are chosen


def draw(queue: Queue[Lesson], seed: int, n_queries: int) -> None:
    """Draw lessons for ever."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(seed)
    while True:
        n_trials = round(math.exp(rng.uniform(math.log(MIN_TRIALS), math.log(MAX_TRIALS))))
        n_tasks = min(MAX_TASKS, max(6, N_CELLS // n_trials))
        queue.put(draw_lesson(rng, n_tasks, n_trials, n_queries))


@torch.no_grad()
def asked(
    prior: UniversalPrior, lesson: Lesson, device: str, generator: torch.Generator
) -> Lesson:
    """Return the lesson with the queries of the largest expected improvement, and some others."""
    targets = lesson.targets.to(device)
    processes, weights = prior(lesson.features.to(device), targets)
    means, variances = processes.posterior(lesson.queries.to(device))
    best = targets.amax(1).double()[:, None, None]
    logs, _, _ = log_improvements(means.numpy(), variances.numpy(), best)
    gains = weights[..., None] + torch.from_numpy(logs)
    chosen = torch.nan_to_num(torch.logsumexp(gains, 1), -1e9).topk(N_CHOSEN, 1).indices.cpu()
    n_tasks, n_pool = lesson.answers.shape
    half, n_others = n_pool // 2, (N_QUERIES - N_CHOSEN) // 2
    others = torch.rand(n_tasks, 2, half, generator=generator).topk(n_others, 2).indices
    others = (others + torch.tensor([[0], [half]])).flatten(1)
    at = torch.cat([chosen, others], 1)
    features = at[..., None].expand(-1, -1, lesson.queries.shape[-1])
    queries, answers = lesson.queries.gather(1, features), lesson.answers.gather(1, at)
    return Lesson(lesson.features, lesson.targets, queries, answers)


def main() -> None:
    """Train, and write the averages of the weights."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--chosen", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("fork")
    queue = context.Queue(maxsize=24)
    n_queries = N_POOL if given.chosen else N_QUERIES
    for worker in range(given.workers):
        arguments = queue, 1000 * given.seed + worker, n_queries
        context.Process(target=draw, args=arguments, daemon=True).start()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(given.seed)
    prior = initial(UniversalSettings(), given.seed).to(given.device)
    mean = copy.deepcopy(prior).requires_grad_(False)
    optimiser = torch.optim.Adam(prior.parameters())
    begin, done, step, n_tasks = time.perf_counter(), 0.0, 0, 0

    def write(label: str) -> None:
        told = copy.deepcopy(mean).cpu()
        density = validated(told, validation_lessons())
        note = {"steps": step, "tasks": n_tasks, "chosen": given.chosen, "validated": density}
        save(told, given.out / f"{label}.safetensors", json.dumps(note))
        print(label, note, round(time.perf_counter() - begin), "s", flush=True)

    while done < 1.0:
        # A constant rate, which falls in the last third.
        warm, fall = min(1.0, (step + 1) / N_WARM_UP), min(1.0, 3.0 * (1.0 - done) + 0.02)
        optimiser.param_groups[0]["lr"] = RATE * warm * fall
        lesson = queue.get()
        if given.chosen:
            lesson = asked(prior, lesson, given.device, generator)
        optimiser.zero_grad()
        loss(prior, lesson, given.device).backward()
        norm = torch.nn.utils.clip_grad_norm_(prior.parameters(), MAX_GRADIENT)
        if torch.isfinite(norm):
            optimiser.step()
        step, n_tasks = step + 1, n_tasks + len(lesson.targets)
        share = max(1.0 - KEPT, 1.0 / (0.1 * step + 1.0))
        for average, weight in zip(mean.parameters(), prior.parameters(), strict=True):
            average.lerp_(weight.detach(), share)
        if step in AT:
            write(str(step))
        done = (time.perf_counter() - begin) / given.seconds
    write("last")


if __name__ == "__main__":
    main()
