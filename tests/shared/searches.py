"""The three frameworks in one manner, for tests of what must hold in all of them.

Each is a short function of its own that runs trials as the framework would and returns what was
suggested and counted. Nothing here is imported before it is needed.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import pytest
from presets import TINY

from dre_plugins.recommend.settings import Settings

Configuration = dict[str, Any]
# What every search is given, unless it is told otherwise.
TINY_ARGUMENTS: dict[str, Any] = {"settings": Settings(preset=TINY), "n_startup_trials": 4}
Loss = Callable[[Configuration], float]


class Outcome(NamedTuple):
    """Configurations in order, how many trials ended well, and the counters."""

    configurations: list[Configuration]
    n_complete: int
    stats: Counter[str]


def loss(configuration: Configuration) -> float:
    """Return a value on the space of `run`, 0 at best."""
    return (configuration["x"] - 0.3) ** 2 + abs(configuration["n"] - 4) / 10


class OptunaSearch:
    """A study in memory; points are enqueued."""

    def __init__(
        self, *, is_tiny: bool = True, points: Sequence[Configuration] = (), **arguments: Any
    ) -> None:
        import optuna

        from dre_plugins.adapters.optuna import DRESampler

        self.sampler = DRESampler(
            **{"seed": 0, **(TINY_ARGUMENTS if is_tiny else {}), **arguments}
        )
        self.study = optuna.create_study(sampler=self.sampler)
        for point in points:
            self.study.enqueue_trial(point)

    def run(self, n_trials: int) -> Outcome:
        """Run trials and return all so far."""
        self.study.optimize(
            lambda trial: loss(
                {"x": trial.suggest_float("x", 0, 1), "n": trial.suggest_int("n", 1, 9)}
            ),
            n_trials=n_trials,
        )
        trials = self.study.trials
        return Outcome(
            [trial.params for trial in trials],
            sum(trial.state.name == "COMPLETE" for trial in trials),
            self.sampler.stats,
        )

    def restarted(self, change: Callable[[bytes], bytes] = bytes) -> OptunaSearch:
        """Return what another process would unpickle."""
        self.sampler = pickle.loads(change(pickle.dumps(self.sampler)))
        self.study.sampler = self.sampler
        return self


class RaySearch:
    """`DRESearch`, called as the Tuner calls it."""

    def __init__(
        self, *, is_tiny: bool = True, points: Sequence[Configuration] = (), **arguments: Any
    ) -> None:
        from ray import tune

        from dre_plugins.adapters.ray_tune import DRESearch

        space = {"x": tune.uniform(0, 1), "n": tune.randint(1, 10)}
        defaults = TINY_ARGUMENTS if is_tiny else {}
        begun = {"seed": 0, "points_to_evaluate": [*points], **defaults}
        self.search = DRESearch(**{**begun, **arguments})
        self.search.set_search_properties("loss", "min", space)
        self.configurations: list[Configuration] = []

    def run(self, n_trials: int) -> Outcome:
        for _ in range(n_trials):
            name = f"trial{len(self.configurations)}"
            configuration = self.search.suggest(name)
            self.configurations.append(configuration)
            result = {"loss": loss(configuration), "training_iteration": 1}
            self.search.on_trial_result(name, result)
            self.search.on_trial_complete(name, result)
        return Outcome(self.configurations, len(self.configurations), self.search.stats)

    def restarted(self, change: Callable[[bytes], bytes] = bytes) -> RaySearch:
        from ray import cloudpickle

        self.search = pickle.loads(change(cloudpickle.dumps(self.search)))
        return self


class SyneTuneSearch:
    """The searcher, called as a scheduler calls it."""

    def __init__(
        self, *, is_tiny: bool = True, points: Sequence[Configuration] = (), **arguments: Any
    ) -> None:
        from syne_tune.config_space import randint, uniform

        from dre_plugins.adapters.syne_tune import DRESearcher

        self.searcher = DRESearcher(
            {"x": uniform(0, 1), "n": randint(1, 9)},
            random_seed=arguments.pop("seed", 0),
            **{
                "points_to_evaluate": [*points],
                **(TINY_ARGUMENTS if is_tiny else {}),
                **arguments,
            },
        )
        self.configurations: list[Configuration] = []

    def run(self, n_trials: int) -> Outcome:
        for _ in range(n_trials):
            number, configuration = len(self.configurations), self.searcher.suggest()
            self.configurations.append(configuration)
            self.searcher.on_trial_complete(number, configuration, loss(configuration))
        trials = self.searcher.trials
        n_complete = sum(trial.state.value == "complete" for trial in trials)
        return Outcome(self.configurations, n_complete, self.searcher.stats)

    def restarted(self, change: Callable[[bytes], bytes] = bytes) -> SyneTuneSearch:
        import dill

        self.searcher = dill.loads(change(dill.dumps(self.searcher)))
        return self


Search = OptunaSearch | RaySearch | SyneTuneSearch
MakeSearch = Callable[..., Search]
EVERY = [
    pytest.param(kind, id=name, marks=marks)
    for name, package, kind, marks in [
        ("optuna", "optuna", OptunaSearch, ()),
        ("ray", "ray", RaySearch, pytest.mark.ray),
        ("syne-tune", "syne_tune", SyneTuneSearch, pytest.mark.syne_tune),
    ]
    if find_spec(package)
]
every_framework = pytest.mark.parametrize("framework", EVERY)
