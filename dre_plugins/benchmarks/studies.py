"""Real studies: constraints, crashes, several objectives, several fidelities, many workers.

Paired runs of samplers on real tuning tasks, appended to a JSONL file, as in
``benchmarks.quality``: a command that was interrupted is resumed by giving it again. The problems
are described in ``benchmarks.study_problems``, how they are measured in
``benchmarks.studies_report``.

    python -m dre_plugins.benchmarks.studies --data PATH --split test --out studies.jsonl --jobs 2
    python -m dre_plugins.benchmarks.studies_report studies.jsonl

Every problem has samplers and a number of trials of its own; ``--samplers`` and ``--trials``
replace them. Constraints need Optuna 5 or newer; ``asha-syne-tune`` has samplers of its own, which
need Syne Tune and ``huggingface_hub``.
"""

from __future__ import annotations

import argparse
import importlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dre_plugins.benchmarks import study_problems as problems
from dre_plugins.benchmarks.quality import (
    ONE_THREAD,
    Record,
    Run,
    execute,
    make_sampler,
    plan,
    read_records,
    recorded,
)
from dre_plugins.benchmarks.scenarios import scenario_of
from dre_plugins.benchmarks.tasks import SCENARIOS, Scenario, Split

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler


@dataclass(frozen=True, order=True)
class StudyRun(Run):
    """One study to run.

    Attributes:
        problem: Name of a problem, see ``PROBLEMS``.
    """

    problem: str


