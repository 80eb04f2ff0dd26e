"""Search quality: paired runs of samplers on real tuning tasks, appended to a JSONL file.

Every sampler gets a study of its own for each (scenario, task, seed), maximises accuracy over the
full, conditional space, and begins with the same number of start-up trials. A run that is in the
file already is not repeated, so an interrupted command is resumed by giving it again; a run that
failed is recorded with its error, harms no other, and is tried again next time.

    python -m dre_plugins.benchmarks.quality --data PATH --samplers random,tpe,gp,dre \\
        --split validation --tasks-per-scenario 4 --seeds 3 --trials 50 --out runs.jsonl --jobs 2
    python -m dre_plugins.benchmarks.report runs.jsonl

A sampler may be given keyword arguments: ``dre:acquisition=lcb``,
``tpe:multivariate=True,group=True``; any other sampler of Optuna is named by its import path,
``optuna.samplers.CmaEsSampler``. ``dre:prior=shipped`` takes the prior that ships for the
scenario, and ``{scenario}`` in a path of a prior stands for the scenario's name. Scenarios are
those of YAHPO Gym, synthetic functions, which need no ``--data``, or yours: see
``benchmarks.scenarios``.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import multiprocessing
import os
import re
import threading
import time
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, fields
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dre_plugins.benchmarks.scenarios import scenario_of
from dre_plugins.benchmarks.tasks import SCENARIOS, Configuration, Scenario, Split

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler
    from rich.progress import Progress

# The prior of each scenario, see `benchmarks.priors`.
SHIPPED_PRIORS = {"rbv2_xgboost": "xgboost", "rbv2_rpart": "decision-tree"}

Record: TypeAlias = dict[str, Any]
Perform: TypeAlias = "Callable[[Path | None, Any], Record]"

N_STARTUP_TRIALS = 10
N_REFERENCE = 2000
"""Random configurations of a task that give its regret a scale (see ``report``)."""

DIED = "the worker process died"
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)


@dataclass(frozen=True, order=True)
class Run:
    """One study to run; what makes it a different study from others.

    Attributes:
        sampler: Sampler specification, such as ``"tpe"`` or ``"dre:acquisition=lcb"``.
        scenario: Name of a scenario, see ``benchmarks.scenarios``.
        task: Number of the task, for YAHPO Gym OpenML's.
        seed: Number of the repetition.
        trials: Length of the study.
    """

    sampler: str
    scenario: str
    task: int
    seed: int
    trials: int

    @property
    def sampler_seed(self) -> int:
        """Same for every sampler, different for every task: tasks must not share their luck."""
        return zlib.crc32(f"{self.scenario}/{self.task}/{self.seed}".encode())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark from the command line."""
    options = _parse(arguments)
    # Set here because the workers inherit it, and numpy and torch read it when they are imported.
    os.environ.update(ONE_THREAD)
    planned = plan(
        options.data,
        samplers=split_specifications(options.samplers),
        scenarios=options.scenarios.split(","),
        split=options.split,
        tasks_per_scenario=options.tasks_per_scenario,
        seeds=options.seeds,
        trials=options.trials,
    )
    todo = unfinished(planned, options.out)
    print(f"{len(todo)} runs to do, {len(planned) - len(todo)} done before, in {options.out}")
    n_failed = execute(options.data, todo, out=options.out, jobs=options.jobs)
    if n_failed:
        raise SystemExit(f"{n_failed} runs failed; their errors are in {options.out}")


