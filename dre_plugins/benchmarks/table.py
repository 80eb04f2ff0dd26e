"""The table protocol of the paper: which of 1000 known configurations to look at next.

    python -m dre_plugins.benchmarks.table --data PATH --scenario rbv2_xgboost --split test \\
        --methods random,gp,fsbo,dre,dre:prior=xgboost --seeds 2 --out table.jsonl --jobs 2

Each task is a table of random configurations. All methods begin with the same random rows, then
choose one row after another among those that are left. Regret is the distance to the best row, as
a share of the range of the table. Runs that are in the file already are not repeated.

Methods are "random", "dre" and the classes of `dre_plugins.baselines` (see `BASELINES`), or the
import path of any class with HPO-B's `observe_and_suggest(X_observed, y_observed, X_pending)`.
Arguments follow a colon; methods with several of them are separated by semicolons:
"gp;deep-ensemble:n_members=10,n_steps=300;dre:prior=xgboost". Baselines that learn from past tasks
are given those of the scenario's training split, once a process and outside of the time a step.
Baselines see the features of the space as columns; ours sees the space.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dre_plugins.benchmarks.priors import scenario_metadata, search_space
from dre_plugins.benchmarks.quality import ONE_THREAD, parse_arguments, read_records
from dre_plugins.benchmarks.tasks import SCENARIOS, YahpoScenario
from dre_plugins.recommend.recommender import Recommender
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.metadata import MetaDataset
from dre_plugins.transfer.prior import Prior

N_ROWS = 1000
N_INITIAL = 5
CHECKPOINTS = (10, 20, 35, 100)

Units: TypeAlias = NDArray[np.float64]
# (space, units of all rows, rows seen, their values, seed of this choice) -> next row
Chooser: TypeAlias = Callable[[SearchSpace, Units, list[int], Units, int], int]
Key: TypeAlias = tuple[str, str, int, int, int]

BASELINES = {
    "gp": "dre_plugins.baselines.gaussian_process.GP",
    "deep-ensemble": "dre_plugins.baselines.deep_ensemble.DeepEnsemble",
    "dkgp": "dre_plugins.baselines.deep_kernel_gp.DKGP",
    "fsbo": "dre_plugins.baselines.deep_kernel_gp.FSBO",
    "rgpe": "dre_plugins.baselines.rgpe.RGPE",
    "tst": "dre_plugins.baselines.two_stage.TST",
    "taf": "dre_plugins.baselines.two_stage.TAF",
}


class Method(Protocol):
    """Describe what chooses rows of a table, as HPO-B does."""

    def observe_and_suggest(
        self, X_observed: Units, y_observed: Units, X_pending: Units, /
    ) -> int:
        """Return an index into `X_pending` `[C, D]`, from `[N, D]` and values `[N, 1]`."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the protocol from the command line and print the mean regrets."""
    parser = argparse.ArgumentParser(
        prog="python -m dre_plugins.benchmarks.table",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the scenarios")
    parser.add_argument("--methods", default="random,gp,dre", help="see above")
    parser.add_argument("--scenario", choices=SCENARIOS, default="rbv2_xgboost")
    parser.add_argument("--split", choices=("train", "validation", "test"), default="validation")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("table.jsonl"))
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(arguments)
    os.environ.update(ONE_THREAD)
    methods = options.methods.split(";") if ";" in options.methods else options.methods.split(",")
    tasks = YahpoScenario(options.data / options.scenario).splits[options.split]
    planned: list[Key] = [
        (method, options.scenario, task, seed, options.steps)
        for seed in range(options.seeds)
        for task in tasks
        for method in methods
    ]
    done = {key_of(record) for record in read_records(options.out)}
    todo = [key for key in planned if key not in done]
    run = partial(perform, options.data)
    with (
        ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool,
        options.out.open("a") as file,
    ):
        for record in pool.map(run, todo):
            file.write(json.dumps(record) + "\n")
            file.flush()
    wanted = set(planned)
    print(report([r for r in read_records(options.out) if key_of(r) in wanted], methods))


def perform(data: Path, key: Key) -> dict[str, Any]:
    """Run one method on one task and return the regret after each evaluation."""
    method, scenario, task, seed, steps = key
    choose = None if method == "random" else chooser(method, data / scenario, seed)
    begin = time.perf_counter()
    regret = regret_curve(data / scenario, task, seed, steps, choose)
    return {
        "method": method,
        "scenario": scenario,
        "task": task,
        "seed": seed,
        "steps": steps,
        "regret": regret,
        "seconds": round((time.perf_counter() - begin) / max(steps, 1), 4),
    }


def regret_curve(
    folder: Path, task: int, seed: int, steps: int, choose: Chooser | None
) -> list[float]:
    """Return the regret after 1, 2, … evaluations of a task's table.

    Args:
        folder: Folder of the scenario.
        task: OpenML task id.
        seed: Decides the initial rows, and the order of all for `choose=None`.
        steps: Evaluations after the initial ones.
        choose: How to choose the next row; None goes on at random.
    """
    space, units, values = _table(folder, task)
    order = [int(row) for row in np.random.default_rng([seed, task]).permutation(N_ROWS)]
    rows = order[:N_INITIAL]
    for step in range(steps):
        if choose is None:
            rows.append(order[N_INITIAL + step])
        else:
            rows.append(choose(space, units, rows, values[rows], seed * 1000 + step))
    regret = (values.max() - np.maximum.accumulate(values[rows])) / (values.max() - values.min())
    return [round(float(one), 6) for one in regret]


