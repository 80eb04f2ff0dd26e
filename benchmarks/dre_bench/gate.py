"""Whether a change has made search worse: `make gate`, of which CI runs the quick part.

Runs that a seed makes deterministic are compared one by one with stored figures. Each figure is
the logarithm of a loss, so that small is good:

    order   1 − rank correlation of predicted ranks with the truth, on configurations that the
            ensemble does not know
    pick    regret after the suggestion that follows a given history
    study   regret after a study of 40 trials; not in CI

Regret: 0 is the best value there is, 1 the median of random configurations. On the machine that
stored the figures an unchanged program differs by nothing. On another one rounding errors grow to
other suggestions, some better and some worse. So a measure has got worse only if its mean
difference is above a margin, and the lower confidence bound of that above 0.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr, t as students_t

from dre_bench.priors import search_space
from dre_bench.synthetic import VALUE, synthetic_scenario
from dre_bench.tables import drawn_rows, row_keys, trials_of
from dre_bench.tasks import TaskSample, load_extract
from dre_plugins.engine.runtime import isolated
from dre_plugins.recommend import Recommender
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.study import AskTell
from dre_plugins.transfer.spaces.inference import infer_space

Array = NDArray[np.float64]

DATA = Path(__file__).parents[1] / "data"
FIGURES = DATA / "gate.json"
EXTRACT = DATA / "yahpo_extract.npz"
SEEDS = tuple(range(8))
QUICK_SEEDS = (0,)
FUNCTIONS = ("mixed", "branches", "sinusoid")
# Task 0 is the function as published; the others are moved, their optimum is 0 (1) as well.
COPIES = (1, 2, 3, 4)
TABLE_TASKS = 8
STUDIED = "mixed"
STUDY_SEEDS = SEEDS[:4]
STUDY_TRIALS = 40
N_UNKNOWN = 250
# Smaller regrets count as equal.
FLOOR = 1e-3
# Significance level of the one-sided test of each measure.
ERROR = 0.005
# A run that differs by a larger factor than this counts as this factor: none dominates the mean.
CLIP = 0.5
# Of the mean difference of decimal logarithms: 5 %. Less is not worth a failed check.
MARGIN = 0.02


@dataclass(frozen=True)
class Problem:
    """A space all of whose values can be known; larger values are better.

    Args:
        space: The search space.
        units: Configurations `[N, P]`: all there are of a table, else some at random.
        values: Their values `[N]`.
        best: The best value there is.
        value: The value of a configuration; None for a table.
    """

    space: SearchSpace
    units: Array
    values: Array
    best: float
    value: Callable[[Mapping[str, Any]], float] | None

    def log_regret(self, value: float) -> float:
        """Return the decimal logarithm of the regret of a value."""
        scale = self.best - float(np.median(self.values))
        return math.log10(FLOOR + max(0.0, self.best - value) / scale)


@dataclass(frozen=True)
class Run:
    """Say what is run: one suggestion after n trials, or a study of n trials."""

    kind: str
    task: int
    n: int
    seed: int
    is_study: bool = False

    def __str__(self) -> str:
        return f"{self.kind}/{self.task}/{self.n}/{self.seed}"


def runs_of(seeds: Iterable[int], *, with_studies: bool = True) -> list[Run]:
    """Return all runs of some seeds; studies take most of the time."""
    found = []
    for seed in seeds:
        for kind in ("rbv2_rpart", "rbv2_xgboost"):
            found += [Run(kind, task, 25, seed) for task in range(TABLE_TASKS)]
        for kind in FUNCTIONS:
            found += [Run(kind, task, n, seed) for task in COPIES for n in (15, 80)]
        if with_studies and seed in STUDY_SEEDS:
            found += [Run(STUDIED, task, STUDY_TRIALS, seed, is_study=True) for task in COPIES]
    return found


def figures_of(run: Run) -> dict[str, float]:
    """Return the figures of a run by "measure run"."""
    problem = _problem(run.kind, run.task)
    if run.is_study:
        return {f"study {run}": _study(problem, run)}
    figures = _suggestion(problem, run)
    return {f"{measure} {run}": value for measure, value in figures.items()}


def measured(runs: Sequence[Run], jobs: int = 1) -> dict[str, float]:
    """Return the figures of several runs."""
    if jobs == 1:
        parts = [figures_of(run) for run in runs]
    else:
        with ProcessPoolExecutor(jobs) as pool:
            parts = [*pool.map(figures_of, runs)]
    return {name: round(value, 4) for part in parts for name, value in part.items()}


@dataclass(frozen=True)
class Verdict:
    """Hold how one measure differs from what is stored.

    Args:
        measure: "order", "pick" or "study".
        n: Number of runs.
        changed: How many of them differ at all.
        stored: Mean of the stored figures.
        difference: Mean difference; above 0 is worse.
        lowest: Lower confidence bound of the mean difference.
        highest: Upper confidence bound.
    """

    measure: str
    n: int
    changed: int
    stored: float
    difference: float
    lowest: float
    highest: float

    @property
    def is_worse(self) -> bool:
        """Whether it is worse beyond chance and by more than the margin."""
        return self.lowest > 0.0 and self.difference > MARGIN

    def __str__(self) -> str:
        is_better = self.highest < 0.0 and self.difference < -MARGIN
        word = "WORSE" if self.is_worse else "better" if is_better else "ok"
        return (
            f"{self.measure:6} {word:6} {self.changed:3} of {self.n:3} runs differ; "
            f"mean {self.stored:+.3f} {self.difference:+.3f} "
            f"({self.lowest:+.3f} to {self.highest:+.3f})"
        )


def compare(stored: Mapping[str, float], found: Mapping[str, float]) -> list[Verdict]:
    """Compare figures with stored ones.

    Raises:
        ValueError: If a run has no stored figure.
    """
    missing = sorted(found.keys() - stored.keys())
    if missing:
        raise ValueError(f"no figure is stored of {missing[:3]}; run `make gate-update`.")
    pairs: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for name, value in found.items():
        pairs[name.split()[0]].append((stored[name], value))
    return [_verdict(measure, np.array(both)) for measure, both in pairs.items()]


def _verdict(measure: str, pairs: Array) -> Verdict:
    differences = np.clip(pairs[:, 1] - pairs[:, 0], -CLIP, CLIP)
    n = len(differences)
    mean, reach = float(differences.mean()), _reach(differences)
    changed = int((differences != 0).sum())
    stored = float(pairs[:, 0].mean())
    return Verdict(measure, n, changed, stored, mean, mean - reach, mean + reach)


def _reach(values: Array) -> float:
    """Return how far the mean may be off, one-sided by `ERROR`."""
    n = len(values)
    return float(students_t.isf(ERROR, n - 1) * values.std(ddof=1)) / math.sqrt(n)


def read_figures(path: Path = FIGURES) -> dict[str, float]:
    """Read stored figures."""
    figures: dict[str, float] = json.loads(path.read_text())["figures"]
    return figures


def write_figures(figures: Mapping[str, float], path: Path = FIGURES) -> None:
    """Write figures, with the mean of each measure and its confidence bounds."""
    means = {}
    for measure in dict.fromkeys(name.split()[0] for name in figures):
        values = np.array([v for name, v in figures.items() if name.startswith(f"{measure} ")])
        reach = _reach(values)
        mean = float(values.mean())
        means[measure] = [round(bound, 3) for bound in (mean - reach, mean, mean + reach)]
    content = {"means with 99 % bounds": means, "figures": dict(figures)}
    path.write_text(json.dumps(content, indent=1) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare with the stored figures, or store new ones.

    Returns:
        1 if a measure has got worse.
    """
    parser = argparse.ArgumentParser(prog="python -m dre_bench.gate")
    parser.add_argument("--update", action="store_true", help="store the figures of this program")
    parser.add_argument("--seeds", type=int, nargs="+", default=[*SEEDS])
    parser.add_argument("--quick", action="store_true", help="what CI runs: one seed, no studies")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(arguments)
    seeds = SEEDS if options.update else QUICK_SEEDS if options.quick else options.seeds
    is_quick = options.quick and not options.update
    found = measured(runs_of(seeds, with_studies=not is_quick), options.jobs)
    if options.update:
        write_figures(found)
        print(f"{len(found)} figures are in {FIGURES}.")
        return 0
    verdicts = compare(read_figures(), found)
    print(*verdicts, sep="\n")
    return int(any(verdict.is_worse for verdict in verdicts))


