"""Studies of several objectives: learners on their costs, networks of LCBench, and functions.

    PYTHONPATH=.:benchmarks:lab nice python lab/several_objectives.py run DATA OUT SAMPLERS SEEDS N PROBLEMS
    PYTHONPATH=.:benchmarks:lab python lab/several_objectives.py report OUT ...

DATA is the folder of YAHPO Gym, N the number of trials. SAMPLERS are of dre, gp, tpe. PROBLEMS are
zdt, bowls, dtlz (three objectives), lcbench/2 (two validation tasks, accuracy and training time),
rbv2_rpart/memory/2 (accuracy and this cost). A study that is in OUT, a JSONL file, is not repeated.

Hypervolumes are relative to that of the front of 1000 random configurations. Each objective is
scaled by these: for tasks 0 is its 1 % quantile, 1 the best accuracy or the 99 % quantile of the
saved cost, beyond which nothing counts; for functions 0 is the 20 % quantile, 1 the best.
"""  # noqa: E501

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from scipy.stats import wilcoxon

from dre_bench import lcbench
from dre_bench.problems.catalogue import _spread
from dre_bench.problems.real_studies import dominated_area
from dre_bench.runs import Sources
from dre_bench.scenarios import scenario_of
from dre_plugins import DRESampler

lcbench.OUTPUTS["time"] = 0  # which the suites do not need
N_SAMPLE = 1000
N_POINTS = 20_000  # among which the volume of three objectives is counted
CHECKPOINTS = (5, 8, 10, 15, 20, 25, 30, 40, 50)
Values = np.ndarray
SAMPLERS: dict[str, Callable[[int], Any]] = {
    "dre": lambda seed: DRESampler(seed=seed, memory=False),
    "gp": lambda seed: optuna.samplers.GPSampler(seed=seed, deterministic_objective=True),
    "tpe": lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=True),
}


@dataclass
class Problem:
    """Hold objectives by trial; values of `sample` are as `evaluate` returns them, `[S, O]`."""

    name: str
    evaluate: Callable[[optuna.Trial], tuple[float, ...]]
    directions: list[str]
    sample: Values
    has_log_cost: bool = False

    @property
    def is_task(self) -> bool:
        return "-" in self.name

    def hypervolumes(self, values: Values) -> list[float]:
        """Return the hypervolume after each trial, relative to that of the sample."""
        sample, found = self._signed(self.sample), self._signed(values)
        if self.is_task:
            low = np.quantile(sample, 0.01, axis=0)
            high = np.array([sample[:, 0].max(), np.quantile(sample[:, 1], 0.99)])
        else:
            low, high = np.quantile(sample, 0.2, axis=0), sample.max(axis=0)

        def scaled(points: Values) -> Values:
            units = (points - low) / (high - low)
            if self.is_task:
                units[:, 1] = np.minimum(units[:, 1], 1.0)
            return np.maximum(units, 0.0)

        unit, points = _volume(scaled(sample)), scaled(found)
        return [_volume(points[: n + 1]) / unit for n in range(len(points))]

    def _signed(self, values: Values) -> Values:
        signs = [1.0 if direction == "maximize" else -1.0 for direction in self.directions]
        values = values.copy()
        if self.has_log_cost:
            values[:, 1] = np.log(values[:, 1])
        return values * signs


def _volume(points: Values) -> float:
    if points.shape[1] == 2:
        return dominated_area(points)
    drawn = np.random.default_rng(0).random((N_POINTS, points.shape[1])) * 1.2
    return float((points[:, None] >= drawn).all(-1).any(0).mean())


def zdt(c: dict[str, Any]) -> tuple[float, ...]:
    x = np.array([*c.values()])
    g = 1.0 + 9.0 * x[1:].mean()
    return float(x[0]), float(g * (1.0 - np.sqrt(x[0] / g)))


