"""Search quality through the tuners of Ray Tune and Syne Tune, by the protocol of `quality`.

    python -m dre_plugins.benchmarks.framework_quality --framework ray --data PATH \\
        --split test --tasks 2 --seeds 2 --trials 50 --out ray.jsonl
    python -m dre_plugins.benchmarks.report ray.jsonl --against ray:dre --checkpoints 10,20,30,50

Each run is a real tuner (`ray_quality`, `syne_tune_quality`) with a searcher at its defaults; its
trials run one after the other, so that only what is suggested counts. All searchers are given the
same flat search space, because most of them know no conditions: the objective ignores what is
inactive. The methods that end in "-conditional" are told the conditions; have a report leave them
out (`--samplers`) where they were not run, because it compares what all samplers have finished.

A method may be given keyword arguments, as in `quality`: `dre:prior=shipped`. Runs that are in the
file already are not repeated; a run that failed is recorded with its error and tried again.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache, partial
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeAlias

import dre_plugins
from dre_plugins.benchmarks.quality import (
    ONE_THREAD,
    SHIPPED_PRIORS,
    Record,
    Run,
    open_for_append,
    parse_arguments,
    plan,
    read_records,
    reference,
    run_of,
)
from dre_plugins.benchmarks.tasks import SCENARIOS, Configuration, Parameter, YahpoScenario

METRIC = "acc"
"""Name of what is maximised."""

FRAMEWORKS = {
    "ray": "dre_plugins.benchmarks.ray_quality",
    "syne-tune": "dre_plugins.benchmarks.syne_tune_quality",
}
METHODS = {
    "ray": ("random", "optuna", "hyperopt", "dre", "optuna-conditional", "dre-conditional"),
    "syne-tune": ("random", "bore", "cqr", "botorch", "kde", "dre"),
}
CONDITIONAL = "-conditional"

Evaluate: TypeAlias = Callable[[Mapping[str, Any]], float]
Tune: TypeAlias = Callable[[Sequence[Parameter], Evaluate, Run], tuple[list[float], list[float]]]
"""What a framework's module has as `tune_task`: values and seconds of suggesting them."""


@dataclass(frozen=True)
class Objective:
    """Evaluate configurations on one task.

    Only the names of the files are pickled: each process loads the network once.

    Attributes:
        folder: Folder of the scenario.
        task: OpenML task id.
    """

    folder: Path
    task: int

    def __call__(self, configuration: Mapping[str, Any]) -> float:
        """Return the accuracy; inactive parameters are ignored."""
        scenario = _scenario(self.folder)
        active = active_part(scenario.parameters, configuration)
        return scenario.evaluate(self.task, active)[METRIC]


def active_part(
    parameters: Sequence[Parameter], configuration: Mapping[str, Any]
) -> Configuration:
    """Return the parameters of a configuration that are active in it."""
    return {
        one.name: configuration[one.name] for one in parameters if one.is_active(configuration)
    }


def method_of(run: Run) -> tuple[str, dict[str, Any]]:
    """Return the name of a run's method and its keyword arguments.

    Args:
        run: A run with a sampler such as `"ray:dre:prior=shipped"`.
    """
    _, method, arguments = f"{run.sampler}:".split(":", 2)
    options = parse_arguments(arguments.removesuffix(":"))
    if options.get("prior") == "shipped":
        options["prior"] = SHIPPED_PRIORS[run.scenario]
    return method, options


def perform(data: Path, run: Run) -> Record:
    """Run one tuner and return what `quality.perform` returns: its values, or its error."""
    record: Record = asdict(run)
    framework = run.sampler.partition(":")[0]
    try:
        record["versions"] = {
            "dre_plugins": dre_plugins.__version__,
            framework: version(framework),
        }
        objective = Objective((data / run.scenario).resolve(), run.task)
        scenario = _scenario(objective.folder)
        record["reference"] = reference(scenario, run.task)
        tune_task: Tune = importlib.import_module(FRAMEWORKS[framework]).tune_task
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            values, seconds = tune_task(scenario.parameters, objective, run)
        record["values"] = values
        record["ask_seconds"] = [round(one, 5) for one in seconds]
        record["warnings"] = sorted({str(warning.message) for warning in caught})
    except Exception as error:  # whatever a tuner raises ends this run only, and is recorded
        record["error"] = "".join(traceback.format_exception(error))
    return record


def execute(data: Path, runs: Sequence[Run], out: Path) -> Iterator[Record]:
    """Perform runs in a process of their own and append a line to `out` as each one ends."""
    # Spawned, so that libraries of the tuners see how many threads they may use.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for record in pool.map(partial(perform, data), runs):
            with open_for_append(out) as file:
                file.write(json.dumps(record) + "\n")
            yield record


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    options = _parse(arguments)
    os.environ.update(ONE_THREAD)
    planned = plan(
        options.data,
        samplers=[f"{options.framework}:{method}" for method in options.methods],
        scenarios=options.scenario,
        split=options.split,
        tasks_per_scenario=options.tasks,
        seeds=options.seeds,
        trials=options.trials,
    )
    finished = {run_of(record) for record in read_records(options.out) if "error" not in record}
    todo = [run for run in planned if run not in finished]
    print(f"{len(todo)} runs to do, {len(planned) - len(todo)} done before, in {options.out}")
    n_failed = 0
    for number, record in enumerate(execute(options.data, todo, options.out), 1):
        n_failed += "error" in record
        end = "FAILED" if "error" in record else f"best {max(record['values']):.4f}"
        name = "{sampler} {scenario} task {task} seed {seed}".format(**record)
        print(f"{number}/{len(todo)} {name}: {end}", flush=True)
    if n_failed:
        raise SystemExit(f"{n_failed} runs failed; their errors are in {options.out}")


@cache
def _scenario(folder: Path) -> YahpoScenario:
    return YahpoScenario(folder)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m dre_plugins.benchmarks.framework_quality",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--framework", choices=FRAMEWORKS, required=True)
    parser.add_argument("--data", type=Path, required=True, help="folder of the scenarios")
    parser.add_argument("--out", type=Path, default=Path("runs.jsonl"), help="appended to")
    parser.add_argument("--methods", nargs="+", help="all but the conditional ones by default")
    parser.add_argument("--scenario", nargs="+", choices=SCENARIOS, default=SCENARIOS)
    parser.add_argument("--split", choices=("train", "validation", "test"), default="validation")
    parser.add_argument("--tasks", type=int, default=2, help="tasks of each scenario")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--trials", type=int, default=50)
    options = parser.parse_args(arguments)
    known = METHODS[options.framework]
    options.methods = options.methods or [m for m in known if not m.endswith(CONDITIONAL)]
    unknown = [method for method in options.methods if method.partition(":")[0] not in known]
    if unknown:
        parser.error(f"unknown methods {', '.join(unknown)}; known: {', '.join(known)}")
    return options


if __name__ == "__main__":
    # By its real name, so that a tuner's workers can import the objective.
    importlib.import_module("dre_plugins.benchmarks.framework_quality").main()