def key_of(record: dict[str, Any]) -> Key:
    """Return what makes a run a different one from others."""
    return tuple(record[n] for n in ("method", "scenario", "task", "seed", "steps"))


def visit(method: Method, X: Units, y: Units, start: Sequence[int], steps: int) -> list[int]:
    """Return the rows of a table that a method has looked at.

    Args:
        method: Chooses one row after another.
        X: The table `[R, D]`.
        y: Its values `[R]`.
        start: Rows to begin with.
        steps: Rows after these; fewer if the table is exhausted.
    """
    rows = [*start]
    for _ in range(min(steps, len(X) - len(rows))):
        rows.append(_next_row(method, X, rows, y[rows]))
    return rows


def chooser(method: str, folder: Path, seed: int) -> Chooser:
    """Return how a method chooses the next row.

    Args:
        method: Name and arguments.
        folder: Folder of the scenario, whose training split has the past tasks.
        seed: Seed of a baseline; ours gets one with each choice.

    Raises:
        ValueError: If there is no such method.
    """
    name, _, arguments = method.partition(":")
    options = parse_arguments(arguments)
    if name != "dre":
        return partial(_column_choice, _baseline(name, options, folder, seed))
    prior = options.pop("prior", None)
    return dre_chooser(options, None if prior is None else _prior(prior))


def dre_chooser(options: Mapping[str, Any], prior: Prior | None) -> Chooser:
    """Return how a recommender with these settings chooses, once the initial rows are known."""
    return partial(_dre_choice, RecommenderSettings(n_startup_trials=0, **options), prior)


def report(records: Sequence[dict[str, Any]], methods: Sequence[str]) -> str:
    """Return a table: mean regret by method after 10, 20, 35 and 100 evaluations."""
    lines = [f"{'method':40} {'runs':>5} " + " ".join(f"@{n:<6}" for n in CHECKPOINTS) + " s/step"]
    for method in methods:
        own = [record for record in records if record["method"] == method]
        if own:
            curves = np.array([record["regret"] for record in own])
            means = [
                f"{curves[:, n - 1].mean():.4f} " if n <= curves.shape[1] else "–      "
                for n in CHECKPOINTS
            ]
            seconds = np.mean([record["seconds"] for record in own])
            lines.append(f"{method:40} {len(own):>5} {' '.join(means)} {seconds:.3f}")
    return "\n".join(lines)


def _dre_choice(
    settings: RecommenderSettings,
    prior: Prior | None,
    space: SearchSpace,
    units: Units,
    rows: list[int],
    values: Units,
    seed: int,
) -> int:
    history = [
        Trial(space.to_configuration(units[row]), TrialState.COMPLETE, float(value))
        for row, value in zip(rows, values, strict=True)
    ]
    recommender = Recommender(space, settings, seed=seed, prior=prior)
    suggestion = recommender.suggest(history, index=len(rows), candidates=units)[0]
    return int(np.flatnonzero(_same(units, suggestion.units))[0])


def _same(units: Units, row: Units) -> NDArray[np.bool_]:
    return np.asarray(((units == row) | (np.isnan(units) & np.isnan(row))).all(1))


def _column_choice(
    method: Method, space: SearchSpace, units: Units, rows: list[int], values: Units, _: int
) -> int:
    return _next_row(method, space.features(units).astype(np.float64), rows, values)


def _next_row(method: Method, X: Units, rows: list[int], values: Units) -> int:
    pending = np.delete(np.arange(len(X)), rows)
    return int(pending[method.observe_and_suggest(X[rows], values[:, None], X[pending])])


def _baseline(name: str, options: dict[str, Any], folder: Path, seed: int) -> Method:
    path = BASELINES.get(name, name)
    module, _, attribute = path.rpartition(".")
    if not module:
        known = ["random", "dre", *BASELINES]
        raise ValueError(f"methods must be among {known} or import paths, got {name!r}.")
    make = getattr(importlib.import_module(module), attribute)
    if "past" not in inspect.signature(make).parameters:
        method: Method = make(**{"seed": seed, **options})
        return method
    # Learning from past tasks takes longest by far, and is the same for all seeds.
    method = _learnt(path, tuple(sorted(options.items())), folder).with_seed(seed)
    return method


@cache
def _learnt(path: str, options: tuple[tuple[str, Any], ...], folder: Path) -> Any:
    module, _, attribute = path.rpartition(".")
    make = getattr(importlib.import_module(module), attribute)
    return make(_past(folder), **dict(options))


@cache
def _past(folder: Path) -> MetaDataset:
    return scenario_metadata(YahpoScenario(folder), "train")


@cache
def _prior(name: str) -> Prior:
    return Prior.load(name)


@cache
def _table(folder: Path, task: int) -> tuple[SearchSpace, Units, Units]:
    scenario = YahpoScenario(folder)
    space = search_space(scenario.parameters)
    rng = np.random.default_rng(task)
    units = space.canonical(rng.random((N_ROWS, space.n_parameters)))
    configurations = [space.to_configuration(row) for row in units]
    return space, units, scenario.evaluate_many(task, configurations)["acc"]


if __name__ == "__main__":
    main()
