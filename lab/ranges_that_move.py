"""Ranges that a user changes after 20 trials.

``python lab/ranges_that_move.py OUT FIRST_SEED LAST_SEED [VERSIONS]``. Each study is made once
with every version: what trials out of the newest range are to the models. The first 20 trials are
the same in all of them. Prints and appends a line for each study.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import optuna

from dre_plugins.adapters.optuna import DRESampler, conversion
from dre_plugins.recommend.trials import Trial
from dre_plugins.space import SearchSpace
from dre_plugins.space.base import UNIT_MAX, UNIT_MIN, Mask

N_BEFORE, N_AFTER = 20, 15
Point = Sequence[float]


def rosenbrock(x: Point) -> float:
    a = [2.0 * v for v in x]
    return sum(10 * (v - (u + 1) ** 2 + 1) ** 2 + u**2 for u, v in pairwise(a))


def ackley(x: Point) -> float:
    square = sum(v * v for v in x) / len(x)
    waves = sum(math.cos(12 * v) for v in x) / len(x)
    return 1 - math.exp(-2 * math.sqrt(square)) + 0.1 * (1 - waves)


# Functions of parameters about 0, where the optimum is, with the number of parameters.
FUNCTIONS: dict[str, tuple[int, Callable[[Point], float]]] = {
    "sphere": (3, lambda x: sum(v * v for v in x)),
    "ellipsoid": (4, lambda x: sum(4**i * v * v for i, v in enumerate(x))),
    "rosenbrock": (2, rosenbrock),
    "ackley": (3, ackley),
    "absolute": (4, lambda x: sum((i + 1) * abs(v) for i, v in enumerate(x))),
    "valley": (3, lambda x: abs(sum(x)) + 0.1 * sum(v * v for v in x)),
}
KINDS = ("zoom", "zoom one", "move", "move one")
VERSIONS = ("clipped", "dropped if clipped", "dropped", "covering", "spanned")
SHIPPED = conversion.spanning


def ranges_after(kind: str, best: Point) -> list[tuple[float, float]]:
    """Return the new ranges: a fifth of [0, 1] about the best trial, or [.4, .7]."""
    if kind.startswith("move"):
        new = [(0.4, 0.7)] * len(best)
    else:
        new = [(low := min(max(v - 0.1, 0.0), 0.8), low + 0.2) for v in best]
    return [new[0]] + [(0.0, 1.0)] * (len(best) - 1) if kind.endswith("one") else new


def ranges_before(kind: str, n: int) -> list[tuple[float, float]]:
    first = (0.0, 0.2) if kind.startswith("move") else (0.0, 1.0)
    return [first] + [(0.0, 1.0) if kind.endswith("one") else first] * (n - 1)


class Default(DRESampler):
    def __init__(self, seed: int, **options: Any) -> None:
        super().__init__(seed=seed, memory=False, prior="universal", **options)


class Covering(Default):
    """Model the union of all ranges, and search the newest one by a rule."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, valid=self._is_inside)
        self._newest: dict[str, tuple[float, float]] = {}
        self._newest_only = self._suggestions.suggest
        self._suggestions.suggest = self._suggest  # type: ignore[method-assign]

    def _is_inside(self, c: dict[str, float]) -> bool:
        return all(low <= c[n] <= high for n, (low, high) in self._newest.items())

    def _suggest(self, study, trial, search_space, trials, fixed):  # type: ignore
        newest = {n: (d.low, d.high) for n, d in search_space.items()}
        if newest != self._newest:
            self._newest = newest
            self._rules._rule = self._rules._new(SearchSpace({}))
        covered = conversion.covering(search_space, trials)
        return self._newest_only(study, trial, covered, trials, fixed)


def treated(version: str) -> Callable[..., tuple[SearchSpace, Mask]]:
    """Return what replaces `conversion.spanning`: a space, and which trials count."""

    def spanning(
        space: SearchSpace, trials: object, history: Sequence[Trial]
    ) -> tuple[SearchSpace, Mask]:
        units = space.to_units([known.configuration for known in history])
        low, high = (-1e-9, 1 + 1e-9) if version == "dropped" else (UNIT_MIN, UNIT_MAX)
        counts: Mask = np.all((units > low) & (units < high), axis=1)
        return space, counts | (not version.startswith("dropped"))

    return SHIPPED if version == "spanned" else spanning


def study_of(
    function: str, kind: str, seed: int, versions: Sequence[str]
) -> dict[str, list[float]]:
    """Return the best values after 20, 25, 30 and 35 trials of each version."""
    n, f = FUNCTIONS[function]
    rng = np.random.default_rng([seed, n, len(function)])
    optimum = rng.uniform(0.45, 0.65, n) if kind.startswith("move") else rng.uniform(0.1, 0.9, n)
    ranges = ranges_before(kind, n)

    def objective(trial: optuna.Trial) -> float:
        x = [trial.suggest_float(f"x{i}", *r) for i, r in enumerate(ranges)]
        return f([float(v - o) for v, o in zip(x, optimum, strict=True)])

    setattr(conversion, "spanning", SHIPPED)  # noqa: B010
    sampler: DRESampler = Default(seed)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=N_BEFORE)
    past = study.trials
    ranges = ranges_after(kind, [study.best_params[f"x{i}"] for i in range(n)])
    results = {}
    for version in versions:
        setattr(conversion, "spanning", treated(version))  # noqa: B010
        kind_of = Covering if version == "covering" else Default
        sampler = kind_of(seed)
        study = optuna.create_study(sampler=sampler)
        study.add_trials(past)
        study.optimize(objective, n_trials=N_AFTER)
        best = np.minimum.accumulate([float(trial.value or 0.0) for trial in study.trials])
        results[version] = [float(best[k - 1]) for k in (20, 25, 30, 35)]
    return results


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    chosen = sys.argv[4].split(",") if len(sys.argv) > 4 else VERSIONS
    for seed in range(int(sys.argv[2]), int(sys.argv[3])):
        for kind in KINDS:
            for function in FUNCTIONS:
                results = study_of(function, kind, seed, chosen)
                line = {"seed": seed, "kind": kind, "function": function, **results}
                print(line, flush=True)
                with open(sys.argv[1], "a") as file:
                    file.write(json.dumps(line) + "\n")
