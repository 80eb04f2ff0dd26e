"""Runs of Syne Tune's own `Tuner`, in this process or with processes of trials."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import syne_tune_rows as rows
from syne_tune import StoppingCriterion, Tuner
from syne_tune.backend.trial_backend import TrialBackend
from syne_tune.backend.trial_status import Status, TrialResult
from syne_tune.optimizer.scheduler import TrialScheduler
from syne_tune.tuner_callback import TunerCallback

from dre_plugins.adapters.syne_tune import DRESearcher
from dre_plugins.recommend import TrialState

# Run it with rotate_gpus=False: counting GPUs, Syne Tune leaves a file where it was started.
TRAIN = str(Path(__file__).parent / "syne_tune_train.py")
SPACE = {**rows.SPACE, "epochs": 4}
Train = Callable[[dict[str, Any]], list[dict[str, Any]]]


def descent(config: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a trial reports, from the first epoch to the last."""
    distance = (math.log10(config["lr"]) + 2) ** 2 + abs(config["layers"] - 3)
    return [
        {"epoch": epoch, "loss": distance + 1 / epoch} for epoch in range(1, config["epochs"] + 1)
    ]


class SaveOften(TunerCallback):
    """Save the tuner at every report, with all that is in it: it must be possible at any time."""

    saved: ClassVar[list[tuple[int, bytes]]] = []  # how many were complete; not itself saved

    def on_tuning_start(self, tuner: Tuner) -> None:
        self.tuner = tuner
        self.saved.clear()

    def on_trial_result(self, trial: Any, status: str, result: Any, decision: str) -> None:
        self.tuner.save()
        searcher = getattr(self.tuner.scheduler, "searcher", None)
        states = [trial.state for trial in getattr(searcher, "trials", ())]
        content = (self.tuner.tuner_path / "tuner.dill").read_bytes()
        self.saved.append((states.count(TrialState.COMPLETE), content))


class InstantBackend(TrialBackend):
    """Evaluate in this process; every look at a trial shows one more of its reports."""

    def __init__(self, train: Train) -> None:
        super().__init__()
        self.train = train
        self.reports: dict[int, list[dict[str, Any]]] = {}
        self.n_shown: dict[int, int] = {}
        self.stopped: set[int] = set()

    def _schedule(self, trial_id: int, config: dict[str, Any]) -> None:
        self.reports[trial_id], self.n_shown[trial_id] = self.train(config), 0

    def _all_trial_results(self, trial_ids: list[int]) -> list[TrialResult]:
        found = []
        for trial_id in trial_ids:
            self.n_shown[trial_id] += 1
            shown = self.reports[trial_id][: self.n_shown[trial_id]]
            status = Status.in_progress
            if trial_id in self.stopped:
                status = Status.stopped
            elif "crash" in shown[-1]:
                status = Status.failed
            elif len(shown) < self.n_shown[trial_id]:
                status = Status.completed
            metrics = [
                {**report, "st_worker_timestamp": 0.0} for report in shown if "crash" not in report
            ]
            trial = self._trial_dict[trial_id]
            found.append(trial.add_results(metrics, status, None))
        return found

    def _stop_trial(self, trial_id: int, result: dict[str, Any] | None) -> None:
        self.stopped.add(trial_id)

    def stdout(self, trial_id: int) -> list[str]:
        return []

    stderr = stdout

    def entrypoint_path(self) -> Path:
        return Path("instant.py")


def tuned(scheduler: TrialScheduler, backend: TrialBackend | Train, n: int, **more: Any) -> Tuner:
    """Run a tuner until more than n trials have finished."""
    tuner = Tuner(
        trial_backend=backend if isinstance(backend, TrialBackend) else InstantBackend(backend),
        scheduler=scheduler,
        stop_criterion=StoppingCriterion(max_num_trials_finished=n - 1),
        **{
            "n_workers": 3,
            "sleep_time": 0.0,
            "max_failures": 99,
            "tuner_name": "t",
            "suffix_tuner_name": False,
            **more,
        },
    )
    tuner.run()
    return tuner


def reap(tuner: Tuner) -> Tuner:
    """Wait for the processes of trials, so that Python does not warn of them."""
    for process in tuner.trial_backend.trial_subprocess.values():
        process.wait(timeout=30)
    return tuner


def configs_of(tuner: Tuner) -> list[dict[str, Any]]:
    backend = tuner.trial_backend
    results, _ = backend.fetch_status_results(backend.trial_ids)
    return [results[trial_id][0].config for trial_id in backend.trial_ids]


def ended(searcher: DRESearcher) -> list[str]:
    return [
        trial.state.value for trial in searcher.trials if trial.state is not TrialState.RUNNING
    ]