def plan(
    data: Path | None,
    *,
    samplers: Sequence[str],
    scenarios: Sequence[str],
    split: Split,
    tasks_per_scenario: int,
    seeds: int,
    trials: int,
    is_eligible: Callable[[Any, int], bool] = lambda scenario, task: True,
) -> list[Run]:
    """List the runs, so that an interrupted benchmark holds whole pairs as far as it got.

    Args:
        data: Folder with a folder for each scenario of YAHPO Gym, if there is one.
        samplers: Sampler specifications.
        scenarios: Names of scenarios.
        split: Which tasks.
        tasks_per_scenario: How many of the split's tasks, spread evenly over them.
        seeds: Repetitions of every task.
        trials: Length of every study.
        is_eligible: Whether a task of a scenario may be among them.
    """
    tasks = {}
    for name in scenarios:
        scenario = scenario_of(data, name)
        eligible = [task for task in scenario.splits[split] if is_eligible(scenario, task)]
        tasks[name] = _spread(eligible, tasks_per_scenario)
    return [
        Run(sampler, name, task, seed, trials)
        for seed in range(seeds)
        for name in scenarios
        for task in tasks[name]
        for sampler in samplers
    ]


def unfinished(runs: Sequence[Run], out: Path) -> list[Run]:
    """Return the runs that a file does not have yet, or only as failed ones."""
    finished = {run_of(record) for record in read_records(out) if "error" not in record}
    return [run for run in runs if run not in finished]


def perform(data: Path | None, run: Run) -> Record:
    """Run one study.

    Returns:
        The fields of ``run`` and, of every trial, ``configurations``, ``values`` and
        ``ask_seconds``; ``reference``, the median and the best of a random sample of the task;
        and what ``recorded`` adds.
    """
    return recorded(run, partial(_study_record, data, run))


def describe(record: Record) -> str:
    """Say in a line what came out of a run."""
    run = run_of(record)
    end = "FAILED" if "error" in record else f"best {max(record['values']):.4f}"
    return f"{run.sampler} {run.scenario} task {run.task} seed {run.seed}: {end}"


def execute(
    data: Path | None,
    runs: Sequence[Run],
    *,
    out: Path,
    jobs: int,
    ray_address: str | None = None,
    perform: Perform = perform,
    describe: Callable[[Record], str] = describe,
) -> int:
    """Perform runs in parallel and append a line to ``out`` as each one ends.

    Args:
        data: Folder of the scenarios of YAHPO Gym, if there is one.
        runs: The runs, in this order.
        out: A JSONL file.
        jobs: How many processes.
        ray_address: Address of a Ray cluster that performs them instead, all CPUs of it;
            ``data`` must lie there under the same path. ``"local"`` starts one of ``jobs`` CPUs.
        perform: Performs a run and returns its record; a function of a module.
        describe: Returns what to print of a record.

    Returns:
        The number of runs that failed.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    if ray_address is None:
        records = _performed(data, runs, jobs, perform)
    else:
        cluster = importlib.import_module("dre_plugins.benchmarks.ray_cluster")
        records = cluster.performed(data, runs, perform, address=ray_address, jobs=jobs)
    n_failed = 0
    with open_for_append(out) as file, _progress() as progress:
        bar = progress.add_task("runs", total=len(runs))
        for record in records:
            file.write(json.dumps(record) + "\n")
            file.flush()
            n_failed += "error" in record
            progress.advance(bar)
            progress.update(bar, description=describe(record))
            if not progress.console.is_terminal:
                print(describe(record), flush=True)
    return n_failed


def _performed(
    data: Path | None, runs: Sequence[Run], jobs: int, perform: Perform
) -> Iterator[Record]:
    """Perform runs in processes of this machine; records come as runs end."""
    workers = _Workers(data, perform)
    with ThreadPoolExecutor(jobs) as pool:
        for done in as_completed([pool.submit(workers.perform, run) for run in runs]):
            yield done.result()
        workers.close()


def recorded(run: Run, study: Callable[[], Record]) -> Record:
    """Run a study, whatever it raises.

    Returns:
        The fields of ``run``, what the study returns, ``versions``, and ``warnings``, each text
        once; or ``error``.
    """
    record: Record = asdict(run)
    try:
        record["versions"] = _versions()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            record.update(study())
        record["warnings"] = sorted({str(warning.message) for warning in caught})
    except Exception as error:  # whatever a sampler raises ends this run only, and is recorded
        record["error"] = "".join(traceback.format_exception(error))
    return record


def run_study(
    scenario: Scenario, run: Run, sampler: BaseSampler
) -> tuple[list[Configuration], list[float], list[float]]:
    """Run one study.

    Returns:
        Configuration, value and seconds spent on suggesting it, of every trial.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    configurations, values, seconds = [], [], []
    for _ in range(run.trials):
        start = time.perf_counter()
        trial = study.ask()
        configuration = scenario.suggest(trial)
        seconds.append(round(time.perf_counter() - start, 5))
        configurations.append(configuration)
        values.append(scenario.value(run.task, configuration))
        study.tell(trial, values[-1])
    return configurations, values, seconds


