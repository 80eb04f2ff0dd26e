"""Outliers beside the universal prior: ``python lab/outliers.py KIND OUT [N_TRIALS]``.

Each study is made once with every version: the values as they are, and values far below the others
clipped in two ways. Kinds: "none"; "chance", where one trial of twenty has a value a million times
too low; "region", where what is below the 20 % quantile of random configurations falls a million
times faster. ``python lab/outliers.py two`` makes eight studies of a bowl with two outliers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import numpy as np
import optuna
from numpy.typing import NDArray
from paired_studies import run_missing, runs, studied
from targets_by_evidence import FUNCTIONS

from dre_bench.samplers import make_sampler
from dre_bench.tasks import Scenario
from dre_plugins.recommend import universal_prior
from dre_plugins.universal.targets import Targets

Values = NDArray[np.float64]
SHIPPED = universal_prior.possible_targets
SAMPLERS = ("dre:memory=False", "tpe", "gp")


def outer_fence(values: Values) -> float:
    """Return three interquartile ranges below the lower quartile (Tukey, 1977)."""
    lower, upper = np.quantile(values, [0.25, 0.75])
    return float(lower - 3.0 * (upper - lower)) if upper > lower else -np.inf


def ten_distances(values: Values) -> float:
    """Return ten times the distance of the best value from the median, below the median."""
    median, best = np.median(values), values.max()
    return float(median - 10.0 * (best - median)) if best > median else -np.inf


BORDERS = {
    "as it is": lambda values: -np.inf,
    "outer fence": outer_fence,
    "ten distances": ten_distances,
}


def clipped(
    values: Values, ranks: Values, *, border_of: Callable[[Values], float]
) -> tuple[Targets, ...]:
    """Return the targets of values that are clipped, all but their order."""
    finite = values[np.isfinite(values)]
    border = border_of(finite) if len(finite) else -np.inf
    if not (values < border).any():
        return SHIPPED(values, ranks)
    step = 1e-9 * (finite.max() - border)  # keeps the order, which says what can be read
    return SHIPPED(np.where(values < border, border - step * (ranks.max() - ranks), values), ranks)


def values_of(
    scenario: Scenario, task: int, seed: int, *, n_trials: int, version: str, kind: str
) -> list[float]:
    """Return the true values of a study."""
    targets = partial(clipped, border_of=BORDERS[version])
    setattr(universal_prior, "possible_targets", targets)  # noqa: B010
    sample = scenario.random_configurations(500, np.random.default_rng(task))
    values = scenario.evaluate_many(task, sample)[scenario.metric]
    low, median = np.quantile(values, [0.2, 0.5])
    is_outlier = np.random.default_rng(seed).random(n_trials) < 0.05
    true: list[float] = []

    def objective(trial: optuna.Trial) -> float:
        value = scenario.objective(trial, task)
        true.append(value)
        if kind == "chance" and is_outlier[trial.number]:
            true[-1] = min(value, low)
            return float(median - 1e6 * (median - low))
        return float(low - 1e6 * (low - value)) if kind == "region" and value < low else value

    studied(make_sampler(SAMPLERS[0], seed, ""), objective, n_trials)
    return true


def two_outliers(sampler: str, seed: int, *, has_outliers: bool) -> list[float]:
    """Return the values of a bowl; trials 6 and 7 may have 1e6, which counts as 99."""
    true: list[float] = []

    def objective(trial: optuna.Trial) -> float:
        x = [trial.suggest_float(f"x{axis}", -5, 5) for axis in range(3)]
        kind = trial.suggest_categorical("kind", ["a", "b", "c"])
        scale = abs(np.log(trial.suggest_int("n", 1, 100, log=True) / 10))
        value = sum((number - 1) ** 2 for number in x) + (kind != "b") + float(scale)
        is_outlier = has_outliers and trial.number in (6, 7)
        true.append(99.0 if is_outlier else value)
        return 1e6 if is_outlier else value

    study = optuna.create_study(sampler=make_sampler(sampler, seed, ""))
    study.optimize(objective, n_trials=30)
    return true


def main(kind: str, out: str, n_trials: str = "40") -> None:
    """Append a line for each run that is not there."""
    variants = {
        version: partial(values_of, n_trials=int(n_trials), version=version, kind=kind)
        for version in BORDERS
    }
    run_missing(out, runs(FUNCTIONS, n_seeds=8, first=8), variants, prefix="level/")


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if sys.argv[1] == "two":
        for name in SAMPLERS:
            for has in (False, True):
                made = [two_outliers(name, seed, has_outliers=has) for seed in range(8)]
                best = np.minimum.accumulate(made, axis=1)[:, [9, 14, 19, 29]].mean(0)
                print(name, has, best.round(2))
    else:
        main(*sys.argv[1:])