def optuna_sampler(scenario: Scenario, run: Run) -> BaseSampler:
    """Build the Optuna sampler that a run names."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    specification = run.sampler.removeprefix(problems.UNTOLD)
    return make_sampler(specification, run.sampler_seed, run.scenario)


@dataclass(frozen=True)
class Problem:
    """Say how a problem is studied.

    Attributes:
        study: Runs one study of a sampler and returns its record; see ``study_problems``.
        samplers: Sampler specifications that are compared by default.
        trials: Length of a study by default.
        is_eligible: Whether the problem can be posed on a task.
        make: Builds what a run's specification names, for ``study``.
    """

    study: Callable[[Any, Run, Any], Record]
    samplers: tuple[str, ...]
    trials: int = 100
    is_eligible: Callable[[Any, int], bool] = lambda scenario, task: True
    make: Callable[[Any, Run], Any] = optuna_sampler


def _constrained(quantile: float, *more: str) -> Problem:
    return Problem(
        partial(problems.constrained, quantile=quantile),
        ("random", "tpe", "gp", "dre", "dre:prior=shipped", *more),
        is_eligible=partial(problems.has_feasible, quantile=quantile),
    )


def _pareto(cost: str) -> Problem:
    return Problem(partial(problems.pareto, cost=cost), ("random", "tpe", "gp", "nsga2", "dre"))


def _workers(n_workers: int) -> Problem:
    return Problem(
        partial(problems.workers, n_workers=n_workers),
        # Optuna advises constant_liar for parallel studies, and leaves it off.
        ("random", "tpe", "tpe:constant_liar=True", "gp", "dre"),
    )


def _by_syne_tune(function: str) -> Callable[..., Any]:
    """A function of a module that cannot be imported without Syne Tune."""

    def call(*arguments: Any) -> Any:
        module = importlib.import_module("dre_plugins.benchmarks.syne_tune_asha")
        return getattr(module, function)(*arguments)

    return call


PROBLEMS: dict[str, Problem] = {
    "constrained-10": _constrained(0.1),
    "constrained-50": _constrained(0.5),
    "constrained-90": _constrained(0.9, f"{problems.UNTOLD}dre"),
    "crash": Problem(problems.crash, ("random", "tpe", "dre")),
    "pareto-timetrain": _pareto("timetrain"),
    "pareto-memory": _pareto("memory"),
    "asha": Problem(problems.asha, ("random", "tpe", "dre", "dre:prior=shipped"), trials=500),
    "asha-syne-tune": Problem(
        _by_syne_tune("asha"),
        ("asha", "ashabore", "ashacqr", "bohb", "ashadre", "ashadre:prior=shipped"),
        trials=500,
        make=_by_syne_tune("make_scheduler"),
    ),
    "async-8": _workers(8),
    "async-1": _workers(1),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    options = _parse(arguments)
    # Set here because the workers inherit it, and numpy and torch read it when they are imported.
    os.environ.update(ONE_THREAD)
    planned = plan_studies(
        options.data,
        names=options.problems,
        scenarios=options.scenarios,
        split=options.split,
        tasks_per_scenario=options.tasks_per_scenario,
        seeds=options.seeds,
        samplers=options.samplers,
        trials=options.trials,
    )
    records = read_records(options.out)
    finished = {study_run_of(record) for record in records if "error" not in record}
    todo = [run for run in planned if run not in finished]
    print(f"{len(todo)} runs to do, {len(planned) - len(todo)} done before, in {options.out}")
    n_failed = execute(
        options.data,
        todo,
        out=options.out,
        jobs=options.jobs,
        perform=perform,
        describe=describe,
    )
    if n_failed:
        raise SystemExit(f"{n_failed} runs failed; their errors are in {options.out}")


def plan_studies(
    data: Path,
    *,
    names: Sequence[str],
    scenarios: Sequence[str],
    split: Split,
    tasks_per_scenario: int,
    seeds: int,
    samplers: Sequence[str] | None = None,
    trials: int | None = None,
) -> list[StudyRun]:
    """List the runs: all problems for the first seed, then for the second, and so on.

    Args:
        data: Folder with a folder for each scenario.
        names: Names of problems.
        scenarios: Names of scenarios.
        split: Which tasks.
        tasks_per_scenario: How many of the split's tasks on which a problem can be posed, spread
            evenly over them.
        seeds: Repetitions of every task.
        samplers: Sampler specifications; None takes each problem's.
        trials: Length of every study; None takes each problem's.
    """
    runs = [
        StudyRun(**vars(run), problem=name)
        for name in names
        for run in plan(
            data,
            samplers=samplers or PROBLEMS[name].samplers,
            scenarios=scenarios,
            split=split,
            tasks_per_scenario=tasks_per_scenario,
            seeds=seeds,
            trials=trials or PROBLEMS[name].trials,
            is_eligible=PROBLEMS[name].is_eligible,
        )
    ]
    return sorted(runs, key=lambda run: run.seed)


def perform(data: Path | None, run: StudyRun) -> Record:
    """Run one study.

    Returns:
        The fields of ``run``; what the problem's function returns; ``seconds`` of the whole
        study; ``stats``, the counters of our sampler; and what ``quality.recorded`` adds.
    """
    return recorded(run, partial(_study_record, data, run))


def study_run_of(record: Record) -> StudyRun:
    """The run that a record belongs to."""
    return StudyRun(**{field.name: record[field.name] for field in fields(StudyRun)})


def describe(record: Record) -> str:
    """Say in a line what became of a run."""
    run = study_run_of(record)
    end = "FAILED" if "error" in record else f"{record['seconds']:.0f} s"
    return f"{run.problem} {run.sampler} {run.scenario} task {run.task} seed {run.seed}: {end}"


def _study_record(data: Path | None, run: StudyRun) -> Record:
    problem = PROBLEMS[run.problem]
    scenario = scenario_of(data, run.scenario)
    sampler = problem.make(scenario, run)
    start = time.perf_counter()
    record = problem.study(scenario, run, sampler)
    seconds = round(time.perf_counter() - start, 2)
    return {"seconds": seconds, "stats": dict(getattr(sampler, "stats", {})), **record}


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m dre_plugins.benchmarks.studies",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the scenarios")
    parser.add_argument("--out", type=Path, default=Path("studies.jsonl"), help="appended to")
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=[*PROBLEMS])
    parser.add_argument("--samplers", nargs="+", help="specifications, as in benchmarks.quality")
    parser.add_argument("--scenarios", nargs="+", choices=SCENARIOS, default=[*SCENARIOS])
    parser.add_argument("--split", choices=("train", "validation", "test"), default="validation")
    parser.add_argument("--tasks-per-scenario", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trials", type=int, help="for asha: at most so many")
    parser.add_argument("--jobs", type=int, default=1, help="processes of one thread each")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
