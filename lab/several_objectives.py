"""Studies of several objectives: learners on their costs, networks of LCBench, and functions.

    PYTHONPATH=.:benchmarks:lab nice python lab/several_objectives.py run DATA OUT SAMPLERS SEEDS N PROBLEMS
    PYTHONPATH=.:benchmarks:lab python lab/several_objectives.py report OUT ...

DATA is the folder of YAHPO Gym, N the number of trials, or 6x8: six rounds of eight trials that are
asked at once. SAMPLERS are of dre, gp, tpe, nsga, random; the report compares the first with the
others. PROBLEMS are the FUNCTIONS below, and SCENARIO/OUTPUTS/TASKS, the accuracy and further outputs
of so many validation tasks, such as rbv2_rpart/timetrain/2, lcbench/val_cross_entropy+time/2, or
rbv2_rpart/timetrain@memory/2, where memory must be below its 30 % quantile instead of being minimised;
lcbench/2 is lcbench/time/2. A study that is in OUT, a JSONL file, is not repeated.

Hypervolumes are relative to that of the front of 1000 random configurations, of which, as of the
trials, only feasible ones count. Each objective is scaled by these: for tasks 0 is its 1 % quantile,
1 the best quality or the 99 % quantile of the saved cost, beyond which nothing counts; for functions
0 is the 20 % quantile, 1 the best. Times and losses are on a logarithmic scale.
"""  # noqa: E501

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from scipy.stats import wilcoxon

from dre_bench import lcbench
from dre_bench.learner_evaluations.records import append, read
from dre_bench.problems.catalogue import _spread
from dre_bench.problems.real_studies import dominated_area
from dre_bench.runs import Sources
from dre_bench.samplers import make_sampler
from dre_bench.scenarios import scenario_of

lcbench.OUTPUTS |= {"time": 0, "val_balanced_accuracy": 3}  # which the suites do not need
N_SAMPLE = 1000
N_POINTS = 20_000  # among which the volume of three and more objectives is counted
CHECKPOINTS = (5, 8, 10, 15, 16, 20, 24, 25, 30, 32, 40, 48, 50)
QUALITIES = ("acc", "auc", "val_accuracy", "val_balanced_accuracy")  # which are maximised
COSTS = ("time", "timetrain", "memory")
LOGARITHMIC = ("time", "timetrain", "logloss", "val_cross_entropy")
LIMIT = 0.3  # quantile that an output of a constraint must not exceed
Values = np.ndarray
SAMPLERS = {
    "dre": "dre:prior=auto,memory=False",
    "gp": "gp:deterministic_objective=True",
    "tpe": "tpe:multivariate=True",
    # With its own population of 50, the first 50 trials would be random.
    "nsga": "nsga2:population_size=10",
    "random": "random",
}


@dataclass
class Problem:
    """Hold objectives and constraints by trial.

    `sample` has the objectives `[S, O]` and how far constraints are violated `[S, C]`, side by
    side, as `evaluate` returns them.
    """

    name: str
    evaluate: Callable[[optuna.Trial], tuple[float, ...]]
    directions: list[str]
    sample: Values
    outputs: tuple[str, ...] = ()  # of a task

    def hypervolumes(self, values: Values) -> list[float]:
        """Return the hypervolume after each trial, relative to that of the sample."""
        sample, found = self._signed(self.sample), self._signed(values)
        sample = sample[~np.isnan(sample).any(axis=1)]
        low, high = np.quantile(sample, 0.01 if self.outputs else 0.2, axis=0), sample.max(axis=0)
        is_cost = np.array([output in COSTS for output in self.outputs] or [False] * len(low))
        high[is_cost] = np.quantile(sample[:, is_cost], 0.99, axis=0)

        def scaled(points: Values) -> Values:
            units = (points - low) / (high - low)
            units[:, is_cost] = np.minimum(units[:, is_cost], 1.0)
            return np.maximum(np.nan_to_num(units, nan=0.0), 0.0)

        unit = _volumes(scaled(sample))[-1]
        return [volume / unit for volume in _volumes(scaled(found))]

    def _signed(self, values: Values) -> Values:
        """Return objectives to be maximised `[N, O]`, NaN where a constraint is violated."""
        n_objectives = len(self.directions)
        signs = [1.0 if direction == "maximize" else -1.0 for direction in self.directions]
        signed = values[:, :n_objectives].copy()
        for place, output in enumerate(self.outputs):
            if output in LOGARITHMIC:
                signed[:, place] = np.log(signed[:, place])
        signed[(values[:, n_objectives:] > 0.0).any(axis=1)] = np.nan
        return signed * signs


