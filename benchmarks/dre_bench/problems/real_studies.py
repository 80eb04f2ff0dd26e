"""Real studies: constraints, crashes, several objectives, several fidelities, many workers.

Each runs one Optuna study on one task and returns what the report needs. Accuracy is maximised at
the full training size unless stated otherwise. ``reference`` is always of the random sample of
the task (``maximise.reference_sample``), which also sets limits and scales.

    constrained  Memory and training time must each stay below a quantile of the random sample.
                 A sampler whose name begins with ``untold-`` is not told of the constraints.
    crash        Trials raise in a region of 30 % of the space, see ``CRASH_PARAMETERS``.
    pareto       Accuracy and one cost. Hypervolume after each trial, divided by that of the
                 random sample. Accuracy: 0 at its 1 % quantile, 1 at the best of the sample. Cost:
                 0 at its 99 % quantile, 1 at its 1 % quantile and below, training time on a
                 logarithmic scale. What is below 0 counts as 0.
    asha         Rungs at 1/27, 1/9, 1/3 and all of the training data, under Optuna's
                 SuccessiveHalvingPruner with reduction factor 3. A rung costs its whole training
                 time: nothing is kept of the rung before, as a learner on more data starts anew.
                 A study ends when it has spent what 50 full random trials cost.
                 ``asha-syne-tune``, the same by Syne Tune's schedulers: ``syne_tune_halving``.
    workers      Trials take their training time on simulated workers, of which none waits:
                 suggestions are free, and as many trials are running as there are workers.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dre_bench.problems.maximise import reference, reference_sample
from dre_bench.runs import Record, Run
from dre_bench.tasks import Parameter, YahpoScenario

if TYPE_CHECKING:
    import optuna
    from optuna.samplers import BaseSampler

Floats = NDArray[np.float64]

UNTOLD = "untold-"
CONSTRAINED = ("memory", "timetrain")
MIN_FEASIBLE = 5
"""Of the random sample; with fewer, the best feasible value is not known well enough."""

CRASH_SHARE = 0.3
# Two numeric parameters that are always active, and which end of their ranges crashes. On most
# validation tasks the region holds between a quarter and three quarters of the best 2 %.
CRASH_PARAMETERS = {
    "rbv2_xgboost": {"nrounds": 1.0, "subsample": 1.0},  # large models on many rows
    "rbv2_rpart": {"maxdepth": 1.0, "minsplit": -1.0},  # deep trees with small nodes
}

RUNGS = (1, 3, 9, 27)
N_FULL_TRIALS = 50
"""A study under successive halving may cost as much as so many full random trials."""


def check_outputs(scenario: YahpoScenario, task: int, *names: str) -> None:
    """Raise a ValueError unless a scenario has accuracy and outputs of these names."""
    _, outputs = reference_sample(scenario, task)
    absent = [name for name in ("acc", *names) if name not in outputs]
    if absent:
        raise ValueError(
            f"the problem needs the outputs {', '.join(absent)}, which {scenario.name} has not; "
            "scenarios of YAHPO Gym have."
        )


class SimulatedCrash(RuntimeError):
    """What a trial in the crash region raises."""


def constrained(
    scenario: YahpoScenario, run: Run, sampler: BaseSampler, *, quantile: float
) -> Record:
    """Maximise accuracy under two constraints.

    Returns:
        ``values``; ``violations`` of the constraints, at most 0 where they are met;
        ``reference``: median and best of the feasible configurations, their share, and limits.
    """
    import optuna

    limits = limits_of(scenario, run.number, quantile)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    values, violations = [], []
    for _ in range(run.trials):
        trial = study.ask()
        outputs = scenario.evaluate(run.number, scenario.suggest(trial))
        violations.append({name: outputs[name] - limit for name, limit in limits.items()})
        if not run.sampler.startswith(UNTOLD):
            for name, violation in violations[-1].items():
                trial.set_constraint(name, violation)
        values.append(outputs["acc"])
        study.tell(trial, values[-1])

    feasible = is_feasible(scenario, run.number, limits)
    sample = reference_sample(scenario, run.number)[1]["acc"]
    return {
        "values": values,
        "violations": [[*violation.values()] for violation in violations],
        "reference": {
            "median": float(np.median(sample[feasible])),
            "best": float(sample[feasible].max()),
            "share": float(feasible.mean()),
            "limits": limits,
        },
    }


def crash(scenario: YahpoScenario, run: Run, sampler: BaseSampler) -> Record:
    """Maximise accuracy where trials of a region raise.

    Returns:
        ``values``, None where a trial crashed; ``reference``: median and best outside the region.
    """
    import optuna

    sample, outputs = reference_sample(scenario, run.number)
    risks = np.array([risk_of(scenario, configuration) for configuration in sample])
    border = np.quantile(risks, 1.0 - CRASH_SHARE)

    def objective(trial: optuna.Trial) -> float:
        configuration = scenario.suggest(trial)
        if risk_of(scenario, configuration) > border:
            raise SimulatedCrash
        return scenario.evaluate(run.number, configuration)["acc"]

    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective, n_trials=run.trials, catch=SimulatedCrash)
    outside = outputs["acc"][risks <= border]
    return {
        "values": [None if trial.values is None else trial.values[0] for trial in study.trials],
        "reference": {"median": float(np.median(outside)), "best": float(outside.max())},
    }


def pareto(scenario: YahpoScenario, run: Run, sampler: BaseSampler, *, cost: str) -> Record:
    """Maximise accuracy and minimise a cost.

    Returns:
        ``values``, pairs of accuracy and cost; ``hypervolume`` after each trial.
    """
    import optuna

    check_outputs(scenario, run.number, cost)
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)
    values = []
    for _ in range(run.trials):
        trial = study.ask()
        outputs = scenario.evaluate(run.number, scenario.suggest(trial))
        values.append((outputs["acc"], outputs[cost]))
        study.tell(trial, values[-1])

    _, outputs_of_sample = reference_sample(scenario, run.number)
    sample = np.stack([outputs_of_sample["acc"], outputs_of_sample[cost]], axis=1)
    points = scaled(np.array(values), sample, log_cost=cost == "timetrain")
    unit = dominated_area(scaled(sample, sample, log_cost=cost == "timetrain"))
    areas = [dominated_area(points[: n + 1]) / unit for n in range(run.trials)]
    return {"values": values, "hypervolume": areas}


def asha(scenario: YahpoScenario, run: Run, sampler: BaseSampler) -> Record:
    """Maximise accuracy by successive halving over the training size.

    Returns:
        ``values``, the last one of each trial; ``evaluations``: rung, cost so far as a share of
        that of ``N_FULL_TRIALS`` full random trials, and accuracy; ``reference``.
    """
    import optuna

    budget = halving_budget(scenario, run.number)
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=3)
    study = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)
    evaluations: list[tuple[int, float, float]] = []
    cost = 0.0
    while cost < 1.0 and len(study.get_trials(deepcopy=False)) < run.trials:
        trial = study.ask()
        configuration = scenario.suggest(trial)
        state = optuna.trial.TrialState.COMPLETE
        for rung in RUNGS:
            outputs = scenario.evaluate(run.number, configuration, trainsize=rung / RUNGS[-1])
            cost += outputs["timetrain"] / budget
            evaluations.append((rung, cost, outputs["acc"]))
            trial.report(outputs["acc"], rung)
            if rung < RUNGS[-1] and trial.should_prune():
                state = optuna.trial.TrialState.PRUNED
                break
        is_complete = state is optuna.trial.TrialState.COMPLETE
        study.tell(trial, outputs["acc"] if is_complete else None, state=state)
    return {
        "values": [trial.value for trial in study.get_trials(deepcopy=False)],
        "evaluations": evaluations,
        "reference": reference(scenario, run.number),
    }


def workers(scenario: YahpoScenario, run: Run, sampler: BaseSampler, *, n_workers: int) -> Record:
    """Maximise accuracy by asynchronous workers.

    Returns:
        ``values`` in the order in which trials end; ``finished``: when they do, as a share of the
        mean time that as many random trials take on these workers; ``reference``.
    """
    import optuna

    check_outputs(scenario, run.number, "timetrain")
    _, sample = reference_sample(scenario, run.number)
    unit = float(sample["timetrain"].mean()) * run.trials / n_workers
    study = optuna.create_study(direction="maximize", sampler=sampler)
    running: list[tuple[float, int, Any, float]] = []  # by the time at which they end
    now, n_asked = 0.0, 0
    values: list[float] = []
    finished: list[float] = []
    while len(values) < run.trials:
        while len(running) < n_workers and n_asked < run.trials:
            trial = study.ask()
            outputs = scenario.evaluate(run.number, scenario.suggest(trial))
            end = now + outputs["timetrain"] / unit
            heapq.heappush(running, (end, trial.number, trial, outputs["acc"]))
            n_asked += 1
        now, _, trial, value = heapq.heappop(running)
        study.tell(trial, value)
        values.append(value)
        finished.append(now)
    return {"values": values, "finished": finished, "reference": reference(scenario, run.number)}


def halving_budget(scenario: YahpoScenario, task: int) -> float:
    """Training time of ``N_FULL_TRIALS`` full random trials on average, in seconds."""
    check_outputs(scenario, task, "timetrain")
    _, sample = reference_sample(scenario, task)
    return N_FULL_TRIALS * float(sample["timetrain"].mean())


def limits_of(scenario: YahpoScenario, task: int, quantile: float) -> dict[str, float]:
    """Largest feasible value of each constrained output."""
    check_outputs(scenario, task, *CONSTRAINED)
    _, sample = reference_sample(scenario, task)
    return {name: float(np.quantile(sample[name], quantile)) for name in CONSTRAINED}


def is_feasible(
    scenario: YahpoScenario, task: int, limits: Mapping[str, float]
) -> NDArray[np.bool_]:
    """Which configurations of the random sample keep the limits ``[N]``."""
    _, sample = reference_sample(scenario, task)
    kept = [sample[name] <= limit for name, limit in limits.items()]
    return np.asarray(np.all(kept, axis=0))


def has_feasible(scenario: YahpoScenario, task: int, *, quantile: float) -> bool:
    """Whether the random sample has enough feasible configurations to measure regret by."""
    limits = limits_of(scenario, task, quantile)
    return int(is_feasible(scenario, task, limits).sum()) >= MIN_FEASIBLE


def risk_of(scenario: YahpoScenario, configuration: Mapping[str, Any]) -> float:
    """What a trial crashes by: a signed sum of two parameters, each on its own scale in [0, 1]."""
    if scenario.name not in CRASH_PARAMETERS:
        names = ", ".join(CRASH_PARAMETERS)
        raise ValueError(f"crash regions are known for {names}, not for {scenario.name}.")
    parameters = {parameter.name: parameter for parameter in scenario.parameters}
    return sum(
        sign * _unit(parameters[name], configuration[name])
        for name, sign in CRASH_PARAMETERS[scenario.name].items()
    )


def scaled(values: Floats, sample: Floats, *, log_cost: bool) -> Floats:
    """Accuracy and cost by the ranges of a random sample, larger is better, ``[N, 2]``.

    Args:
        values: Accuracies and costs ``[N, 2]``.
        sample: The same of the random sample ``[S, 2]``.
        log_cost: Whether the cost is on a logarithmic scale.
    """
    worst, best = np.quantile(sample[:, 0], 0.01), sample[:, 0].max()
    scale = np.log if log_cost else np.asarray
    low, high = scale(np.quantile(sample[:, 1], [0.01, 0.99]))
    gain = (values[:, 0] - worst) / (best - worst)
    # Cheaper than that are mostly artefacts of the surrogate, such as trainings without memory.
    saving = np.minimum((high - scale(values[:, 1])) / (high - low), 1.0)
    return np.asarray(np.maximum(np.stack([gain, saving], axis=1), 0.0))


def dominated_area(points: Floats) -> float:
    """Area between the origin and non-negative points ``[N, 2]``."""
    points = points[np.argsort(-points[:, 0], kind="stable")]
    height = np.maximum.accumulate(points[:, 1])
    width = points[:, 0] - np.append(points[1:, 0], 0.0)
    return float(width @ height)


def _unit(parameter: Parameter, value: float) -> float:
    if parameter.log:
        low, high, value = np.log([parameter.low, parameter.high, value])
    else:
        low, high = parameter.low, parameter.high
    return float((value - low) / (high - low))
