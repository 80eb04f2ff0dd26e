"""CQR of Syne Tune (Salinas et al., ICML 2023) at its defaults, and what Syne Tune transfers by.

All of them search the flat space. `ZeroShotTransfer` of 0.16.0 is not here: its scheduler asks
random search, and it raises where configurations differ between past studies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
from syne_tune.backend.trial_status import Trial
from syne_tune.config_space import choice, lograndint, loguniform, randint, uniform
from syne_tune.optimizer.baselines import CQR
from syne_tune.optimizer.schedulers.single_objective_scheduler import SingleObjectiveScheduler
from syne_tune.optimizer.schedulers.transfer_learning import (
    bounding_box,
    transfer_learning_task_evaluation,
)

DISTRIBUTIONS = ("syne-tune", "scikit-learn")
VALUE = "value"

Past = Sequence[Mapping[str, Any]]


class Searcher:
    """Ask and tell a scheduler; see the package.

    Args:
        parameters: The search space.
        seed: Seed of the searcher.
        trials: How long the study will be.
        method: `cqr`; `box` is CQR between the best of past studies (`BoundingBox`, Perrone et
            al., 2019); `quantile` samples from boosted trees of all past trials (Salinas et al.,
            ICML 2020), and what is told changes nothing.
        past: `configurations` and `values` of each past study, which needs the same space.
    """

    def __init__(
        self,
        parameters: list[dict[str, Any]],
        seed: int,
        trials: int,
        method: str = "cqr",
        past: Past = (),
    ) -> None:
        # Some of Syne Tune draws from the global generator.
        np.random.seed(seed)  # noqa: NPY002
        space = {parameter["name"]: _domain(**parameter) for parameter in parameters}
        self._scheduler = METHODS[method](space, past, seed)
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


def _cqr(space: dict[str, Any], past: Past, seed: int) -> Any:
    return CQR(space, metric=VALUE, do_minimize=False, random_seed=seed)


def _box(space: dict[str, Any], past: Past, seed: int) -> Any:
    evaluations = _evaluations(space, past, sign=1.0)
    return bounding_box.BoundingBox(
        CQR, space, VALUE, evaluations, do_minimize=False, random_seed=seed
    )


def _quantile(space: dict[str, Any], past: Past, seed: int) -> Any:
    from syne_tune.optimizer.schedulers.transfer_learning.quantile_based import (  # needs xgboost
        quantile_based_searcher,
    )

    # The searcher minimises, whatever its scheduler says.
    evaluations = _evaluations(space, past, sign=-1.0)
    searcher = quantile_based_searcher.QuantileBasedSurrogateSearcher(
        space, evaluations, random_seed=seed
    )
    return SingleObjectiveScheduler(space, VALUE, searcher=searcher)


METHODS = {"cqr": _cqr, "box": _box, "quantile": _quantile}


def _evaluations(space: dict[str, Any], past: Past, *, sign: float) -> dict[str, Any]:
    """Return past studies as Syne Tune has them, values multiplied by a sign."""
    return {
        f"past{number}": transfer_learning_task_evaluation.TransferLearningTaskEvaluations(
            space,
            pd.DataFrame(study["configurations"])[[*space]],
            [VALUE],
            sign * np.array(study["values"])[:, None, None, None],
        )
        for number, study in enumerate(past)
    }


def _domain(
    name: str, kind: str, low: float, high: float, log: bool, choices: list[str], **_: Any
) -> Any:
    if kind == "categorical":
        return choice(choices)
    if kind == "float":
        return loguniform(low, high) if log else uniform(low, high)
    return (lograndint if log else randint)(int(low), int(high))
