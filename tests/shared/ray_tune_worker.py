"""Searches, spaces, results and trainables that tests of Ray Tune share."""

import copy
import json
import logging
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray
from presets import TINY
from ray import cloudpickle, tune
from ray.tune.impl.placeholder import create_resolvers_map, inject_placeholders
from ray.tune.search import Searcher
from ray.tune.utils import flatten_dict

from dre_plugins.adapters.ray_tune import DRESearch
from dre_plugins.recommend.settings import Settings
from dre_plugins.recommend.trials import Trial

SMALL_SPACE = {"x": tune.choice(["a", "b", "c"]), "y": tune.randint(0, 6)}  # of 18 points
SPACE = {"x": tune.uniform(0, 1), "n": {"z": tune.randint(0, 5)}, "constant": 7}
MIXED_SPACE = {
    "kind": tune.choice(
        [{"name": "a", "depth": tune.randint(1, 13)}, {"name": "b", "share": tune.uniform(0, 1)}]
    ),
    "rate": tune.loguniform(1e-4, 1),
    "constant": 7,
}


@contextmanager
def started_cluster(num_cpus: int) -> Iterator[None]:
    """Start a small cluster, whose workers get this module, as they do not know this folder."""
    this, level = sys.modules[__name__], logging.getLogger("ray").level
    cloudpickle.register_pickle_by_value(this)
    ray.init(
        num_cpus=num_cpus,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    yield
    ray.shutdown()
    logging.getLogger("ray").setLevel(level)
    cloudpickle.unregister_pickle_by_value(this)


def tiny_search(space: dict[str, Any] | None = None, **arguments: Any) -> DRESearch:
    """Return a search with a tiny surrogate; arguments override."""
    return DRESearch(
        space, **{"seed": 0, "n_startup_trials": 4, "settings": Settings(preset=TINY), **arguments}
    )


def hidden(space: dict[str, Any]) -> dict[str, Any]:
    """Return a parameter space as a Tuner hands it to a searcher."""
    injected: dict[str, Any] = inject_placeholders(copy.deepcopy(space), create_resolvers_map())
    return injected


def mixed_value(config: dict[str, Any]) -> float:
    """Return a value on `MIXED_SPACE`, 0 at best."""
    value = (math.log10(config["rate"]) + 2) ** 2
    if config["kind"]["name"] == "a":
        return value + abs(config["kind"]["depth"] - 7)
    return value + 1 + config["kind"]["share"]


def begun(space: dict[str, Any] = SPACE, mode: str = "min", **arguments: Any) -> DRESearch:
    """Return a search that a Tuner has begun to use."""
    search = tiny_search(**arguments)
    assert search.set_search_properties("loss", mode, space, num_samples=9, stop=None) is True
    return search


def result(loss: Any, iteration: int = 1, **more: Any) -> dict[str, Any]:
    """Return a result as Ray delivers it, flattened."""
    times = {"training_iteration": iteration, "time_total_s": iteration / 8}
    return dict(flatten_dict({"loss": loss, **times, **more}))


def complete(search: Searcher, trial_id: str, loss: Any) -> None:
    """Report once and end, as a function does that returns a value."""
    search.on_trial_result(trial_id=trial_id, result=result(loss))
    search.on_trial_complete(trial_id=trial_id, result=result(loss, done=True), error=False)


def run(
    search: Searcher,
    n_trials: int,
    value: Callable[[dict[str, Any]], float] = mixed_value,
    first: int = 0,
) -> list[dict[str, Any]]:
    """Run trials one after the other and return their configurations."""
    configs = []
    for number in range(first, first + n_trials):
        config = search.suggest(f"t{number}")
        assert isinstance(config, dict)
        configs.append(config)
        complete(search, f"t{number}", value(config))
    return configs


def trials(search: DRESearch) -> tuple[Trial, ...]:
    return search.study.trials


def states(search: DRESearch) -> list[str]:
    return [trial.state.value for trial in trials(search)]


def mixed(config: dict[str, Any]) -> dict[str, float]:
    return {"loss": mixed_value(config)}


class Steps(tune.Trainable):
    """Report a value that falls with every iteration, and go on after a pause."""

    def setup(self, config: dict[str, Any]) -> None:
        self.x, self.n = config["x"], 0

    def step(self) -> dict[str, float]:
        self.n += 1
        return {"loss": self.x + 1 / self.n}

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        Path(checkpoint_dir, "n").write_text(json.dumps(self.n))

    def load_checkpoint(self, checkpoint_dir: str) -> None:
        self.n = json.loads(Path(checkpoint_dir, "n").read_text())

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self.setup(new_config)
        return True
