"""Our schedulers, and our searcher in those of Syne Tune, with a loop like that of its tuner."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from presets import of_steps
from syne_tune import config_space as cs
from syne_tune.backend.trial_status import Trial
from syne_tune.optimizer.scheduler import SchedulerDecision, TrialScheduler
from syne_tune.optimizer.schedulers.asha import AsynchronousSuccessiveHalving
from syne_tune.optimizer.schedulers.median_stopping_rule import MedianStoppingRule
from syne_tune.optimizer.schedulers.searchers.last_value_multi_fidelity_searcher import (
    LastValueMultiFidelitySearcher,
)
from syne_tune.optimizer.schedulers.searchers.multi_fidelity_searcher import (
    IndependentMultiFidelitySearcher,
)
from syne_tune.optimizer.schedulers.single_fidelity_scheduler import SingleFidelityScheduler
from syne_tune.optimizer.schedulers.single_objective_scheduler import SingleObjectiveScheduler
from syne_tune_rows import KNOWING, OPTIONS, SETTINGS, SPACE, evaluations

from dre_plugins.adapters.syne_tune import ASHADRE, DRE, DRESearcher, DRETransfer
from dre_plugins.adapters.syne_tune.history import searcher_in

GRID = {"a": cs.choice(["x", "y", "z"]), "b": cs.ordinal([0.1, 0.2, 0.5], kind="nn"), "epochs": 9}
QUICK = of_steps(100)


def asha(searcher: Any, space: dict[str, Any] = SPACE) -> AsynchronousSuccessiveHalving:
    return AsynchronousSuccessiveHalving(
        space, "loss", searcher=searcher, time_attr="epoch", max_t=9, random_seed=0
    )


def dre(space: dict[str, Any] = SPACE, **more: Any) -> DRE:
    return DRE(space, "loss", **{**OPTIONS, **more})


def ashadre(space: dict[str, Any] = SPACE, **more: Any) -> ASHADRE:
    return ASHADRE(space, "loss", "epoch", 9, **{**OPTIONS, **more})


def searcher_of(space: dict[str, Any] = SPACE, **more: Any) -> DRESearcher:
    return DRESearcher(space, **{**OPTIONS, **more})


SCHEDULERS: dict[str, Callable[..., TrialScheduler]] = {
    "DRE": dre,
    "ASHADRE": ashadre,
    "ASHADRE, 3 brackets": lambda space: ashadre(space, brackets=3),
    "DRETransfer": lambda space: DRETransfer(
        space, "loss", {"past": evaluations({**SPACE, "a": space.get("a", 1)})}, **KNOWING
    ),
    "SingleObjectiveScheduler": lambda space, **more: SingleObjectiveScheduler(
        space, "loss", searcher=searcher_of(space, **more), random_seed=0
    ),
    "SingleFidelityScheduler": lambda space: SingleFidelityScheduler(
        space, ["loss"], searcher=searcher_of(space), random_seed=0
    ),
    "AsynchronousSuccessiveHalving": lambda space, **more: asha(searcher_of(space, **more), space),
    "MedianStoppingRule": lambda space, **more: MedianStoppingRule(
        dre(space, **more), time_attr="epoch", random_seed=0
    ),
    "MedianStoppingRule(ASHADRE)": lambda space, **more: MedianStoppingRule(
        ashadre(space, **more), time_attr="epoch", random_seed=0
    ),
    "LastValue": lambda space: asha(
        LastValueMultiFidelitySearcher(
            space, random_seed=0, searcher=DRESearcher, searcher_kwargs=dict(SETTINGS)
        ),
        space,
    ),
    "Independent": lambda space: asha(
        IndependentMultiFidelitySearcher(
            space, random_seed=0, searcher=DRESearcher, searcher_kwargs=dict(SETTINGS)
        ),
        space,
    ),
}
# Those whose searcher is one `DRESearcher`, which sees all results.
WHOLE = [name for name in SCHEDULERS if name not in ("LastValue", "Independent")]
OURS = ["DRE", "ASHADRE", "ASHADRE, 3 brackets", "DRETransfer"]


def loss_of(config: dict[str, Any], epoch: int) -> float:
    return (math.log10(config["lr"]) + 2) ** 2 + abs(config["layers"] - 3) + 3.0 / epoch


def start(scheduler: TrialScheduler, trial_id: int) -> Trial:
    """Begin what the scheduler suggests next."""
    trial = Trial(trial_id, scheduler.suggest().config, datetime.now())
    scheduler.on_trial_add(trial)
    return trial


@dataclass
class Loop:
    """Do as the tuner does, with workers in lockstep: every trial reports once a turn."""

    scheduler: TrialScheduler
    n_workers: int = 3
    max_epochs: int = 9
    report: Callable[[Trial, int], Any] = lambda trial, epoch: {
        "epoch": epoch,
        "loss": loss_of(trial.config, epoch),
    }
    trials: list[Trial] = field(default_factory=list)
    running: dict[int, int] = field(default_factory=dict)  # trial id -> epochs
    last: dict[int, Any] = field(default_factory=dict)
    is_exhausted: bool = False

    def run(self, n_trials: int) -> list[dict[str, Any]]:
        """Go on until so many trials were started and have ended."""
        while self.running or (len(self.trials) < n_trials and not self.is_exhausted):
            while len(self.running) < self.n_workers and len(self.trials) < n_trials:
                suggestion = self.scheduler.suggest()
                if suggestion is None:
                    self.is_exhausted = True
                    break
                trial = Trial(len(self.trials), suggestion.config, datetime.now())
                self.trials.append(trial)
                self.running[trial.trial_id] = 0
                self.scheduler.on_trial_add(trial)
            for trial_id in [*self.running]:
                self.turn(self.trials[trial_id])
        return [trial.config for trial in self.trials]

    def turn(self, trial: Trial) -> None:
        self.running[trial.trial_id] += 1
        epoch = self.running[trial.trial_id]
        result = self.report(trial, epoch)
        if result == "crash":
            self.scheduler.on_trial_error(trial)
            del self.running[trial.trial_id]
            return
        self.last[trial.trial_id] = result
        decision = self.scheduler.on_trial_result(trial=trial, result=result)
        assert decision in ("CONTINUE", "STOP") and type(decision) is str
        if decision == SchedulerDecision.STOP:
            self.scheduler.on_trial_remove(trial=trial)
            del self.running[trial.trial_id]
        elif epoch == self.max_epochs:
            self.scheduler.on_trial_complete(trial, result)
            del self.running[trial.trial_id]


def states(scheduler: TrialScheduler | DRESearcher) -> list[str]:
    return [trial.state.value for trial in searcher_in(scheduler).trials]
