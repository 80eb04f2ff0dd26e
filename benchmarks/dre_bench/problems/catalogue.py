"""All problems by name: what is to be done on a task, by which samplers, for how long."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from dre_bench import tables
from dre_bench.names import entry_of
from dre_bench.problems import foreign, real_studies
from dre_bench.problems.maximise import maximise
from dre_bench.problems.tables import BASELINES, visit_table
from dre_bench.runs import MAXIMISE, Record, Run, Sources, Study
from dre_bench.samplers import SAMPLERS, make_sampler
from dre_bench.scenarios import scenario_of
from dre_bench.tasks import Split

BATCHES = "batches-8"

TasksOf: TypeAlias = Callable[[Sources, str, Split], Sequence[int | str]]

FRAMEWORKS = {
    "ray": ("ray",),
    "syne-tune": ("syne_tune", "huggingface_hub"),
    "asha-syne-tune": ("syne_tune", "huggingface_hub"),
}
NEEDED = {
    MAXIMISE: foreign.MODULES,
    BATCHES: foreign.MODULES,
    "ray": {"hyperopt": "hyperopt"},
    "syne-tune": {"botorch": "botorch"},
    "table": dict.fromkeys(("gp", "dkgp", "fsbo", "rgpe", "tst", "taf"), "botorch"),
}
# What pip calls a module, where it is not the same.
DISTRIBUTIONS = {"ax": "ax-platform", "hebo": "--no-deps hebo"}
PACKAGE = "dre_bench.problems"
RIVALS = ("random", "tpe", "gp", "dre")


def _tasks(sources: Sources, name: str, split: Split) -> Sequence[int | str]:
    return scenario_of(sources, name).splits[split]


@dataclass(frozen=True)
class Problem:
    """Say what is to be done on a task.

    Attributes:
        purpose: What it tells, in a line.
        study: Runs one study and returns its record.
        samplers: Sampler specifications that are compared by default.
        trials: Length of a study by default.
        tasks: The tasks of a scenario's split on which it can be posed.
        known: The names of its samplers, beside import paths.
    """

    purpose: str
    study: Study
    samplers: tuple[str, ...] = RIVALS
    trials: int = 50
    tasks: TasksOf = _tasks
    known: Callable[[], Iterable[str]] = SAMPLERS.keys


def study(sources: Sources, run: Run) -> Record:
    """Run one study.

    Returns:
        What the problem's function returns, and ``seconds`` of the whole study.

    Raises:
        ValueError: There is no such problem, sampler, scenario or task.
    """
    start = time.perf_counter()
    record = problem_of(run.problem).study(sources, run)
    return {"seconds": round(time.perf_counter() - start, 2), **record}


def problem_of(name: str) -> Problem:
    """Return a problem by its name.

    Raises:
        ValueError: If there is none.
    """
    return entry_of(PROBLEMS, "problem", name)


def plan(
    sources: Sources,
    problems: Sequence[str],
    *,
    scenarios: Sequence[str],
    split: Split,
    tasks_per_scenario: int,
    seeds: int,
    samplers: Sequence[str] | None = None,
    trials: int | None = None,
) -> list[Run]:
    """List the runs, so that an interrupted benchmark holds whole pairs as far as it got.

    Args:
        sources: Where data lie.
        problems: Names of problems.
        scenarios: Names of scenarios, see ``dre_bench.scenarios`` and ``dre_bench.tables``.
        split: Which tasks.
        tasks_per_scenario: How many of the split's tasks on which a problem can be posed, spread
            evenly over them.
        seeds: Repetitions of every task.
        samplers: Sampler specifications; None takes each problem's.
        trials: Length of every study; None takes each problem's.

    Raises:
        ValueError: There is no such problem or scenario, or a split has no task.
    """
    runs = []
    for name in problems:
        problem = problem_of(name)
        for scenario in tables.expanded(sources, scenarios):
            eligible = problem.tasks(sources, scenario, split)
            if not eligible:
                raise ValueError(f"{scenario} has no task in its {split} split for {name}.")
            for task in _spread(eligible, tasks_per_scenario):
                for sampler in samplers or problem.samplers:
                    run = Run(sampler, scenario, task, 0, trials or problem.trials, name)
                    runs.append(run)
    return [replace(run, seed=seed) for seed in range(seeds) for run in runs]


def missing_libraries(
    runs: Sequence[Run], environments: Path | None = None
) -> dict[tuple[str, str], str]:
    """Return which samplers of which problems need a library that is not installed.

    Args:
        runs: What is to be run.
        environments: Folder of the environments of foreign rivals.
    """
    missing = {}
    for problem, sampler in dict.fromkeys((run.problem, run.sampler) for run in runs):
        name = sampler.partition(":")[0]
        needed = [*FRAMEWORKS.get(problem, ()), NEEDED.get(problem, {}).get(name)]
        absent = [library for library in needed if library and find_spec(library) is None]
        if absent and not _has_environment(problem, name, environments):
            missing[problem, sampler] = DISTRIBUTIONS.get(absent[0], absent[0].replace("_", "-"))
    return missing


def check_samplers(runs: Sequence[Run]) -> None:
    """Refuse names of samplers that a problem does not have.

    Raises:
        ValueError: There is one; import paths are tried by the runs.
    """
    for problem, sampler in dict.fromkeys((run.problem, run.sampler) for run in runs):
        name = sampler.removeprefix(real_studies.UNTOLD).partition(":")[0]
        known = [*problem_of(problem).known()]
        if name not in known and "." not in name:
            raise ValueError(f"unknown sampler {name!r} of {problem}; known: {', '.join(known)}.")


def _has_environment(problem: str, name: str, environments: Path | None) -> bool:
    is_foreign = problem in (MAXIMISE, BATCHES) and name in foreign.MODULES
    return is_foreign and foreign.python_of(name, environments) is not None


def _spread(tasks: Sequence[int | str], count: int) -> list[int | str]:
    """``count`` tasks at even distances; all of them if there are fewer."""
    count = min(count, len(tasks))
    return [tasks[index * len(tasks) // count] for index in range(count)]


def _tasks_with_feasible(
    sources: Sources, name: str, split: Split, *, quantile: float
) -> Sequence[int | str]:
    scenario: Any = scenario_of(sources, name)
    return [
        task
        for task in scenario.splits[split]
        if real_studies.has_feasible(scenario, task, quantile=quantile)
    ]


def _tables(sources: Sources, name: str, split: Split) -> Sequence[int | str]:
    return tables.tables_of(sources, name).tasks(split)


def _by_optuna(function: Callable[..., Record], **options: Any) -> Study:
    """A study of an Optuna sampler; ``stats`` are the counters of ours."""

    def run_study(sources: Sources, run: Run) -> Record:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        specification = run.sampler.removeprefix(real_studies.UNTOLD)
        sampler = make_sampler(specification, run.sampler_seed, run.scenario)
        record = function(scenario_of(sources, run.scenario), run, sampler, **options)
        return {"stats": dict(getattr(sampler, "stats", {})), **record}

    return run_study


def _by_tuner(module: str, function: str) -> Study:
    """A study by a module that cannot be imported without its framework."""

    def run_study(sources: Sources, run: Run) -> Record:
        record: Record = getattr(importlib.import_module(f"{PACKAGE}.{module}"), function)(
            sources, run
        )
        return record

    return run_study


def _names_in(module: str, table: str) -> Callable[[], Iterable[str]]:
    """Names in a table of a module that cannot be imported without its framework."""
    return lambda: getattr(importlib.import_module(f"{PACKAGE}.{module}"), table)


def _maximise(sources: Sources, run: Run, *, batch: int = 1) -> Record:
    name, _, arguments = run.sampler.partition(":")
    if name not in foreign.MODULES:
        return _by_optuna(maximise, batch=batch)(sources, run)
    if arguments:
        raise ValueError(f"{name} takes no arguments here, got {arguments!r}.")
    return foreign.maximise(sources, run, batch=batch)


def _constrained(quantile: float, *more: str) -> Problem:
    return Problem(
        f"Memory and training time below their {quantile:.0%} quantiles.",
        _by_optuna(real_studies.constrained, quantile=quantile),
        (*RIVALS, "dre:prior=shipped", *more),
        trials=100,
        tasks=partial(_tasks_with_feasible, quantile=quantile),
    )


def _pareto(cost: str) -> Problem:
    return Problem(
        f"Accuracy and {cost}: two objectives.",
        _by_optuna(real_studies.pareto, cost=cost),
        ("random", "tpe", "gp", "nsga2", "dre"),
        trials=100,
    )


def _workers(n_workers: int) -> Problem:
    return Problem(
        f"Asynchronous workers, {n_workers} of them.",
        _by_optuna(real_studies.workers, n_workers=n_workers),
        # Optuna advises constant_liar for parallel studies, and leaves it off.
        ("random", "tpe", "tpe:constant_liar=True", "gp", "dre"),
        trials=100,
    )


PROBLEMS: dict[str, Problem] = {
    MAXIMISE: Problem(
        "The best value over the whole, conditional space.",
        _maximise,
        known=lambda: (*SAMPLERS, *foreign.MODULES),
    ),
    BATCHES: Problem(
        "The same in batches of 8 that are asked for at once.",
        partial(_maximise, batch=8),
        trials=128,
        known=lambda: (*SAMPLERS, *foreign.MODULES),
    ),
    "constrained-10": _constrained(0.1),
    "constrained-50": _constrained(0.5),
    "constrained-90": _constrained(0.9, f"{real_studies.UNTOLD}dre"),
    "crash": Problem(
        "Trials raise in a region of 30 % of the space.",
        _by_optuna(real_studies.crash),
        ("random", "tpe", "dre"),
        trials=100,
    ),
    "pareto-timetrain": _pareto("timetrain"),
    "pareto-memory": _pareto("memory"),
    "asha": Problem(
        "Successive halving over the training size, by Optuna's pruner.",
        _by_optuna(real_studies.asha),
        ("random", "tpe", "dre", "dre:prior=shipped"),
        trials=500,
    ),
    "asha-syne-tune": Problem(
        "The same by whole schedulers of Syne Tune.",
        _by_tuner("syne_tune_halving", "halve"),
        ("asha", "ashabore", "ashacqr", "bohb", "ashadre", "ashadre:prior=shipped"),
        trials=500,
        known=_names_in("syne_tune_halving", "SCHEDULERS"),
    ),
    "async-8": _workers(8),
    "async-1": _workers(1),
    "table": Problem(
        "Rows of a table, all of whose values are known: the paper's protocol.",
        visit_table,
        ("random", "gp", "dre"),
        tasks=_tables,
        known=lambda: ("dre", "ablation", *BASELINES),
    ),
    "ray": Problem(
        "The same as maximise through Ray's Tuner.",
        _by_tuner("ray_tuner", "tune_task"),
        ("random", "optuna", "hyperopt", "dre"),
        known=_names_in("ray_tuner", "SEARCHERS"),
    ),
    "syne-tune": Problem(
        "The same as maximise through Syne Tune's Tuner, on its simulator.",
        _by_tuner("syne_tune_tuner", "tune_task"),
        ("random", "bore", "cqr", "botorch", "kde", "dre"),
        known=_names_in("syne_tune_tuner", "NAMES"),
    ),
}
