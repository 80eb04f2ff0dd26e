"""CQR of Syne Tune (Salinas et al., ICML 2023) at its defaults, in the flat space."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
from syne_tune.backend.trial_status import Trial
from syne_tune.config_space import choice, lograndint, loguniform, randint, uniform
from syne_tune.optimizer.baselines import CQR

DISTRIBUTIONS = ("syne-tune", "scikit-learn")
VALUE = "value"


class Searcher:
    """Ask and tell CQR; see the package."""

    def __init__(self, parameters: list[dict[str, Any]], seed: int, trials: int) -> None:
        # Some of Syne Tune draws from the global generator.
        np.random.seed(seed)  # noqa: NPY002
        space = {each["name"]: _domain(**each) for each in parameters}
        self._scheduler = CQR(space, metric=VALUE, do_minimize=False, random_seed=seed)
        self._n_trials = 0

    def ask(self, n: int) -> list[dict[str, Any]]:
        """Return the next configurations."""
        self._trials = []
        for _ in range(n):
            configuration = dict(self._scheduler.suggest().config)
            self._trials.append(Trial(self._n_trials, configuration, datetime.now()))
            self._scheduler.on_trial_add(self._trials[-1])
            self._n_trials += 1
        return [trial.config for trial in self._trials]

    def tell(self, values: list[float]) -> None:
        """Take the values of the last configurations."""
        for trial, value in zip(self._trials, values, strict=True):
            self._scheduler.on_trial_complete(trial, {VALUE: value})


def _domain(
    name: str, kind: str, low: float, high: float, log: bool, choices: list[str], **_: Any
) -> Any:
    if kind == "categorical":
        return choice(choices)
    if kind == "float":
        return loguniform(low, high) if log else uniform(low, high)
    return (lograndint if log else randint)(int(low), int(high))