# ---- what is run


@cache
def _problem(kind: str, task: int) -> Problem:
    if kind not in FUNCTIONS:
        return _table([sample for sample in _samples() if sample.scenario == kind][task])
    scenario = synthetic_scenario(kind)
    space = search_space(scenario.parameters)
    rng = np.random.default_rng([task, 1])
    units = space.canonical(rng.random((N_UNKNOWN, space.n_parameters)))
    configurations = [space.to_configuration(row) for row in units]
    values = scenario.evaluate_many(task, configurations)[VALUE]
    best = 1.0 if kind == "sinusoid" else 0.0
    return Problem(
        space, units, values, best, lambda configuration: scenario.value(task, configuration)
    )


@cache
def _samples() -> list[TaskSample]:
    return load_extract(EXTRACT)


def _table(sample: TaskSample) -> Problem:
    configurations = [
        {
            name: sample.choices[name][int(value)] if name in sample.choices else float(value)
            for name, value in zip(sample.parameters, row, strict=True)
            if not math.isnan(value)
        }
        for row in sample.values
    ]
    space = infer_space(configurations, sample.parameters)
    values = sample.outputs["acc"].astype(np.float64)
    return Problem(space, space.to_units(configurations), values, float(values.max()), None)


def _suggestion(problem: Problem, run: Run) -> dict[str, float]:
    """Return what becomes of one suggestion, by measure.

    A history of random configurations, half of them of the better half, as in a study.
    """
    rng = np.random.default_rng([run.seed, run.task, run.n])
    good = np.argsort(-problem.values, kind="stable")[: len(problem.values) // 2]
    rows = drawn_rows(good, len(problem.values), run.n, rng)
    history = trials_of(problem.space, problem.units[rows], problem.values[rows])
    recommender = Recommender(problem.space, seed=run.seed, prior=None)
    candidates = problem.units if problem.value is None else None
    with isolated("cpu", 1):
        ensemble = recommender.ensemble(history, index=run.n, candidates=candidates)
        rest = np.setdiff1d(np.arange(len(problem.values)), rows)
        mean, _ = ensemble.predicted(problem.units[rest])
    (choice,) = recommender.suggest(history, index=run.n, candidates=candidates)
    picked = _value_of(problem, problem.space.canonical(choice.units[None]))
    return {"order": _log_disorder(mean, problem.values[rest]), "pick": problem.log_regret(picked)}


def _log_disorder(ranks: Array, values: Array) -> float:
    correlation = float(spearmanr(-ranks, values).statistic)
    if math.isnan(correlation):  # all alike
        correlation = 0.0
    return math.log10(FLOOR + 1.0 - correlation)


def _value_of(problem: Problem, units: Array) -> float:
    if problem.value is not None:
        return problem.value(problem.space.to_configuration(units[0]))
    return float(problem.values[row_keys(problem.units).index(row_keys(units)[0])])


def _study(problem: Problem, run: Run) -> float:
    assert problem.value is not None
    study = AskTell(problem.space, direction="maximize", seed=run.seed)
    for _ in range(run.n):
        number, configuration = study.ask()
        study.tell(number, problem.value(configuration))
    return problem.log_regret(float(study.best.value or 0.0))


if __name__ == "__main__":
    raise SystemExit(main())
