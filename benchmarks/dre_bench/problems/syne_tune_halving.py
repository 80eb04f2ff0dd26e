"""Successive halving by whole schedulers of Syne Tune: the problem "asha-syne-tune".

Rungs, costs, budget and record are those of `real_studies.asha`. What differs: each method is a
scheduler in the real `Tuner`, on the simulator with one worker; it decides by its own rule which
trials go on; and the search space is flat, as in `problems.tuners`. What methods need, and why
some runs cannot be repeated exactly, is said in `problems.syne_tune_tuner`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from syne_tune.backend.simulator_backend.simulator_backend import SimulatorConfig
from syne_tune.backend.simulator_backend.simulator_callback import SimulatorCallback
from syne_tune.optimizer import baselines
from syne_tune.tuning_status import TuningStatus

from dre_bench.names import entry_of
from dre_bench.problems.maximise import reference
from dre_bench.problems.real_studies import RUNGS, halving_budget
from dre_bench.problems.syne_tune_tuner import (
    SECONDS,
    Curve,
    config_space,
    run_tuner,
    silence,
    simulator,
)
from dre_bench.problems.tuners import METRIC, method_of
from dre_bench.runs import Record, Run, Sources
from dre_bench.samplers import with_settings
from dre_bench.scenarios import scenario_of
from dre_bench.tasks import YahpoScenario, active_part
from dre_plugins.adapters.syne_tune import ASHADRE

RUNG = "rung"
COST = "timetrain"
"""Metric: seconds of one rung alone. Not differences of `SECONDS`, which the backend adjusts."""

N_POLLS = 2000
"""How often the simulated tuner looks for reports while a budget lasts."""

SCHEDULERS: dict[str, Callable[..., Any]] = {
    "asha": baselines.ASHA,
    "ashabore": baselines.ASHABORE,
    "ashacqr": baselines.ASHACQR,
    "bohb": baselines.BOHB,
    "ashadre": ASHADRE,
}


def halve(sources: Sources, run: Run) -> Record:
    """Run the scheduler that a run names; see ``asha``."""
    scenario: Any = scenario_of(sources, run.scenario)
    return asha(scenario, run, make_scheduler(scenario, run))


def asha(scenario: YahpoScenario, run: Run, scheduler: Any) -> Record:
    """Maximise accuracy by successive halving over the training size.

    Returns:
        What ``real_studies.asha`` returns, and ``stats``, the counters of our searcher. A trial
        that is running when the budget is spent goes no further.
    """
    budget = halving_budget(scenario, run.number)
    callback = SimulatorCallback()
    results: list[dict[str, Any]] = callback.results

    def is_over(status: TuningStatus) -> bool:
        spent = sum(result[COST] for result in results)
        return bool(spent >= budget or status.num_trials_finished >= run.trials)

    backend = simulator(
        config_space(scenario.parameters),
        curve_of(scenario, run.number),
        metrics=(METRIC, COST, SECONDS),
        resource=RUNG,
        levels=RUNGS,
        # Nothing but training takes time, and a stop comes before the next rung ends.
        simulator_config=SimulatorConfig(0.0, 0.0, 0.0, 0.0, 0.0),
        tuner_sleep_time=budget / N_POLLS,
    )
    run_tuner(backend, scheduler, callback, stop_criterion=is_over)
    last = {int(result["trial_id"]): float(result[METRIC]) for result in results}
    return {
        "values": [last[trial_id] for trial_id in sorted(last)],
        "evaluations": evaluations_of(results, budget),
        "reference": reference(scenario, run.number),
        "stats": dict(getattr(scheduler.searcher, "stats", {})),
    }


def curve_of(scenario: YahpoScenario, task: int) -> Curve:
    """Return what a trial reports: accuracy, `COST` and `SECONDS` at each rung `[4, 3]`."""

    def curve(configuration: Mapping[str, Any]) -> NDArray[np.float64]:
        active = active_part(scenario.parameters, configuration)
        outputs = [scenario.evaluate(task, active, trainsize=rung / RUNGS[-1]) for rung in RUNGS]
        costs = np.array([output["timetrain"] for output in outputs])
        return np.stack([[output["acc"] for output in outputs], costs, costs.cumsum()], axis=1)

    return curve


def evaluations_of(
    results: Sequence[Mapping[str, Any]], budget: float
) -> list[tuple[int, float, float]]:
    """Return rung, cost so far as a share of the budget, and accuracy of all reports."""
    shares = np.cumsum([result[COST] for result in results]) / budget
    return [
        (int(result[RUNG]), float(share), float(result[METRIC]))
        for result, share in zip(results, shares, strict=True)
    ]


def make_scheduler(scenario: YahpoScenario, run: Run) -> Any:
    """Build the scheduler that a run names, at its defaults except for the rungs.

    Raises:
        ValueError: There is none of this name.
    """
    silence()
    method, options = method_of(run)
    scheduler = entry_of(SCHEDULERS, "sampler", method)
    return scheduler(
        config_space(scenario.parameters),
        metric=METRIC,
        do_minimize=False,
        random_seed=run.sampler_seed,
        time_attr=RUNG,
        grace_period=RUNGS[0],
        max_t=RUNGS[-1],
        reduction_factor=RUNGS[1] // RUNGS[0],
        **(with_settings(options) if scheduler is ASHADRE else options),
    )
