"""Meta-train the universal prior on lessons that are drawn afresh at every step."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch import Tensor, nn

from dre_bench.universal.lessons import Lesson, draw_lesson
from dre_bench.universal.tasks import MAX_FEATURES
from dre_plugins.checks import require
from dre_plugins.engine import checkpoint
from dre_plugins.universal.file import FORMAT, VERSION
from dre_plugins.universal.network import UniversalPrior, UniversalSettings

# Trials of a lesson, and how many trials and tasks make one step.
MIN_TRIALS, MAX_TRIALS = 3, 80
N_CELLS, MIN_TASKS, MAX_TASKS = 900, 6, 32
N_QUERIES = 32
N_WARM_UP = 100
# Output layers begin small: before any training the guesses are those of the network's constants.
SMALL = 0.1
LAST_RATE = 1e-5
MAX_GRADIENT = 1.0
# Answers have no noise. Without this deviation, an answer that is predicted to four digits would
# outweigh all others.
DOUBT, NOISE_SHARE = 1e-4, 0.1
# Lessons by which progress is told: so many of each number of trials.
VALIDATED_TRIALS = (3, 5, 8, 12, 20, 30, 45, 60)
N_VALIDATION = 6
VALIDATION_SEED = 10**6


@dataclass(frozen=True, slots=True)
class UniversalTrainingSettings:
    """Choose how the universal prior is meta-trained.

    Args:
        n_steps: Steps of Adam, each on a fresh lesson.
        learning_rate: The largest; it rises for 100 steps and falls like a cosine.
        max_features: Of the largest search spaces.

    Raises:
        ValueError: If any is not positive.
    """

    n_steps: int = 600
    learning_rate: float = 0.002
    max_features: int = MAX_FEATURES

    def __post_init__(self) -> None:
        require(self.n_steps >= 1, "n_steps", self.n_steps, "at least 1")
        require(self.learning_rate > 0, "learning_rate", self.learning_rate, "positive")
        require(self.max_features >= 2, "max_features", self.max_features, "at least 2")

    def rate(self, step: int) -> float:
        """Return the learning rate of a step."""
        warm = min(1.0, (step + 1) / N_WARM_UP)
        cosine = 0.5 * (1.0 + math.cos(math.pi * step / self.n_steps))
        return self.learning_rate * warm * cosine + LAST_RATE


def meta_train_universal(
    size: UniversalSettings,
    settings: UniversalTrainingSettings,
    *,
    seed: int,
    device: str = "cpu",
    progress: Callable[[range], Iterable[int]] = iter,
) -> UniversalPrior:
    """Return a universal prior that was meta-trained on synthetic tasks.

    Args:
        size: Size of the network.
        settings: How to train.
        seed: Seed of everything random; with it the same on one machine, with one thread.
        device: Where to compute.
        progress: Passes on the steps, and may show how far they are.
    """
    rng = np.random.default_rng(seed)
    prior = initial(size, seed).to(device)
    optimiser = torch.optim.Adam(prior.parameters())
    low, high = math.log(MIN_TRIALS), math.log(MAX_TRIALS)
    for step in progress(range(settings.n_steps)):
        optimiser.param_groups[0]["lr"] = settings.rate(step)
        n_trials = round(math.exp(rng.uniform(low, high)))
        n_tasks = min(MAX_TASKS, max(MIN_TASKS, N_CELLS // n_trials))
        lesson = draw_lesson(rng, n_tasks, n_trials, N_QUERIES, settings.max_features)
        optimiser.zero_grad()
        mean = loss(prior, lesson, device)
        mean.backward()
        norm = torch.nn.utils.clip_grad_norm_(prior.parameters(), MAX_GRADIENT)
        if torch.isfinite(norm):
            optimiser.step()
    return prior.cpu()


def initial(size: UniversalSettings, seed: int) -> UniversalPrior:
    """Return a network with weights as torch draws them for linear layers, but reproducibly."""
    prior, generator = UniversalPrior(size), torch.Generator().manual_seed(seed)
    outputs = [prior.of_features, prior.of_task, *prior.feature_steps, *prior.task_steps]
    last = {id(network[-1]) for network in outputs}
    with torch.no_grad():
        for layer in prior.modules():
            if isinstance(layer, nn.Linear):
                bound = layer.in_features**-0.5 * (SMALL if id(layer) in last else 1.0)
                layer.weight.uniform_(-bound, bound, generator=generator)
                layer.bias.zero_()
    return prior


def save(prior: UniversalPrior, path: str | os.PathLike[str], note: str = "") -> None:
    """Write a universal prior.

    Args:
        prior: What to write, in float32.
        path: Where; replaced if it exists, and unchanged if writing fails.
        note: How it was trained.

    Raises:
        OSError: If it cannot be written.
    """
    header = {
        "format": FORMAT,
        "version": str(VERSION),
        "settings": json.dumps(asdict(prior.settings)),
        "note": note,
    }
    tensors = {name: value.float() for name, value in prior.state_dict().items()}
    checkpoint.save(path, tensors, header)


def loss(prior: UniversalPrior, lesson: Lesson, device: str = "cpu") -> Tensor:
    """Return minus the mean logarithm of the density of a lesson's answers."""
    features, targets = lesson.features.to(device), lesson.targets.to(device)
    answers = lesson.answers.to(device)[:, None]
    processes, weights = prior(features, targets)
    means, variances = processes.posterior(lesson.queries.to(device))
    noises = processes.hypotheses.noises.exp()[..., None]
    doubts = variances + DOUBT + NOISE_SHARE * noises
    errors = (answers - means).square() / doubts
    density = -0.5 * (errors + doubts.log() + math.log(2.0 * math.pi))
    return -torch.logsumexp(density + weights[..., None], 1).mean()


def validation_lessons(max_features: int = MAX_FEATURES) -> list[Lesson]:
    """Return lessons that no training has seen: the same ones for all."""
    rng = np.random.default_rng(VALIDATION_SEED)
    return [
        draw_lesson(rng, 8, n_trials, N_QUERIES, max_features)
        for n_trials in VALIDATED_TRIALS * N_VALIDATION
    ]


def validated(prior: UniversalPrior, lessons: list[Lesson]) -> float:
    """Return the mean loss on lessons."""
    with torch.no_grad():
        return float(np.mean([float(loss(prior, lesson)) for lesson in lessons]))