def _volumes(points: Values) -> list[float]:
    """Return the volume that the first points dominate `[N, O]`, of each number of them."""
    n_points, n_objectives = points.shape
    if n_objectives == 2:
        return [dominated_area(points[: n + 1]) for n in range(n_points)]
    drawn = np.random.default_rng(0).random((N_POINTS, n_objectives)) * 1.2
    is_dominated, volumes = np.zeros(N_POINTS, dtype=bool), []
    for point in points:
        is_dominated |= (point >= drawn).all(axis=1)
        volumes.append(float(is_dominated.mean()))
    return volumes


def zdt(c: dict[str, Any]) -> tuple[float, ...]:
    x = np.array([*c.values()])
    g = 1.0 + 9.0 * x[1:].mean()
    return float(x[0]), float(g * (1.0 - np.sqrt(x[0] / g)))


def dtlz(c: dict[str, Any], n_objectives: int) -> tuple[float, ...]:
    x = np.array([*c.values()])
    *angles, left = x[: n_objectives - 1] * np.pi / 2
    values = [np.cos(left), np.sin(left)]
    for angle in angles[::-1]:
        values = [*(np.cos(angle) * value for value in values), np.sin(angle)]
    g = 1.0 + np.square(x[n_objectives - 1 :] - 0.5).sum()
    return tuple(float(g * value) for value in values)


def c2dtlz(c: dict[str, Any]) -> tuple[float, ...]:
    """C2-DTLZ2 with two objectives: only parts of the front are feasible."""
    f = np.array(dtlz(c, 2))
    centres = np.array([[1.0, 0.0], [0.0, 1.0], [0.5**0.5, 0.5**0.5]])
    return *f, float((np.square(f - centres).sum(1) - 0.2**2).min())


def osy(c: dict[str, Any]) -> tuple[float, ...]:
    """Osyczka and Kundu (1995): six floats, six constraints."""
    a, b, c_, d, e, f = np.array([*c.values()]) * [10, 10, 4, 6, 4, 10] + [0, 0, 1, 0, 1, 0]
    first = 25 * (a - 2) ** 2 + (b - 2) ** 2 + (c_ - 1) ** 2 + (d - 4) ** 2 + (e - 1) ** 2
    met = (a + b - 2, 6 - a - b, 2 - b + a, 2 - a + 3 * b, 4 - (c_ - 3) ** 2 - d)
    met = (*met, (e - 3) ** 2 + f - 4)
    return (
        float(-first),
        float(a**2 + b**2 + c_**2 + d**2 + e**2 + f**2),
        *(-float(m) for m in met),
    )


def bowls(c: dict[str, Any]) -> tuple[float, ...]:
    x = np.array([c[f"x{i}"] for i in range(5)])
    first = np.square(x - 1.0).sum() + (c["c"] != "b")
    return float(first), float(
        np.square(x + 1.0).sum() + (c["c"] != "a") + abs(np.log(c["n"] / 10))
    )


def cube(n: int) -> Callable[[optuna.Trial], dict[str, Any]]:
    return lambda trial: {f"x{i}": trial.suggest_float(f"x{i}", 0, 1) for i in range(n)}


def mixed(trial: optuna.Trial) -> dict[str, Any]:
    numbers = {f"x{i}": trial.suggest_float(f"x{i}", -5, 5) for i in range(5)}
    choice = trial.suggest_categorical("c", ["a", "b", "c"])
    return {**numbers, "c": choice, "n": trial.suggest_int("n", 1, 1000, log=True)}


# With their spaces and numbers of objectives; what else they return are constraints.
FUNCTIONS: dict[str, tuple[Callable[..., tuple[float, ...]], Callable[..., Any], int]] = {
    "zdt": (zdt, cube(6), 2),
    "bowls": (bowls, mixed, 2),
    "dtlz": (partial(dtlz, n_objectives=3), cube(5), 3),
    "dtlz4": (partial(dtlz, n_objectives=4), cube(7), 4),
    "dtlz5": (partial(dtlz, n_objectives=5), cube(8), 5),
    "c2dtlz": (c2dtlz, cube(6), 2),
    "osy": (osy, cube(6), 2),
}


def drawn(space: Callable[[optuna.Trial], dict[str, Any]]) -> list[dict[str, Any]]:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    return [space(study.ask()) for _ in range(N_SAMPLE)]


def function(name: str) -> Problem:
    f, space, n_objectives = FUNCTIONS[name]
    sample = np.array([f(configuration) for configuration in drawn(space)])
    return Problem(name, lambda trial: f(space(trial)), ["minimize"] * n_objectives, sample)


