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
        self._number = 0

    def ask(self) -> dict[str, Any]:
        """Return the next configuration."""
        self._configuration = dict(self._scheduler.suggest().config)
        return self._configuration

    def tell(self, value: float) -> None:
        """Take the value of the last configuration."""
        trial = Trial(self._number, self._configuration, datetime.now())
        self._scheduler.on_trial_add(trial)
        self._scheduler.on_trial_complete(trial, {VALUE: value})
        self._number += 1


def _domain(
    name: str, kind: str, low: float, high: float, log: bool, choices: list[str], **_: Any
) -> Any:
    if kind == "categorical":
        return choice(choices)
    if kind == "float":
        return loguniform(low, high) if log else uniform(low, high)
    return (lograndint if log else randint)(int(low), int(high))
