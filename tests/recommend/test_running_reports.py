"""What running trials have reported counts, and counts the same in every framework."""

import math
from dataclasses import replace

import numpy as np
import optuna
import pytest
from ray import tune
from small_spaces import PLANE
from syne_tune.config_space import uniform
from test_universal_proposer import QUICK

from dre_plugins.adapters.optuna import DRESampler
from dre_plugins.adapters.ray_tune import DRESearch
from dre_plugins.adapters.syne_tune import DRESearcher
from dre_plugins.recommend import Recommender, RecommenderSettings, Trial, TrialState
from dre_plugins.recommend.settings import Settings
from dre_plugins.recommend.trials import observed_trials
from dre_plugins.study import AskTell

OPTIONS = {"settings": Settings(preset=QUICK), "n_startup_trials": 4}
ROWS = np.random.default_rng(0).uniform(-1.0, 1.0, (10, 2)).tolist()
# Of the ten trials two still run; how many of four steps each of them has reported.
RUNNING = {8: 2, 9: 4}


def value(x: float, y: float, step: int) -> float:
    return (x - 0.4) ** 2 + (y + 0.7) ** 2 + 1.0 / step


def steps_of(number: int) -> range:
    return range(1, 1 + RUNNING.get(number, 4))


def by_ask_and_tell() -> tuple[float, float]:
    study = AskTell(PLANE, seed=1, **OPTIONS)
    for number, (x, y) in enumerate(ROWS):
        study.enqueue({"x": x, "y": y})
        study.ask()
        for step in steps_of(number):
            study.report(number, step, value(x, y, step))
        if number not in RUNNING:
            study.tell(number, value(x, y, 4))
    _, configuration = study.ask()
    return configuration["x"], configuration["y"]


def by_optuna() -> tuple[float, float]:
    study = optuna.create_study(sampler=DRESampler(seed=1, **OPTIONS))
    for number, (x, y) in enumerate(ROWS):
        study.enqueue_trial({"x": x, "y": y})
        trial = study.ask()
        trial.suggest_float("x", -1.0, 1.0), trial.suggest_float("y", -1.0, 1.0)
        for step in steps_of(number):
            trial.report(value(x, y, step), step)
        if number not in RUNNING:
            study.tell(trial, value(x, y, 4))
    trial = study.ask()
    return trial.suggest_float("x", -1.0, 1.0), trial.suggest_float("y", -1.0, 1.0)


def by_ray() -> tuple[float, float]:
    space = {"x": tune.uniform(-1.0, 1.0), "y": tune.uniform(-1.0, 1.0)}
    points = [{"x": x, "y": y} for x, y in ROWS]
    search = DRESearch(space, "m", "min", points, seed=1, **OPTIONS)
    for number, (x, y) in enumerate(ROWS):
        search.suggest(str(number))
        for step in steps_of(number):
            result = {"m": value(x, y, step), "training_iteration": step}
            search.on_trial_result(str(number), result)
        if number not in RUNNING:
            search.on_trial_complete(str(number), result)
    config = search.suggest("next")
    return config["x"], config["y"]


def by_syne_tune() -> tuple[float, float]:
    space = {"x": uniform(-1.0, 1.0), "y": uniform(-1.0, 1.0)}
    points = [{"x": x, "y": y} for x, y in ROWS]
    searcher = DRESearcher(space, points, random_seed=1, **OPTIONS)
    for number, (x, y) in enumerate(ROWS):
        config = searcher.suggest()
        searcher.on_trial_add(number, config)
        for step in steps_of(number)[: None if number in RUNNING else -1]:
            searcher.on_trial_result(number, config, value(x, y, step), step)
        if number not in RUNNING:
            searcher.on_trial_complete(number, config, value(x, y, 4), 4)
    config = searcher.suggest()
    return config["x"], config["y"]


@pytest.mark.parametrize("suggested", [by_optuna, by_ray, by_syne_tune])
def test_the_same_reports_give_the_same_suggestion(suggested) -> None:
    assert suggested() == by_ask_and_tell()


def test_what_a_running_trial_has_reported_changes_the_next_one() -> None:
    recommender = Recommender(PLANE, RecommenderSettings(preset=QUICK, n_startup_trials=4), seed=0)
    complete = [
        Trial({"x": x, "y": y}, TrialState.COMPLETE, -value(x, y, 4), {4.0: -value(x, y, 4)})
        for x, y in ROWS[:8]
    ]
    silent = Trial({"x": 0.4, "y": -0.7}, TrialState.RUNNING)
    good = replace(silent, rungs={4.0: 10.0})
    suggestions = [recommender.suggest([*complete, t], index=10)[0] for t in (silent, good)]
    assert suggestions[0].configuration != suggestions[1].configuration


def test_how_running_trials_count() -> None:
    def running(rungs) -> Trial:
        return Trial({"x": 0.0, "y": 0.0}, TrialState.RUNNING, rungs=rungs)

    history = [running({}), running({1.0: 5.0}), running({1.0: 4.0, 2.0: 3.0})]
    states = [trial.state for trial in observed_trials(history)]
    assert states == [TrialState.RUNNING, TrialState.PRUNED, TrialState.COMPLETE]
    assert observed_trials(history)[2].value == 3.0
    diverged = running({1.0: 9.0, 1.5: math.nan})  # it must not attract by its first report
    assert observed_trials([*history, diverged])[3].state is TrialState.FAILED
    assert observed_trials(observed_trials(history)) == observed_trials(history)


def test_steps_in_any_order_are_no_learning_curve() -> None:
    """WilcoxonPruner's steps are problem instances, whose values are not on one scale."""
    whole = Trial({}, TrialState.COMPLETE, 5.5, {0.0: 1.0, 1.0: 5.0, 2.0: 7.0, 3.0: 9.0})
    counted = {
        (3.0,): TrialState.RUNNING,
        (1.0, 2.0): TrialState.RUNNING,
        (0.0, 1.0): TrialState.PRUNED,
        (0.0, 1.0, 2.0, 3.0): TrialState.COMPLETE,
        (0.5, 2.5): TrialState.PRUNED,  # a trial with an interval of its own
    }
    running = [Trial({}, TrialState.RUNNING, rungs=dict.fromkeys(steps, 4.0)) for steps in counted]
    observed = observed_trials([whole, *running])
    assert [trial.state for trial in observed[1:]] == [*counted.values()]
    assert observed_trials(observed) == observed