def task_of(scenario: Any, task: int, outputs: str) -> Problem:
    further, _, limited = outputs.partition("@")
    names = (scenario.metric, *further.split("+"))

    def evaluated(configurations: list[dict[str, Any]]) -> Values:
        found = scenario.evaluate_many(task, configurations)
        columns = [*names, limited] if limited else names
        return np.stack([found[name] for name in columns], axis=1).astype(float)

    sample = evaluated(drawn(scenario.suggest))
    limits = [0.0] * len(names) + [np.quantile(sample[:, -1], LIMIT)] * bool(limited)

    def evaluate(trial: optuna.Trial) -> tuple[float, ...]:
        return tuple((evaluated([scenario.suggest(trial)])[0] - limits).tolist())

    directions = ["maximize" if name in QUALITIES else "minimize" for name in names]
    name = f"{scenario.name}-{task}-{outputs}"
    return Problem(name, evaluate, directions, sample - limits, names)


def problems(names: str, data: Path) -> Iterator[Problem]:
    for name in names.split(","):
        scenario, *outputs, n_tasks = name.split("/") if "/" in name else (name, "")
        if scenario in FUNCTIONS:
            yield function(scenario)
            continue
        if scenario == "lcbench":
            source: Any = lcbench.Lcbench(data / scenario)
            tasks = source.validation
        else:
            source = scenario_of(Sources(data=data), scenario)
            tasks = source.splits["validation"]
        for task in _spread(tasks, int(n_tasks)):
            yield task_of(source, task, outputs[0] if outputs else "time")


def run(data: str, out: str, samplers: str, seeds: str, n_trials: str, names: str) -> None:
    path = Path(out)
    done = {tuple(row["key"]) for row in read(path)}
    for seed in range(int(seeds)):
        for problem in problems(names, Path(data)):
            for name in samplers.split(","):
                key = (name, problem.name, seed, n_trials)
                if key in done:
                    continue
                sampler = make_sampler(SAMPLERS[name], seed, "")
                began = time.process_time()
                values = values_of(problem, sampler, n_trials)
                seconds = (time.process_time() - began) / len(values)
                row = {"key": key, "hv": problem.hypervolumes(values), "seconds": seconds}
                row |= {"stats": dict(getattr(sampler, "stats", {})), "values": values.tolist()}
                append(path, row)


def values_of(problem: Problem, sampler: Any, n_trials: str) -> Values:
    """Run a study; return objectives and violations of its trials `[N, O + C]`."""
    n_objectives = len(problem.directions)
    rounds, _, n_at_once = n_trials.partition("x")
    study = optuna.create_study(directions=problem.directions, sampler=sampler)
    values = []
    for _ in range(int(rounds)):
        asked = (study.ask() for _ in range(int(n_at_once or 1)))
        for trial, found in [(trial, problem.evaluate(trial)) for trial in asked]:
            for place, violation in enumerate(found[n_objectives:]):
                trial.set_constraint(f"c{place}", violation)
            study.tell(trial, found[:n_objectives])
            values.append(found)
    return np.array(values)


def report(*paths: str) -> None:
    curves: dict[str, dict[Any, Values]] = defaultdict(dict)
    seconds, stats = defaultdict(list), defaultdict(Counter)
    for path in paths:
        for row in read(Path(path)):
            name, problem, seed, _ = row["key"]
            curves[name][problem, seed] = np.array(row["hv"])
            seconds[name].append(row["seconds"])
            stats[name].update(row["stats"])
    first, *others = curves
    print("\n".join(f"{n:8} {np.mean(seconds[n]):.3f} s, {dict(stats[n])}" for n in curves))
    for other in others:
        common = sorted(curves[first].keys() & curves[other].keys())
        print(f"{first} and {other}, {len(common)} studies")
        for n in CHECKPOINTS:
            pairs = [(curves[first][key][:n], curves[other][key][:n]) for key in common]
            found = np.array([[c[-1] for c in pair] for pair in pairs if {*map(len, pair)} == {n}])
            if len(found):
                gains = found[:, 0] - found[:, 1]
                means, p = found.mean(0), wilcoxon(gains).pvalue
                counts = f"{len(found)}: better {(gains > 0).sum()}, worse {(gains < 0).sum()}"
                print(f"  @{n}: {means[0]:.3f}, {means[1]:.3f}; {counts}, p = {p:.3f}")
    for problem in sorted({problem for problem, _ in curves[first]}):
        print(problem)
        for name, of_name in curves.items():
            table = np.array([curve for (of, _), curve in of_name.items() if of == problem])
            points = [n for n in CHECKPOINTS if table.size and n <= table.shape[1]]
            means = " ".join(f"@{n} {table[:, n - 1].mean():.3f}" for n in points)
            print(f"  {name:8} {means}  ({len(table)})")


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")  # what is experimental in Optuna
    {"run": run, "report": report}[sys.argv[1]](*sys.argv[2:])
