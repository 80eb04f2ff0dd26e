"""Drivers of Syne Tune that are killed at any moment: nothing that was saved is lost or run again.

What Syne Tune itself loses (docs/reliability.md) is allowed, and no more: reports that came after
the last save. Their trials run again.
"""

import random
import time
from pathlib import Path

import pytest

pytest.importorskip("syne_tune")
pytest.importorskip("dill")

import drivers
import syne_tune_driver as driver
from marks import of_tuners
from processes import fork_server
from syne_tune import Tuner
from syne_tune_tuning import reap

from dre_plugins.adapters.syne_tune import load_tuner
from dre_plugins.recommend import Trial, TrialState

pytestmark = [*of_tuners("syne_tune", 600), pytest.mark.usefixtures("folder")]

# Seconds after which a report is saved, on a busy machine.
WITHIN = 3.0


def name_of(trial: Trial) -> str:
    lr, layers, act = (trial.configuration[key] for key in driver.SPACE)
    return f"{lr!r},{layers},{act}"


def complete(tuner: Tuner) -> dict[str, float | None]:
    trials = tuner.scheduler.searcher.trials
    return {name_of(trial): trial.value for trial in trials if trial.state is TrialState.COMPLETE}


@pytest.mark.parametrize("n_kills", [2, pytest.param(20, marks=pytest.mark.long)])
def test_a_driver_that_is_killed_at_any_moment(folder: Path, n_kills: int) -> None:
    rng, n_trials = random.Random(n_kills), 4 + 12 * n_kills
    context = fork_server()
    before: dict[str, float | None] = {}
    n_late = 0
    for kill in range(n_kills):
        began = time.time()
        process = context.Process(target=driver.drive, args=(str(folder), n_trials))
        process.start()
        if kill % 4 < 3:  # among the trials; the fourth anywhere, most likely before the first
            drivers.wait_for_trials(folder, began, rng.randint(1, 16))
        process.join(rng.uniform(0.0, 0.5))
        assert process.exitcode is None, "it has ended before it was killed"
        process.kill()
        process.join()
        time.sleep(0.5)  # trials outlive their driver
        saved = folder / "study" / "tuner.dill"
        if not saved.exists():
            assert not before
            continue
        tuner = reap(Tuner.load(str(folder / "study")))
        found = complete(tuner)
        assert before.items() <= found.items()
        assert tuner.scheduler.searcher.stats["fallbacks"] == 0
        events = [event for event in drivers.ledger(folder) if event.time > began]
        begun = {event.trial for event in events if event.what == "begin"}
        assert not begun & before.keys()  # what had been saved as complete did not run again
        ended = {event.trial: event.time for event in events if event.what == "end"}
        late = {name: when for name, when in ended.items() if name not in found}
        assert all(when > saved.stat().st_mtime - WITHIN for when in late.values())
        print(f"kill {kill}: {len(found)} complete, {len(late)} late")
        before, n_late = found, n_late + len(late)
    process = context.Process(target=driver.drive, args=(str(folder), n_trials))
    process.start()
    process.join(120)
    assert process.exitcode == 0
    tuner = reap(load_tuner(folder / "study"))
    found, trials = complete(tuner), tuner.scheduler.searcher.trials
    print(f"{n_kills} kills: {n_late} late, {len(found)} of {len(trials)} complete")
    assert before.items() <= found.items()
    assert len(found) >= n_trials
    assert len({name_of(trial) for trial in trials}) == len(trials)
    # Each report of the tuner's own table is of another configuration, and none is missing.
    results = tuner.callbacks[0].dataframe()
    columns = [f"config_{key}" for key in driver.SPACE]
    assert len(results) == len(results.drop_duplicates(columns)) == len(found)
    sources = [tuner.scheduler.searcher.study.explain(n).source for n in range(len(trials))]
    assert "fallback" not in sources and {*sources[-5:]} <= {"model", "exploration"}