def reference(scenario: Scenario, task: int) -> dict[str, float]:
    """Median and best value of the random sample of a task."""
    _, outputs = reference_sample(scenario, task)
    values = outputs[scenario.metric]
    return {"median": float(np.median(values)), "best": float(values.max())}


@lru_cache(maxsize=4)
def reference_sample(
    scenario: Scenario, task: int
) -> tuple[list[Configuration], dict[str, NDArray[np.float64]]]:
    """Random configurations and their outputs, the same in every run of the task."""
    sample = scenario.random_configurations(N_REFERENCE, np.random.default_rng(task))
    return sample, scenario.evaluate_many(task, sample)


def make_sampler(specification: str, seed: int, scenario: str) -> BaseSampler:
    """Build a sampler from its name and keyword arguments: ``"tpe:multivariate=True"``."""
    name, _, arguments = specification.partition(":")
    make = SAMPLERS[name] if name in SAMPLERS else _imported_sampler(name)
    options = parse_arguments(arguments)
    if "prior" in options:
        options["prior"] = _prior_for(scenario, options["prior"])
    return make(seed=seed, **options)


def _imported_sampler(path: str) -> Callable[..., BaseSampler]:
    module, _, name = path.rpartition(".")
    if not module:
        raise ValueError(
            f"unknown sampler {path!r}; known: {', '.join(SAMPLERS)}, and import paths such as "
            "optuna.samplers.CmaEsSampler."
        )
    try:
        found: Callable[..., BaseSampler] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"sampler {path!r} cannot be imported: {error}") from error
    return found


def _prior_for(scenario: str, given: Any) -> Any:
    """Return the prior of a scenario: `shipped`, or a path; of a list, that of each objective."""
    if isinstance(given, list):
        return [_prior_for(scenario, one) for one in given]
    if given == "shipped":
        return SHIPPED_PRIORS[scenario]
    return given.format(scenario=scenario) if isinstance(given, str) else given


def parse_arguments(text: str) -> dict[str, Any]:
    """Read ``a=1,b=(2,3),c=name`` as Python literals; a bare name stands for its string."""
    call = ast.parse(f"f({text})", mode="eval").body
    if not isinstance(call, ast.Call) or call.args or any(k.arg is None for k in call.keywords):
        raise ValueError(f"expected key=value,…, got {text!r}.")
    return {
        str(keyword.arg): keyword.value.id
        if isinstance(keyword.value, ast.Name)
        else ast.literal_eval(keyword.value)
        for keyword in call.keywords
    }


def split_specifications(text: str) -> list[str]:
    """Split ``random,tpe:a=1,b=2,dre`` at the commas in front of a sampler's name."""
    names = "|".join(SAMPLERS)
    return re.split(rf",(?=(?:{names}|[\w.]+\.\w+)(?:[:,]|$))", text)


def read_records(path: Path) -> list[Record]:
    """Read the lines of a runs file; a last line that was cut off is left out."""
    if not path.exists():
        return []
    records = []
    for line in path.read_text().splitlines():
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            warnings.warn(f"{path}: skipped a damaged line, {line[:40]!r}…", stacklevel=2)
    return records


def run_of(record: Record) -> Run:
    """The run that a record belongs to."""
    return Run(**{field.name: record[field.name] for field in fields(Run)})


