"""What breaks under a `Tuner` of Ray: each run ends with all its trials, and says so."""

import logging
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray.tune")

from faults import full_disk
from marks import of_tuners
from ray import tune
from ray_tune_worker import MIXED_SPACE, mixed, started_cluster, tiny_search

from dre_plugins.adapters.ray_tune import DRESearch

pytestmark = of_tuners("ray", 300)

N_TRIALS = 8
FIRST = {"kind": {"name": "a", "depth": 3}, "rate": 0.125}


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with started_cluster(num_cpus=2):
        yield


class After(tune.Callback):
    """Call something with the number of trials that have ended."""

    n = 0

    def __init__(self, call: Callable[[int], None]) -> None:
        self.call = call

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **_: Any) -> None:
        self.n += 1
        self.call(self.n)


def tuner_of(
    folder: Path, search: DRESearch, *callbacks: Any, trainable: Any = mixed, max_failures: int = 0
) -> tune.Tuner:
    return tune.Tuner(
        trainable,
        param_space=MIXED_SPACE,
        tune_config=tune.TuneConfig(
            metric="loss",
            mode="min",
            num_samples=N_TRIALS,
            search_alg=search,
            reuse_actors=True,
            max_concurrent_trials=1,
        ),
        run_config=tune.RunConfig(
            storage_path=str(folder),
            name="study",
            verbose=0,
            callbacks=[*callbacks],
            failure_config=tune.FailureConfig(max_failures=max_failures),
        ),
    )


def ends(search: DRESearch, results: tune.ResultGrid) -> Counter[str]:
    """Return how many trials ended in which way, checked against what Ray says."""
    states = Counter(trial.state.value for trial in search.study.trials)
    assert len(results) == N_TRIALS == states["complete"] + states["failed"]
    assert results.num_errors == states["failed"]
    return states


def test_a_full_disk_while_the_search_is_saved(tmp_path, monkeypatch, caplog) -> None:
    monkeypatch.setenv("TUNE_GLOBAL_CHECKPOINT_S", "0")
    save, whole = DRESearch.save_to_dir, []

    def limited(self: DRESearch, checkpoint_dir: str, session_str: str = "default") -> None:
        if not 3 <= after.n < 6:
            return save(self, checkpoint_dir, session_str)
        with full_disk():
            save(self, checkpoint_dir, session_str)
        before = DRESearch()
        before.restore_from_dir(checkpoint_dir)
        whole.append(len(before.study.trials))

    after = After(lambda n: None)
    monkeypatch.setattr(DRESearch, "save_to_dir", limited)
    search = tiny_search()
    with caplog.at_level(logging.WARNING, logger="ray.tune.dre_plugins"):
        results = tuner_of(tmp_path, search, after).fit()
    assert ends(search, results)["failed"] == 0
    assert search.stats["unsaved"] == len(whole) > 0
    # The state before is kept, and Ray's own beside it tells what has happened since.
    assert max(whole) > 3
    assert sum("could not be written" in record.getMessage() for record in caplog.records) == 1
    last = DRESearch()  # there was room again
    last.restore_from_dir(str(tmp_path / "study"))
    assert last.study.trials == search.study.trials


@pytest.mark.parametrize("n_failures", [0, 1])
def test_a_worker_that_is_killed(tmp_path: Path, n_failures: int) -> None:
    killed = tmp_path / "killed"

    def dies_once(config: dict[str, Any]) -> dict[str, float]:
        if config["rate"] == FIRST["rate"] and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return mixed(config)

    search = tiny_search(points_to_evaluate=[{}, FIRST])
    tuner = tuner_of(tmp_path, search, trainable=dies_once, max_failures=n_failures)
    states = ends(search, tuner.fit())
    assert killed.exists() and states["failed"] == 1 - n_failures
    assert search.study.trials[1].state.value == ("complete" if n_failures else "failed")
    assert search.stats["fallbacks"] == 0 < search.stats["model"]
