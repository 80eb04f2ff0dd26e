"""Stating a default changes no suggestion, whichever framework asks for it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import optuna
import pytest
from ray import tune
from syne_tune.backend.trial_status import Trial as SyneTuneTrial
from syne_tune.config_space import uniform

from dre_plugins.adapters.optuna import DRESampler
from dre_plugins.adapters.ray_tune import DRESearch
from dre_plugins.adapters.syne_tune import DRE, DRESearcher
from dre_plugins.adapters.table import DRETable
from dre_plugins.engine import PRESETS
from dre_plugins.recommend import AskTell, Recommender, RecommenderSettings, Trial, TrialState
from dre_plugins.recommend.settings import Settings
from dre_plugins.space import Float, SearchSpace

N_TRIALS = 15
PLANE = SearchSpace({"x": Float(-1.0, 1.0), "y": Float(-1.0, 1.0)})
# What None stands for: it is the default, too.
MEANT: Mapping[str, Any] = {"acquisition": "log-rank-ei", "preset": PRESETS["default"]}

Points = list[tuple[float, float]]


def value(x: float, y: float) -> float:
    return (x - 0.4) ** 2 + (y + 0.7) ** 2


def by_optuna(stated: Mapping[str, Any]) -> tuple[Points, int]:
    sampler = DRESampler(**{"seed": 1, **stated})
    study = optuna.create_study(sampler=sampler)
    for _ in range(N_TRIALS):
        trial = study.ask()
        x, y = trial.suggest_float("x", -1.0, 1.0), trial.suggest_float("y", -1.0, 1.0)
        study.tell(trial, value(x, y))
    points = [(trial.params["x"], trial.params["y"]) for trial in study.trials]
    return points, sampler.stats["universal-prior"]


def by_ray(stated: Mapping[str, Any]) -> tuple[Points, int]:
    space = {"x": tune.uniform(-1.0, 1.0), "y": tune.uniform(-1.0, 1.0)}
    search = DRESearch(**{"space": space, "metric": "m", "mode": "min", "seed": 1, **stated})
    points: Points = []
    for number in range(N_TRIALS):
        config = search.suggest(str(number))
        points.append((config["x"], config["y"]))
        search.on_trial_complete(str(number), {"m": value(*points[-1])})
    return points, search.stats["universal-prior"]


def by_syne_tune(stated: Mapping[str, Any]) -> tuple[Points, int]:
    space = {"x": uniform(-1.0, 1.0), "y": uniform(-1.0, 1.0)}
    searcher = DRESearcher(**{"config_space": space, "random_seed": 1, **stated})
    points: Points = []
    for number in range(N_TRIALS):
        config = searcher.suggest()
        points.append((config["x"], config["y"]))
        searcher.on_trial_complete(number, config, value(*points[-1]))
    return points, searcher.stats["universal-prior"]


def by_scheduler(stated: Mapping[str, Any]) -> tuple[Points, int]:
    from datetime import datetime

    space = {"x": uniform(-1.0, 1.0), "y": uniform(-1.0, 1.0)}
    scheduler = DRE(**{"config_space": space, "metric": "m", "random_seed": 1, **stated})
    points: Points = []
    for number in range(N_TRIALS):
        config = scheduler.suggest().config
        points.append((config["x"], config["y"]))
        trial = SyneTuneTrial(number, config, datetime.now())
        scheduler.on_trial_add(trial)
        scheduler.on_trial_complete(trial, {"m": value(*points[-1])})
    return points, scheduler.searcher.stats["universal-prior"]


def by_ask_and_tell(stated: Mapping[str, Any]) -> tuple[Points, int]:
    study = AskTell(**{"space": PLANE, "seed": 1, **stated})
    for _ in range(N_TRIALS):
        number, configuration = study.ask()
        study.tell(number, value(**configuration))
    points = [(trial.configuration["x"], trial.configuration["y"]) for trial in study.trials]
    return points, study.stats["universal-prior"]


def by_recommender(stated: Mapping[str, Any]) -> tuple[Points, int]:
    names = inspect.signature(Recommender).parameters
    arguments = {name: given for name, given in stated.items() if name in names}
    settings = {name: given for name, given in stated.items() if name not in names}
    arguments = {"space": PLANE, "seed": 1, **arguments}
    if settings:
        arguments["settings"] = RecommenderSettings(**settings)
    recommender = Recommender(**arguments)
    history: list[Trial] = []
    for index in range(N_TRIALS):
        (suggestion,) = recommender.suggest(history, index=index)
        worth = -value(**suggestion.configuration)
        history.append(Trial(suggestion.configuration, TrialState.COMPLETE, worth))
    points = [(trial.configuration["x"], trial.configuration["y"]) for trial in history]
    return points, recommender.stats["universal-prior"]


def by_table(stated: Mapping[str, Any]) -> tuple[Points, int]:
    table = DRETable(**{"seed": 1, **stated})
    points: Points = [(0.1 * i, 0.9 - 0.1 * i) for i in range(6)]
    for _ in range(N_TRIALS - len(points)):
        values = [-value(*point) for point in points]
        x, y = table.observe_and_suggest(points, values)
        points.append((float(x), float(y)))
    return points, table.stats["universal-prior"]


WAYS: Mapping[str, tuple[Callable[[Mapping[str, Any]], tuple[Points, int]], tuple[type, ...]]] = {
    "optuna": (by_optuna, (DRESampler, Settings)),
    "ray": (by_ray, (DRESearch, Settings)),
    "syne-tune": (by_syne_tune, (DRESearcher, Settings)),
    "syne-tune-scheduler": (by_scheduler, (DRE, DRESearcher, Settings)),
    "ask-tell": (by_ask_and_tell, (AskTell, Settings)),
    "recommender": (by_recommender, (Recommender, RecommenderSettings)),
    "table": (by_table, (DRETable, Settings)),
}
# What the runs above give themselves.
GIVEN = {"space", "config_space", "metric", "mode", "seed", "random_seed"}


def defaults(classes: tuple[type, ...]) -> dict[str, Any]:
    """Return all arguments with a default, by name."""
    return {
        name: parameter.default
        for one in classes
        for name, parameter in inspect.signature(one).parameters.items()
        if parameter.default is not inspect.Parameter.empty and name not in GIVEN
    }


def run(way: str, stated: Mapping[str, Any]) -> tuple[Points, int]:
    """Run a study with these arguments; all but a recommender take some in `settings`."""
    if way == "recommender":
        return WAYS[way][0](stated)
    names = {field.name for field in fields(Settings)}
    arguments = {name: value for name, value in stated.items() if name not in names}
    settings = {name: value for name, value in stated.items() if name in names}
    return WAYS[way][0]({**arguments, "settings": Settings(**settings)} if settings else arguments)


@pytest.fixture(scope="module")
def unstated() -> Callable[[str], tuple[Points, int]]:
    found: dict[str, tuple[Points, int]] = {}

    def of(way: str) -> tuple[Points, int]:
        if way not in found:
            found[way] = run(way, {})
        return found[way]

    return of


@pytest.mark.parametrize("way", WAYS)
def test_all_defaults_may_be_stated(way: str, unstated) -> None:
    stated = defaults(WAYS[way][1])
    assert {"prior", "acquisition", "preset", "failed"} <= stated.keys()
    assert run(way, stated) == unstated(way)


@pytest.mark.parametrize("argument", MEANT)
@pytest.mark.parametrize("way", WAYS)
def test_what_none_stands_for_may_be_stated(way: str, argument: str, unstated) -> None:
    assert unstated(way)[1] >= 4
    assert run(way, {argument: MEANT[argument]}) == unstated(way)
