"""Seconds per suggestion, to be read as ratios within one run: `dre-bench speed`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product

import numpy as np
import optuna
import torch

from dre_bench.samplers import make_sampler
from dre_bench.searcher_speed import PREFIX, installed, searcher_seconds
from dre_plugins.adapters.optuna import DRESampler
from dre_plugins.engine.runtime import isolated
from dre_plugins.engine.settings import get_preset
from dre_plugins.recommend.settings import Settings
from dre_plugins.space import Float
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.meta_training import MetaTrainingSettings
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.prior import Prior

WITH_PRIOR = "dre with a prior"
SAMPLERS = ("dre", WITH_PRIOR, "tpe", "gp", *installed())
DIMENSION = 10
PAPER_TRIALS = 50
N_WARM = 2
"""First suggestions that are not counted: they pay for imports, each of two models for its own."""


@dataclass(frozen=True)
class Timing:
    """Hold how long suggestions take.

    Attributes:
        sampler: Specification of a sampler of Optuna, `WITH_PRIOR`, or a searcher of Syne Tune.
        dimension: Number of numeric parameters.
        trials: Trials in the study.
        threads: Threads that torch may use.
        seconds: Of each suggestion, ascending.
    """

    sampler: str
    dimension: int
    trials: int
    threads: int
    seconds: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Return the mean of the seconds."""
        return float(np.mean(self.seconds))

    @property
    def late(self) -> float:
        """Return the 95th percentile of the seconds."""
        return float(np.quantile(self.seconds, 0.95))


def timings(
    samplers: Sequence[str],
    dimensions: Sequence[int],
    trials: Sequence[int],
    threads: Sequence[int],
    repeats: int,
) -> Iterator[Timing]:
    """Time suggestions, all samplers of one study after the other.

    Args:
        samplers: Specifications, `WITH_PRIOR`, and those of `searcher_speed.installed`.
        dimensions: Numbers of parameters.
        trials: Numbers of trials in the study.
        threads: Numbers of threads.
        repeats: Suggestions of each.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    for n_threads, dimension, n_trials, name in product(threads, dimensions, trials, samplers):
        with isolated(n_threads=n_threads):
            if name.startswith(PREFIX):
                seconds = searcher_seconds(name, n_trials, repeats, dimension)
            else:
                make = partial(_sampler, name, dimension, n_threads)
                seconds = suggestion_seconds(make, n_trials, repeats, dimension)
        yield Timing(name, dimension, n_trials, n_threads, tuple(sorted(seconds)))


def sphere_study(
    n_trials: int, sampler: optuna.samplers.BaseSampler, dimension: int = DIMENSION
) -> optuna.Study:
    """Return a study of a noisy sphere with `n_trials` random trials in it."""
    rng = np.random.default_rng(0)
    distribution = optuna.distributions.FloatDistribution(-1.0, 1.0)
    study = optuna.create_study(sampler=sampler)
    study.add_trials(
        [
            optuna.create_trial(
                params={f"x{i}": float(v) for i, v in enumerate(x)},
                distributions={f"x{i}": distribution for i in range(dimension)},
                value=float((x**2).sum() + 0.1 * rng.standard_normal()),
            )
            for x in rng.uniform(-1.0, 1.0, (n_trials, dimension))
        ]
    )
    return study


def suggestion_seconds(
    make: Callable[[], optuna.samplers.BaseSampler],
    n_trials: int,
    repeats: int,
    dimension: int = DIMENSION,
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Return the seconds from `ask` to the last suggested parameter, of each suggestion.

    Trials are told a value, as failed ones would be modelled.
    """
    study = sphere_study(n_trials, make(), dimension)
    seconds = []
    for _ in range(repeats + N_WARM):
        start = clock()
        trial = study.ask()
        for i in range(dimension):
            trial.suggest_float(f"x{i}", -1.0, 1.0)
        seconds.append(clock() - start)
        study.tell(trial, sum(x**2 for x in trial.params.values()))
    return seconds[N_WARM:]


def _sampler(name: str, dimension: int, n_threads: int) -> optuna.samplers.BaseSampler:
    if name == WITH_PRIOR:
        settings = Settings(n_threads=n_threads)
        return DRESampler(seed=0, prior=_prior(dimension), settings=settings)
    if name.partition(":")[0] == "dre":
        name += f"{',' if ':' in name else ':'}n_threads={n_threads}"
    return make_sampler(name, 0, "")


def _prior(dimension: int) -> Prior:
    """Return a prior that was hardly trained: what it knows takes no time."""
    rng = np.random.default_rng(0)
    space = SearchSpace({f"x{i}": Float(-1.0, 1.0) for i in range(dimension)})
    units = rng.random((3, 50, dimension))
    failed = np.zeros(50, dtype=np.bool_)
    tasks = [
        Task(f"{number}", space, rows, -((rows - 0.1 * number) ** 2).sum(1), failed)
        for number, rows in enumerate(units)
    ]
    return Prior.train(MetaDataset.of(tasks), settings=MetaTrainingSettings(n_steps=5))


def is_comparable(timing: Timing) -> bool:
    """Say whether it is to be compared with `paper_procedure_seconds(PAPER_TRIALS)`."""
    measured = timing.sampler, timing.threads, timing.trials, timing.dimension
    return measured == ("dre", 1, PAPER_TRIALS, DIMENSION)


@isolated(n_threads=1)
def paper_procedure_seconds(
    n_trials: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Return the seconds to fit the paper's members one by one, as its code does, on one thread.

    One `torch.nn.Sequential` per member, weighted ListMLE through `log(cumsum(exp))`, Adam,
    1000 epochs; timed on a tenth of the epochs and scaled.
    """
    preset = get_preset("paper")
    epochs = preset.from_random.n_steps // 10
    generator = torch.Generator().manual_seed(0)
    features = torch.rand(n_trials, DIMENSION, generator=generator)
    discount = 1.0 / torch.log(torch.arange(n_trials) + 2.0)
    # Not timed: the first optimiser of a process imports torch's compiler, which takes seconds.
    torch.optim.Adam([torch.zeros(1, requires_grad=True)])
    start = clock()
    for _ in range(preset.scorer.n_members):
        widths = [DIMENSION, *preset.scorer.hidden]
        layers: list[torch.nn.Module] = []
        for n_in, n_out in pairwise(widths):
            layers += [torch.nn.Linear(n_in, n_out), torch.nn.ReLU()]
        scorer = torch.nn.Sequential(*layers, torch.nn.Linear(widths[-1], 1))
        optimiser = torch.optim.Adam(scorer.parameters(), lr=preset.from_random.learning_rate)
        for _ in range(epochs):
            scores = scorer(features)[:, 0].exp()
            tail = scores.flip(-1).cumsum(-1).flip(-1)
            loss = (discount * (tail.log() - scores.log())).sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return 10.0 * (clock() - start)