class _Workers:
    """A single-process pool for each calling thread, replaced when its process dies.

    One shared pool would be broken as a whole by one crash, without telling which run it was.
    """

    def __init__(self, data: Path | None, perform: Perform = perform) -> None:
        self._data = data
        self._perform = perform
        self._local = threading.local()
        self._pools: list[ProcessPoolExecutor] = []

    def perform(self, run: Run) -> Record:
        if not hasattr(self._local, "pool"):
            self._start()
        try:
            record: Record = self._local.pool.submit(self._perform, self._data, run).result()
        except BrokenProcessPool:
            self._start()
            record = {**asdict(run), "error": DIED}
        return record

    def close(self) -> None:
        for pool in self._pools:
            pool.shutdown()

    def _start(self) -> None:
        # Spawned, not forked: torch and onnxruntime do not survive a fork with threads.
        context = multiprocessing.get_context("spawn")
        self._local.pool = ProcessPoolExecutor(1, mp_context=context)
        self._pools.append(self._local.pool)


def _random(seed: int) -> BaseSampler:
    import optuna

    return optuna.samplers.RandomSampler(seed=seed)


def _tpe(seed: int, **arguments: Any) -> BaseSampler:
    import optuna

    return optuna.samplers.TPESampler(seed=seed, n_startup_trials=N_STARTUP_TRIALS, **arguments)


def _gp(seed: int, **arguments: Any) -> BaseSampler:
    import optuna

    return optuna.samplers.GPSampler(seed=seed, n_startup_trials=N_STARTUP_TRIALS, **arguments)


def _nsga2(seed: int, **arguments: Any) -> BaseSampler:
    import optuna

    return optuna.samplers.NSGAIISampler(seed=seed, **arguments)


def _dre(seed: int, **arguments: Any) -> BaseSampler:
    from dre_plugins.adapters.optuna import DRESampler

    return DRESampler(seed=seed, **arguments)


SAMPLERS: dict[str, Callable[..., BaseSampler]] = {
    "random": _random,
    "tpe": _tpe,
    "gp": _gp,
    "nsga2": _nsga2,
    "dre": _dre,
}


def _versions() -> dict[str, str]:
    import optuna

    import dre_plugins

    return {"dre_plugins": dre_plugins.__version__, "optuna": optuna.__version__}


def _spread(tasks: Sequence[int], count: int) -> list[int]:
    """``count`` tasks at even distances; all of them if there are fewer."""
    count = min(count, len(tasks))
    return [tasks[index * len(tasks) // count] for index in range(count)]


def open_for_append(path: Path) -> Any:
    """Open ``path`` at the start of a line, also if the last one was cut off."""
    cut_off = path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size > 0
    file = path.open("a")
    if cut_off:
        file.write("\n")
    return file


def _study_record(data: Path | None, run: Run) -> Record:
    scenario = scenario_of(data, run.scenario)
    sampler = make_sampler(run.sampler, run.sampler_seed, run.scenario)
    record: Record = {"reference": reference(scenario, run.task)}
    record["configurations"], record["values"], record["ask_seconds"] = run_study(
        scenario, run, sampler
    )
    return record


def _progress() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    console = Console(stderr=True)
    return Progress(
        MofNCompleteColumn(),
        BarColumn(),
        Remaining(),
        TextColumn("{task.description}"),
        console=console,
        disable=not console.is_terminal,
    )


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m dre_plugins.benchmarks.quality",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, help="folder of the scenarios of YAHPO Gym")
    parser.add_argument("--out", type=Path, default=Path("runs.jsonl"), help="appended to")
    parser.add_argument("--samplers", default="random,tpe,gp,dre")
    parser.add_argument("--scenarios", default=",".join(SCENARIOS))
    parser.add_argument("--split", choices=("train", "validation", "test"), default="validation")
    parser.add_argument("--tasks-per-scenario", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=1, help="processes of one thread each")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
