"""Drivers of Syne Tune that are killed at any moment: nothing that was saved is lost or run again.

What Syne Tune itself loses (docs/reliability.md) is allowed, and no more: reports that came after
the last save. Their trials run again.
"""

import random
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
    context, arguments = fork_server(), (str(folder), n_trials)
    before: dict[str, float | None] = {}
    n_late = 0
    for kill in range(n_kills):
        process = context.Process(target=driver.drive, args=arguments)
        events = drivers.killed(process, folder, kill, rng, within=[0.0, 0.5])
        saved = folder / "study" / "tuner.dill"
        if not saved.exists():
            assert not before
            continue
        tuner = reap(Tuner.load(str(folder / "study")))
        found = complete(tuner)
        assert before.items() <= found.items()
        assert tuner.scheduler.searcher.stats["fallbacks"] == 0
        assert not events.begun & before.keys()  # what was saved as complete did not run again
        late = {name: when for name, when in events.ended.items() if name not in found}
        assert all(when > saved.stat().st_mtime - WITHIN for when in late.values())
        print(f"kill {kill}: {len(found)} complete, {len(late)} late")
        before, n_late = found, n_late + len(late)
    drivers.run_to_the_end(context.Process(target=driver.drive, args=arguments))
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
