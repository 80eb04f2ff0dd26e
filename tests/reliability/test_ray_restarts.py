"""Drivers of Ray Tune that are killed at any moment: what Ray has stored is not lost or run again.

What Ray itself loses (docs/reliability.md) is allowed, and no more: trials that ended after the
last state was stored, and the whole experiment where a file of its own was being copied.
"""

import logging
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("ray.tune")

import drivers
import ray
import ray_driver as driver
from marks import of_tuners
from processes import fork_server
from ray import tune

pytestmark = of_tuners("ray", 900)

# Seconds after which Ray has stored that a trial has ended, on a machine that is much too busy.
WITHIN = 10.0


@pytest.fixture(scope="module")
def session() -> Iterator[Path]:
    """Start a cluster for all drivers and return where it keeps its files."""
    folder = tempfile.mkdtemp(prefix="ray")  # short, as it is part of the names of sockets
    ray.init(
        num_cpus=driver.N_AT_ONCE,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        _temp_dir=folder,
    )
    yield Path(folder)
    ray.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


def check(found: driver.Stored, before: dict[str, float], late: dict[str, float]) -> None:
    """Check what a driver has left that was killed: late trials are not stored, by their ends."""
    assert before.items() <= found.losses.items()
    assert all(ended > found.written - WITHIN for ended in late.values())
    # The search knows all that Ray knows. It may know more, as its state may be newer.
    values = [trial.value for trial in found.search.study.trials]
    assert Counter(found.losses.values()) <= Counter(values)


@pytest.mark.parametrize("n_kills", [3, pytest.param(20, marks=pytest.mark.long)])
def test_a_driver_that_is_killed_at_any_moment(session: Path, tmp_path, n_kills: int) -> None:
    study, rng, context = tmp_path / "study", random.Random(n_kills), fork_server()
    n_trials = 10 + 12 * n_kills
    arguments = (ray.get_runtime_context().gcs_address, str(tmp_path), n_trials)
    before: dict[str, float] = {}
    n_torn = n_late = n_forgotten = 0
    for kill in range(n_kills):
        process = context.Process(target=driver.drive, args=arguments)
        events = drivers.killed(process, tmp_path, kill, rng, within=[0.1, 1.5])
        assert not events.begun & before.keys()  # what had been stored as ended did not run again
        try:
            found = driver.stored(study)
        except driver.Torn as error:
            print(f"kill {kill}: {error}")
            n_torn += 1
            driver.put_back(study, tmp_path / "copy", session)
            continue
        late = {name: when for name, when in events.ended.items() if name not in found.losses}
        check(found, before, late)
        figures = f"{len(found.losses)} stored, {len(late)} late, {found.n_forgotten} forgotten"
        print(f"kill {kill}: {figures}")
        before, n_late, n_forgotten = found.losses, n_late + len(late), found.n_forgotten
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        shutil.copytree(study, tmp_path / "copy")
    drivers.run_to_the_end(context.Process(target=driver.drive, args=arguments))
    found = driver.stored(study)
    trials = tune.ExperimentAnalysis(str(study)).trials
    print(f"{n_kills} kills: {n_torn} torn, {n_late} late, {len(trials)} trials of {n_trials}")
    check(found, before, late={})
    assert {trial.status for trial in trials} == {"TERMINATED"}
    assert len({str(trial.config) for trial in trials}) == len(trials)
    assert len(trials) == n_trials - n_forgotten
    assert {trial.state.value for trial in found.search.study.trials} == {"complete"}
    sources = [found.search.explain(trial.trial_id).source for trial in trials]
    assert "fallback" not in sources and {*sources[-5:]} <= {"model", "universal-prior"}
    assert {"model", "universal-prior"} <= {*sources}
