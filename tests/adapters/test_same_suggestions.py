"""The same history and seed give the same next configuration in every framework."""

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pytest

from dre_plugins.recommend.settings import Settings
from dre_plugins.transfer.prior import Prior

optuna = pytest.importorskip("optuna")
tune = pytest.importorskip("ray.tune")
config_space = pytest.importorskip("syne_tune.config_space")

from presets import TINY  # noqa: E402
from syne_tune.backend.trial_status import Trial as SyneTuneTrial  # noqa: E402

from dre_plugins.adapters.optuna import DRESampler  # noqa: E402
from dre_plugins.adapters.ray_tune import DRESearch  # noqa: E402
from dre_plugins.adapters.syne_tune import MODRE, DRESearcher  # noqa: E402
from dre_plugins.space import Categorical, Float, Integer, Ordinal, SearchSpace  # noqa: E402
from dre_plugins.study import AskTell  # noqa: E402

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
    "x": config_space.uniform(-1.0, 1.0),
    "rate": config_space.loguniform(1e-4, 1.0),
    "depth": config_space.randint(1, 9),
    "batch": config_space.choice([16, 32, 64]),
    "kind": config_space.choice(["a", "b", "c"]),
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
    """A trial of the history: its losses, one of them NaN if it failed."""

    configuration: dict[str, Any]
    losses: tuple[float, ...]


# For each objective whether small (1) or large (-1) values are good.
Signs = tuple[int, ...]
METRICS = ["loss", "size"]


def history_of(n: int, n_objectives: int) -> list[Past]:
    rng = np.random.default_rng(3)
    history = []
    for number, units in enumerate(rng.random((n, SPACE.n_parameters))):
        c = SPACE.to_configuration(units)
        loss = c["x"] ** 2 + math.log10(c["rate"]) ** 2 + c["depth"] / 9 + (c["kind"] != "b")
        losses = [loss, 1.0 - c["depth"] / 9][:n_objectives]
        if number % 5 == 4:
            losses[number % n_objectives] = math.nan
        history.append(Past(c, tuple(losses)))
    return history


def signed(past: Past, signs: Signs) -> list[float]:
    return [sign * loss for sign, loss in zip(signs, past.losses, strict=True)]


def in_optuna(history: list[Past], signs: Signs, **options: Any) -> dict[str, Any]:
    directions = ["minimize" if sign > 0 else "maximize" for sign in signs]
    study = optuna.create_study(directions=directions, sampler=DRESampler(**options))
    for past in history:
        is_ok = not any(map(math.isnan, past.losses))
        study.add_trial(
            optuna.trial.create_trial(
                state=optuna.trial.TrialState.COMPLETE if is_ok else optuna.trial.TrialState.FAIL,
                values=signed(past, signs) if is_ok else None,
                params=past.configuration,
                distributions=DISTRIBUTIONS,
            )
        )
    return study.ask(DISTRIBUTIONS).params


def in_ray_tune(history: list[Past], signs: Signs, **options: Any) -> dict[str, Any]:
    modes = ["min" if sign > 0 else "max" for sign in signs]
    metric, mode = ("loss", modes[0]) if len(signs) == 1 else (METRICS, modes)
    search = DRESearch(RAY, metric=metric, mode=mode, **options)
    for past in history:
        values = signed(past, signs)
        search.add_evaluated_point(past.configuration, values if values[1:] else values[0])
    return search.suggest("next")


def in_syne_tune(history: list[Past], signs: Signs, **options: Any) -> dict[str, Any]:
    options["random_seed"] = options.pop("seed")
    if len(signs) == 1:  # a searcher is told what is to be minimised
        searcher = DRESearcher(SYNE_TUNE, **options)
        for trial_id, past in enumerate(history):
            searcher.on_trial_complete(trial_id, past.configuration, *past.losses)
        return searcher.suggest()
    scheduler = MODRE(SYNE_TUNE, METRICS, [sign > 0 for sign in signs], **options)
    for trial_id, past in enumerate(history):
        trial = SyneTuneTrial(trial_id, past.configuration, datetime.now())
        result = dict(zip(METRICS, signed(past, signs), strict=True))
        scheduler.on_trial_complete(trial, result)
    return scheduler.suggest().config


def in_ask_tell(history: list[Past], signs: Signs, **options: Any) -> dict[str, Any]:
    directions = ["minimize" if sign > 0 else "maximize" for sign in signs]
    study = AskTell(SPACE, direction=directions, **options)
    for past in history:
        values = signed(past, signs)
        study.add(past.configuration, values if values[1:] else values[0])
    return study.ask()[1]


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("signs", [(1,), (-1,), (1, 1), (-1, 1), (-1, -1)], ids=str)
@pytest.mark.parametrize("n", [3, 14], ids=["startup", "model"])
@pytest.mark.parametrize("with_prior", [False, True], ids=["alone", "prior"])
def test_every_framework_suggests_the_same(n, signs, with_prior) -> None:
    options: dict[str, Any] = {"seed": 7, "n_startup_trials": 8, "settings": Settings(preset=TINY)}
    if with_prior:
        options["prior"] = Prior.load("xgboost", mapping={"rate": "eta", "depth": "max_depth"})
    history = history_of(n, len(signs))
    suggested = [
        suggest(history, signs, **options)
        for suggest in (in_optuna, in_ray_tune, in_syne_tune, in_ask_tell)
    ]
    assert suggested[0] == suggested[1] == suggested[2] == suggested[3]
    assert SPACE.contains(suggested[0])
