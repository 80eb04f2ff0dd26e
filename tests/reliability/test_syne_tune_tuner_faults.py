"""What breaks under a `Tuner` of Syne Tune: each run ends with all its trials, and says so."""

import logging
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("syne_tune")
pytest.importorskip("dill")

import syne_tune_driver as driver
from faults import full_disk
from marks import of_tuners
from syne_tune import Tuner
from syne_tune.backend.trial_status import Status
from syne_tune.tuner_callback import TunerCallback
from syne_tune_tuning import reap

from dre_plugins.adapters.syne_tune import DurableTuner, load_tuner

pytestmark = [*of_tuners("syne_tune", 600), pytest.mark.usefixtures("folder")]

N_TRIALS = 8


class After(TunerCallback):
    """Call something with the number of trials that have ended."""

    def __init__(self, call: Callable[[int], None]) -> None:
        self.n, self.call = 0, call

    def on_trial_complete(self, trial: Any, result: dict[str, Any]) -> None:
        self.n += 1
        self.call(self.n)


def run(*callbacks: TunerCallback, **arguments: Any) -> DurableTuner:
    tuner = driver.new_tuner("study", N_TRIALS, callbacks, **arguments)
    tuner.run()
    reap(tuner)
    return tuner


def ends(tuner: Tuner) -> Counter[str]:
    """Return how many trials ended in which way, checked against what the searcher knows."""
    status = Counter(tuner.tuning_status.last_trial_status_seen.values())
    states = Counter(trial.state.value for trial in tuner.scheduler.searcher.trials)
    assert status[Status.completed] == states["complete"]
    assert status[Status.failed] == states["failed"]
    assert states["complete"] + states["failed"] >= N_TRIALS
    return states


def test_a_full_disk_while_the_tuner_is_saved(folder: Path, monkeypatch, caplog) -> None:
    save, loaded = DurableTuner.save, []

    def limited(self: DurableTuner, folder: str | None = None) -> None:
        # Where trials end faster than the tuner saves itself, one save is full all the same.
        if after.n < 3 or (loaded and after.n >= 6):
            return save(self, folder)
        with full_disk():
            save(self, folder)
        loaded.append(reap(Tuner.load(str(self.tuner_path))))  # the one before is whole
        assert {path.name for path in self.tuner_path.iterdir() if "unsaved" in path.name} == set()

    after = After(lambda n: None)
    monkeypatch.setattr(DurableTuner, "save", limited)
    with caplog.at_level(logging.WARNING, logger="syne_tune.dre_plugins"):
        tuner = run(after)
    assert ends(tuner)["failed"] == 0
    assert tuner.n_unsaved == len(loaded) > 0
    assert sum("could not be saved" in record.getMessage() for record in caplog.records) == 1
    last = reap(Tuner.load(str(folder / "study")))  # there was room again
    assert last.scheduler.searcher.trials == tuner.scheduler.searcher.trials
    monkeypatch.undo()
    with full_disk(), pytest.raises(OSError, match="File too large"):
        tuner.save(str(folder))  # by hand


def test_a_trial_that_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIES", "0.125,3,relu")
    tuner = run(points_to_evaluate=[{}, {"lr": 0.125, "layers": 3, "act": "relu"}])
    states = ends(tuner)
    assert states["failed"] == 1
    assert tuner.scheduler.searcher.trials[1].state.value == "failed"
    assert tuner.scheduler.searcher.stats["fallbacks"] == 0


def test_a_tuner_that_was_torn_says_so(folder: Path) -> None:
    driver.new_tuner("study", N_TRIALS).save(str(folder))
    assert load_tuner(folder).scheduler.searcher.trials == ()
    file = folder / "tuner.dill"
    for size in (0, file.stat().st_size - 100):
        file.write_bytes(file.read_bytes()[:size])
        with pytest.raises(ValueError, match="killed while it saved itself"):
            load_tuner(folder)
