"""Seconds per suggestion of Syne Tune's own searchers, beside those of `dre_bench.speed`."""

from __future__ import annotations

import time
from importlib.util import find_spec

import numpy as np

# Searchers by the names of Syne Tune, and what each needs beside it.
_NEEDS = {"bore": "xgboost", "botorch": "botorch"}
PREFIX = "syne-tune-"


def installed() -> tuple[str, ...]:
    """Return the names of searchers that can be timed here, such as "syne-tune-botorch"."""
    if find_spec("syne_tune") is None:
        return ()
    return tuple(f"{PREFIX}{name}" for name, need in _NEEDS.items() if find_spec(need) is not None)


def searcher_seconds(name: str, n_trials: int, repeats: int, dimension: int) -> list[float]:
    """Return the seconds of each suggestion after `n_trials` random trials of a sphere.

    It has no noise, of which Syne Tune's process believes that there is none: it would not fit.
    The first suggestion is not counted; all are told, because BoTorch mistakes others for told.

    Args:
        name: One of `installed`.
        n_trials: Trials that have ended.
        repeats: Suggestions.
        dimension: Number of parameters.
    """
    from syne_tune.config_space import uniform
    from syne_tune.optimizer.schedulers.searchers.searcher_factory import searcher_cls

    space = {f"x{i}": uniform(-1.0, 1.0) for i in range(dimension)}
    rng = np.random.default_rng(0)
    points = rng.uniform(-1.0, 1.0, (n_trials, dimension))
    configurations = [dict(zip(space, point.tolist(), strict=True)) for point in points]
    searcher = searcher_cls(name.removeprefix(PREFIX))(
        space, points_to_evaluate=configurations, random_seed=0
    )
    seconds = []
    for number in range(n_trials + repeats + 1):  # BoTorch learns from what it has suggested only
        start = time.perf_counter()
        configuration = searcher.suggest()
        seconds.append(time.perf_counter() - start)
        value = sum(x**2 for x in configuration.values())
        searcher.on_trial_complete(number, configuration, value)
    return seconds[n_trials + 1 :]
