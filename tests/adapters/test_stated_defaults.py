"""Stating a default changes no suggestion, whichever framework asks for it."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

import pytest
from searches import OptunaSearch, RaySearch, Search, SyneTuneSearch
from small_spaces import PLANE, told
from syne_tune.backend.trial_status import Trial as SyneTuneTrial
from syne_tune.config_space import uniform
from syne_tune.optimizer.schedulers.single_fidelity_scheduler import SingleFidelityScheduler

from dre_plugins.adapters.optuna import DRESampler
from dre_plugins.adapters.ray_tune import DRESearch
from dre_plugins.adapters.syne_tune import (
    ASHADRE,
    DRE,
    MODRE,
    DRESearcher,
    MultiObjectiveDRESearcher,
)
from dre_plugins.engine import PRESETS
from dre_plugins.recommend import Recommender, RecommenderSettings, Trial, TrialState
from dre_plugins.recommend.settings import Settings
from dre_plugins.study import AskTell

N_TRIALS = 12  # with several objectives the ensemble proposes after ten
SPACE = {"x": uniform(-1.0, 1.0), "y": uniform(-1.0, 1.0)}  # of Syne Tune
# What stands for None, the default of both.
MEANT: Mapping[str, Any] = {"acquisition": "log-rank-ei", "preset": PRESETS["default"]}

# What was suggested, and how much of it by the universal prior.
Run = tuple[list[Any], int]


def value(x: float, y: float) -> float:
    return (x - 0.4) ** 2 + (y + 0.7) ** 2


def by_framework(framework: type[Search]) -> Callable[[Mapping[str, Any]], Run]:
    def run(stated: Mapping[str, Any]) -> Run:
        outcome = framework(is_tiny=False, **{"seed": 1, **stated}).run(N_TRIALS)
        return outcome.configurations, outcome.stats["universal-prior"]

    return run


def by_scheduler(made: Callable[..., Any], **needed: Any) -> Callable[[Mapping[str, Any]], Run]:
    """Run a scheduler of Syne Tune; all its metrics have the same value."""

    def run(stated: Mapping[str, Any]) -> Run:
        scheduler = made(**{"config_space": SPACE, "random_seed": 1, **needed, **stated})
        configurations = []
        for number in range(N_TRIALS):
            config = scheduler.suggest().config
            configurations.append(config)
            trial = SyneTuneTrial(number, config, datetime.now())
            scheduler.on_trial_add(trial)
            result = {"m": value(**config), "size": value(**config), "epoch": 9}
            scheduler.on_trial_complete(trial, result)
        return configurations, scheduler.searcher.stats["universal-prior"]

    return run


def in_its_own_scheduler(config_space: Any, random_seed: int, **stated: Any) -> Any:
    searcher = MultiObjectiveDRESearcher(config_space, random_seed=random_seed, **stated)
    return SingleFidelityScheduler(config_space, ["m", "size"], searcher=searcher)


def by_ask_and_tell(stated: Mapping[str, Any]) -> Run:
    study = AskTell(**{"space": PLANE, "seed": 1, **stated})
    told(study, N_TRIALS, lambda configuration: value(**configuration))
    points = [(trial.configuration["x"], trial.configuration["y"]) for trial in study.trials]
    return points, study.stats["universal-prior"]


def by_recommender(stated: Mapping[str, Any]) -> Run:
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


WAYS: Mapping[str, tuple[Callable[[Mapping[str, Any]], Run], tuple[type, ...]]] = {
    "optuna": (by_framework(OptunaSearch), (DRESampler, Settings)),
    "ray": (by_framework(RaySearch), (DRESearch, Settings)),
    "syne-tune": (by_framework(SyneTuneSearch), (DRESearcher, Settings)),
    "DRE": (by_scheduler(DRE, metric="m"), (DRE, DRESearcher, Settings)),
    "ASHADRE": (
        by_scheduler(ASHADRE, metric="m", time_attr="epoch", max_t=9),
        (ASHADRE, DRESearcher, Settings),
    ),
    "MODRE": (by_scheduler(MODRE, metrics=["m", "size"]), (MODRE, DRESearcher, Settings)),
    "several-objectives": (
        by_scheduler(in_its_own_scheduler),
        (MultiObjectiveDRESearcher, DRESearcher, Settings),
    ),
    "ask-tell": (by_ask_and_tell, (AskTell, Settings)),
    "recommender": (by_recommender, (Recommender, RecommenderSettings)),
}
# What the runs above give themselves.
GIVEN = {"space", "config_space", "metric", "mode", "seed", "random_seed"}


def defaults(classes: tuple[type, ...]) -> dict[str, Any]:
    """Return all arguments with a default, by name."""
    return {
        name: parameter.default
        for searched in classes
        for name, parameter in inspect.signature(searched).parameters.items()
        if parameter.default is not inspect.Parameter.empty and name not in GIVEN
    }


def run(way: str, stated: Mapping[str, Any]) -> Run:
    """Run a study with these arguments; all but a recommender take some in `settings`."""
    if way == "recommender":
        return WAYS[way][0](stated)
    names = {field.name for field in fields(Settings)}
    arguments = {name: given for name, given in stated.items() if name not in names}
    settings = {name: given for name, given in stated.items() if name in names}
    return WAYS[way][0]({**arguments, "settings": Settings(**settings)} if settings else arguments)


@pytest.mark.parametrize("way", WAYS)
def test_all_defaults_may_be_stated(way: str) -> None:
    """Each argument by its default, and what None stands for by its name."""
    stated = defaults(WAYS[way][1])
    assert {"prior", "acquisition", "preset", "failed"} <= stated.keys()
    unstated = run(way, {})
    # With several objectives the universal prior takes no turns.
    assert unstated[1] >= 3 or way in ("MODRE", "several-objectives")
    assert run(way, stated | MEANT) == unstated
