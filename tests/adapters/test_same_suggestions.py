"""The same history and seed give the same next configuration in every framework."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dre_plugins.recommend.settings import Settings
from dre_plugins.transfer.prior import Prior

optuna = pytest.importorskip("optuna")
tune = pytest.importorskip("ray.tune")
syne_tune = pytest.importorskip("syne_tune.config_space")

from presets import TINY  # noqa: E402

from dre_plugins.adapters.optuna import DRESampler  # noqa: E402
from dre_plugins.adapters.ray_tune import DRESearch  # noqa: E402
from dre_plugins.adapters.syne_tune import DRESearcher  # noqa: E402
from dre_plugins.recommend import AskTell  # noqa: E402
from dre_plugins.space import Categorical, Float, Integer, Ordinal, SearchSpace  # noqa: E402

SPACE = SearchSpace(
    {
        "x": Float(-1.0, 1.0),
        "rate": Float(1e-4, 1.0, "log"),
        "depth": Integer(1, 9),
        "batch": Ordinal((16, 32, 64)),
        "kind": Categorical(("a", "b", "c")),
    }
)
RAY = {
    "x": tune.uniform(-1.0, 1.0),
    "rate": tune.loguniform(1e-4, 1.0),
    "depth": tune.randint(1, 10),
    "batch": tune.choice([16, 32, 64]),
    "kind": tune.choice(["a", "b", "c"]),
}
SYNE_TUNE = {
    "x": syne_tune.uniform(-1.0, 1.0),
    "rate": syne_tune.loguniform(1e-4, 1.0),
    "depth": syne_tune.randint(1, 9),
    "batch": syne_tune.choice([16, 32, 64]),
    "kind": syne_tune.choice(["a", "b", "c"]),
}
DISTRIBUTIONS = {
    "x": optuna.distributions.FloatDistribution(-1.0, 1.0),
    "rate": optuna.distributions.FloatDistribution(1e-4, 1.0, log=True),
    "depth": optuna.distributions.IntDistribution(1, 9),
    "batch": optuna.distributions.CategoricalDistribution([16, 32, 64]),
    "kind": optuna.distributions.CategoricalDistribution(["a", "b", "c"]),
}


@dataclass(frozen=True)
class Past:
    """A trial of the history: its loss, NaN if it failed."""

    configuration: dict[str, Any]
    loss: float


def history_of(n: int) -> list[Past]:
    rng = np.random.default_rng(3)
    history = []
    for number, units in enumerate(rng.random((n, SPACE.n_parameters))):
        c = SPACE.to_configuration(units)
        loss = c["x"] ** 2 + math.log10(c["rate"]) ** 2 + c["depth"] / 9 + (c["kind"] != "b")
        history.append(Past(c, math.nan if number % 5 == 4 else loss))
    return history


def in_optuna(history: list[Past], direction: str, **options: Any) -> dict[str, Any]:
    study = optuna.create_study(direction=direction, sampler=DRESampler(**options))
    sign = 1.0 if direction == "minimize" else -1.0
    for past in history:
        is_ok = not math.isnan(past.loss)
        study.add_trial(
            optuna.trial.create_trial(
                state=optuna.trial.TrialState.COMPLETE if is_ok else optuna.trial.TrialState.FAIL,
                value=sign * past.loss if is_ok else None,
                params=past.configuration,
                distributions=DISTRIBUTIONS,
            )
        )
    return study.ask(DISTRIBUTIONS).params


def in_ray_tune(history: list[Past], direction: str, **options: Any) -> dict[str, Any]:
    sign = 1.0 if direction == "minimize" else -1.0
    search = DRESearch(RAY, metric="loss", mode=direction[:3], **options)
    for past in history:
        search.add_evaluated_point(past.configuration, sign * past.loss)
    return search.suggest("next")


def in_syne_tune(history: list[Past], direction: str, **options: Any) -> dict[str, Any]:
    seed = options.pop("seed")
    searcher = DRESearcher(SYNE_TUNE, random_seed=seed, **options)
    for trial_id, past in enumerate(history):
        searcher.on_trial_complete(trial_id, past.configuration, past.loss)
    return searcher.suggest()


def in_ask_tell(history: list[Past], direction: str, **options: Any) -> dict[str, Any]:
    sign = 1.0 if direction == "minimize" else -1.0
    study = AskTell(SPACE, direction=direction, **options)
    for past in history:
        study.add(past.configuration, sign * past.loss)
    return study.ask()[1]


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("n", [3, 14], ids=["startup", "model"])
@pytest.mark.parametrize("with_prior", [False, True], ids=["alone", "prior"])
def test_every_framework_suggests_the_same(n, direction, with_prior) -> None:
    options: dict[str, Any] = {"seed": 7, "n_startup_trials": 8, "settings": Settings(preset=TINY)}
    if with_prior:
        options["prior"] = Prior.load("xgboost", mapping={"rate": "eta", "depth": "max_depth"})
    history = history_of(n)
    suggested = [
        suggest(history, direction, **options)
        for suggest in (in_optuna, in_ray_tune, in_syne_tune, in_ask_tell)
    ]
    assert suggested[0] == suggested[1] == suggested[2] == suggested[3]
    assert SPACE.contains(suggested[0])
