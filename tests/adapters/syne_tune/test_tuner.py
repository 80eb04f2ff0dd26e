"""Through Syne Tune's own `Tuner`: every domain, every scheduler, every kind of end.

Drivers that are killed are in `tests/reliability/test_syne_tune_restarts.py`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import syne_tune_rows as rows
from marks import of_tuners
from syne_tune import Tuner, config_space as cs
from syne_tune.backend import LocalBackend
from syne_tune.backend.simulator_backend.simulator_backend import SimulatorBackend
from syne_tune.backend.simulator_backend.simulator_callback import SimulatorCallback
from syne_tune.backend.trial_status import Status
from syne_tune.results_callback import StoreResultsCallback
from syne_tune_loop import SCHEDULERS
from syne_tune_rows import FINITE, KNOWING, OPTIONS
from syne_tune_tuning import SPACE, TRAIN, SaveOften, configs_of, descent, ended, reap, tuned

from dre_plugins import Memory
from dre_plugins.adapters.syne_tune import ASHADRE, DRE, DRESearcher, DRETransfer, load_tuner
from dre_plugins.adapters.syne_tune.sources import metadata_from_experiments
from dre_plugins.memory.records import read_study
from dre_plugins.recommend import TrialState

pytestmark = [*of_tuners("syne_tune", 600), pytest.mark.usefixtures("folder")]


# ---- schedulers


class SaveAndLoad(SaveOften):
    """Load the tuner again as well."""

    def on_trial_result(self, **arguments: Any) -> None:
        super().on_trial_result(**arguments)
        loaded, scheduler = Tuner.load(str(self.tuner.tuner_path)).scheduler, self.tuner.scheduler
        assert type(loaded) is type(scheduler)
        if isinstance(getattr(loaded, "searcher", None), DRESearcher):
            assert loaded.searcher.trials == scheduler.searcher.trials
            last = len(scheduler.searcher.trials) - 1
            assert loaded.searcher.study.explain(last) == scheduler.searcher.study.explain(last)


@pytest.mark.usefixtures("small_priors")
@pytest.mark.parametrize("name", SCHEDULERS)
def test_every_scheduler_runs_and_can_be_saved_at_any_time(name: str) -> None:
    saving, scheduler = SaveAndLoad(), SCHEDULERS[name](rows.SPACE)
    tuner = tuned(scheduler, descent, 8, callbacks=[saving, StoreResultsCallback()])
    assert len(saving.saved) >= 8
    assert tuner.best_config()[1].keys() == rows.SPACE.keys()
    text = (tuner.tuner_path / "metadata.json").read_text()
    assert json.loads(text)["metric_mode"] == "min"


def test_an_experiment_teaches_the_next_one(folder: Path) -> None:
    first = tuned(DRE(SPACE, "loss", **OPTIONS), descent, 25, tuner_name="first")
    (task,) = metadata_from_experiments(folder / "first")
    assert len(task) >= 25 and task.n_complete >= 25
    best = min(descent(config)[-1]["loss"] for config in configs_of(first)[:25])
    second = DRETransfer(SPACE, "loss", folder / "first", **KNOWING)
    assert descent(second.suggest().config)[-1]["loss"] <= 1.5 * best


def test_trials_that_run_when_a_tuner_ends_are_in_the_memory(tmp_path: Path) -> None:
    """At the end of the process, whatever scheduler has the searcher."""
    code = (
        "import sys; from syne_tune_rows import OPTIONS; from syne_tune_tuning import *\n"
        "from syne_tune.optimizer.schedulers.asha import AsynchronousSuccessiveHalving as ASHA\n"
        "def train(config, ids=iter(range(99))):\n"
        "    return descent({**config, 'epochs': 4 + next(ids)})\n"
        "options = {**OPTIONS, 'memory': sys.argv[1]}\n"
        "searcher = DRESearcher(SPACE, **options)\n"
        "tuner = tuned(ASHA(SPACE, 'loss', searcher=searcher, time_attr='epoch'), train, 4)\n"
        "print(*[len(trial.rungs) for trial in searcher.trials])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    (entry,) = Memory(tmp_path).index().entries
    n_reports = [int(n) for n in out.splitlines()[-1].split()]
    recorded = [len(trial.rungs) for trial in read_study(entry.files).history()]
    assert recorded == [n for n in n_reports if n] and len(recorded) > 4


# ---- real processes


def test_a_training_script_that_stops_crashes_and_reports_nothing() -> None:
    space = {**SPACE, "act": cs.choice(["relu", "tanh", "gelu"]), "crash": "tanh"}
    best = {"lr": 0.01, "layers": 3}  # not stopped, so that it gets to the epoch of the crash
    points = [{**best, "act": "tanh"}, {"act": "gelu"}]
    tuner = tuned(
        ASHADRE(
            {**space, "silent": "gelu"},
            "loss",
            "epoch",
            4,
            reduction_factor=2,
            points_to_evaluate=points,
            **OPTIONS,
        ),
        LocalBackend(TRAIN, rotate_gpus=False),
        10,
        n_workers=2,
        sleep_time=0.1,
    )
    status = reap(tuner).tuning_status.last_trial_status_seen
    trials = tuner.scheduler.searcher.trials
    assert len(trials) == len(status) >= 10
    for trial_id, trial in enumerate(trials):
        if status[trial_id] == Status.failed:
            assert trial.configuration["act"] == "tanh" and 4.0 not in trial.rungs
        if trial.configuration["act"] == "gelu":
            assert not trial.rungs
    assert status[0] == Status.failed and trials[0].state is TrialState.FAILED
    assert tuner.best_config()[1]["act"] != "gelu"


def test_values_of_any_type_reach_a_script_as_json() -> None:
    space: dict[str, Any] = {f"p{i}": row[0] for i, row in enumerate(FINITE)} | {"c": [1, None]}
    tuner = tuned(
        DRE(space, "loss", random_seed=0),
        LocalBackend(TRAIN, pass_args_as_json=True, rotate_gpus=False),
        3,
        n_workers=2,
        sleep_time=0.1,
    )
    for trial_id, config in enumerate(configs_of(reap(tuner))):
        written = json.loads((tuner.tuner_path / str(trial_id) / "config.json").read_text())
        assert written == json.loads(json.dumps(config)) and written.keys() == space.keys()


def test_simulated_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # The simulator runs "python", whichever that is.
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.defpath]))
    backend = SimulatorBackend(TRAIN, elapsed_time_attr="st_worker_time")
    scheduler = ASHADRE(SPACE, "loss", "epoch", 4, reduction_factor=2, **OPTIONS)
    tuner = tuned(scheduler, backend, 3, n_workers=2, callbacks=[SimulatorCallback()])
    results = tuner.callbacks[0].dataframe()
    for trial_id, reports in results.groupby("trial_id"):
        rungs = tuner.scheduler.searcher.trials[trial_id].rungs
        assert dict(rungs) == dict(zip(reports.epoch, reports.loss, strict=True))
    assert len(ended(tuner.scheduler.searcher)) >= 3


def test_reports_of_trials_that_the_saved_tuner_does_not_know_are_put_aside(folder: Path) -> None:
    backend = LocalBackend(TRAIN, rotate_gpus=False)
    number = reap(tuned(DRE(SPACE, "loss", **OPTIONS), backend, 1)).trial_backend.new_trial_id()
    for n_lost in range(2):
        (folder / "t" / str(number)).mkdir()
        reap(load_tuner(folder / "t"))
        assert (folder / "t" / f"{number}.lost{n_lost}").is_dir()


def test_a_tuner_that_was_never_saved_cannot_be_loaded(folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_tuner(folder / "nowhere")