def dtlz(c: dict[str, Any]) -> tuple[float, ...]:
    x = np.array([*c.values()])
    g, (a, b) = 1.0 + np.square(x[2:] - 0.5).sum(), x[:2] * np.pi / 2
    return tuple(g * v for v in (np.cos(a) * np.cos(b), np.cos(a) * np.sin(b), np.sin(a)))


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


FUNCTIONS = {"zdt": (zdt, cube(6), 2), "dtlz": (dtlz, cube(5), 3), "bowls": (bowls, mixed, 2)}


def function(name: str) -> Problem:
    f, space, n_objectives = FUNCTIONS[name]
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    sample = np.array([f(space(study.ask())) for _ in range(N_SAMPLE)])
    return Problem(name, lambda trial: f(space(trial)), ["minimize"] * n_objectives, sample)


def task_of(scenario: Any, task: int, cost: str) -> Problem:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    drawn = [scenario.suggest(study.ask()) for _ in range(N_SAMPLE)]
    outputs = scenario.evaluate_many(task, drawn)
    sample = np.stack([outputs[scenario.metric], outputs[cost]], axis=1).astype(float)

    def evaluate(trial: optuna.Trial) -> tuple[float, ...]:
        found = scenario.evaluate_many(task, [scenario.suggest(trial)])
        return float(found[scenario.metric][0]), float(found[cost][0])

    name = f"{scenario.name}-{task}-{cost}"
    return Problem(name, evaluate, ["maximize", "minimize"], sample, cost != "memory")


def problems(names: str, data: Path) -> Iterator[Problem]:
    for name in names.split(","):
        scenario, *rest = name.split("/")
        if scenario in FUNCTIONS:
            yield function(scenario)
        elif scenario == "lcbench":
            networks = lcbench.Lcbench(data / scenario)
            for task in _spread(networks.validation, int(rest[0])):
                yield task_of(networks, task, "time")
        else:
            learner: Any = scenario_of(Sources(data=data), scenario)
            for task in _spread(learner.splits["validation"], int(rest[1])):
                yield task_of(learner, task, rest[0])


def run(data: str, out: str, samplers: str, seeds: str, n_trials: str, names: str) -> None:
    path = Path(out)
    lines = path.read_text().splitlines() if path.exists() else []
    done = {tuple(json.loads(line)["key"]) for line in lines}
    for seed in range(int(seeds)):
        for problem in problems(names, Path(data)):
            for name in samplers.split(","):
                key = (name, problem.name, seed, int(n_trials))
                if key in done:
                    continue
                study = optuna.create_study(
                    directions=problem.directions, sampler=SAMPLERS[name](seed)
                )
                began = time.process_time()
                study.optimize(problem.evaluate, n_trials=int(n_trials))
                seconds = (time.process_time() - began) / int(n_trials)
                values = np.array([trial.values for trial in study.trials])
                row = {"key": key, "hv": problem.hypervolumes(values), "seconds": seconds}
                with path.open("a") as file:
                    file.write(json.dumps(row) + "\n")


def report(*paths: str) -> None:
    curves: dict[str, dict[Any, Values]] = defaultdict(dict)
    seconds = defaultdict(list)
    for path in paths:
        for line in Path(path).read_text().splitlines():
            row = json.loads(line)
            name, problem, seed, _ = row["key"]
            curves[name][problem, seed] = np.array(row["hv"])
            seconds[name].append(row["seconds"])
    common = sorted(set.intersection(*(set(of_name) for of_name in curves.values())))
    first = next(iter(curves))
    for name, of_name in curves.items():
        table = np.array([of_name[key] for key in common])
        means = " ".join(f"{table[:, n - 1].mean():.3f}" for n in CHECKPOINTS)
        print(f"{name:10} {means}  {np.mean(seconds[name]):.2f} s  {len(common)} studies")
        for n in CHECKPOINTS if name != first else ():
            gains = [of_name[key][n - 1] - curves[first][key][n - 1] for key in common]
            better, worse = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
            print(f"  @{n}: better {better}, worse {worse}, p = {wilcoxon(gains).pvalue:.3f}")


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    {"run": run, "report": report}[sys.argv[1]](*sys.argv[2:])
