"""Figures of real studies: constraints, crashes, several objectives, halving, workers.

Means over the runs of a problem; ``rank`` is the mean place among the samplers of the same
(scenario, task, seed), 1 = best, ties share their mean place. Only what every sampler finished is
compared. What the columns are is said in `DEFINITIONS`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from dre_bench.problems.real_studies import RUNGS
from dre_bench.reports import statistics
from dre_bench.reports.results import Key, comparable, key_of, paired_keys
from dre_bench.reports.statistics import Comparison, Floats, Integers
from dre_bench.reports.summary import (
    Table,
    best_cells,
    paired_tests,
    reached,
    size,
)
from dre_bench.runs import Record

Figures: TypeAlias = dict[str, float]
Regret: TypeAlias = Callable[[Floats], float]
"""Of the values that a study had so far."""

CHECKPOINTS = (10, 25, 50, 100)
SHARES = (0.05, 0.1, 0.2, 0.5, 1.0)
CRASH_TRIALS = 30
LARGER_IS_BETTER = "hypervolume"

DEFINITIONS = {
    "Regret": "(best − x) / (best − median) of the best value x so far that counts; at most 1, "
    "which is also what a study has until anything counts. “best” is the highest that is known "
    "for the task and the problem: of all runs given and of 2000 random configurations; “median” "
    "is that sample's. With constraints and crashes only feasible or surviving trials and "
    "configurations count; under asha only evaluations with all of the training data. The "
    "problems asha and asha-syne-tune share what is known, and so do both async.",
    "@25": "After 25 trials have ended.",
    "@10%": "When 10 % of a budget is spent: of the training time of 50 full random trials for "
    "asha, of the time in which the workers run as many random trials for async. Training times "
    "are uneven: some studies end before 100 %, others long after it.",
    "Feasible": "Share of trials that meet all constraints.",
    f"Crashed >{CRASH_TRIALS}": f"Share of trials after the {CRASH_TRIALS}th that crashed; a "
    "random one does with 30 %.",
    "Hypervolume": "See problems.real_studies; 1 is the front of 2000 random configurations.",
    "Full": "Evaluations with all of the training data that end within the budget.",
    "s / trial": "Seconds of the whole study, by its trials.",
    "Fallbacks": "How often the surrogate failed, over all runs.",
}


@dataclass(frozen=True)
class Paired:
    """Figures of the paired runs of one problem.

    Attributes:
        problem: Its name.
        samplers: Names, in the order of axis 0.
        keys: (scenario, task, seed), in the order of axis 1.
        columns: Names of the figures, in the order of axis 2.
        figures: ``[samplers, keys, columns]``; regrets may exceed 1 or be infinite.
        fallbacks: How often the surrogate of each sampler failed.
    """

    problem: str
    samplers: tuple[str, ...]
    keys: tuple[Key, ...]
    columns: tuple[str, ...]
    figures: Floats
    fallbacks: tuple[int, ...]

    @property
    def tasks(self) -> Integers:
        """Number of the task of each key, ``[keys]``."""
        numbers = {task: i for i, task in enumerate(dict.fromkeys(key[:2] for key in self.keys))}
        return np.array([numbers[key[:2]] for key in self.keys])

    @property
    def ranked(self) -> list[str]:
        """The columns by which samplers are compared."""
        return [column for column in self.columns if "@" in column]

    def of_runs(self, column: str) -> Floats:
        """What is averaged, ``[samplers, keys]``."""
        figures = self.figures[:, :, self.columns.index(column)]
        return np.minimum(figures, 1.0) if column.startswith("regret") else figures

    def means(self) -> Floats:
        """Means over the runs, ``[samplers, columns]``."""
        return np.stack([self.of_runs(column).mean(1) for column in self.columns], axis=1)

    def ranks(self, column: str) -> Floats:
        """Mean places of the samplers by one column, ``[samplers]``."""
        figures = self.figures[:, :, self.columns.index(column)]
        return np.asarray(statistics.ranks(_sign(column) * figures).mean(1))

    def comparisons(self, against: str, column: str) -> list[Comparison]:
        """Compare every sampler with one, over tasks; p is adjusted for the number of samplers."""
        losses = statistics.mean_by_task(_sign(column) * self.of_runs(column), self.tasks)
        return statistics.compare_all(losses, self.samplers.index(against))


def collect(
    records: Sequence[Record],
    checkpoints: Sequence[int] = (),
    known: Sequence[Record] | None = None,
) -> list[Paired]:
    """Arrange finished runs by problem.

    Args:
        records: Records of finished runs, see ``results.finished``.
        checkpoints: Numbers of trials that are reported; those of `CHECKPOINTS` by default.
        known: Finished runs that say what the best value of a task is; by default the same.

    Returns:
        One for the runs of a problem that can be compared, see ``results.comparable``.
    """
    best: dict[tuple[str, str, int | str], float] = defaultdict(lambda: -np.inf)
    by_problem = defaultdict[str, list[Record]](list)
    for one in records:
        by_problem[one["problem"]].append(one)
    for one in records if known is None else known:
        if "reference" in one:
            task = _scale(one)
            best[task] = max(best[task], one["reference"]["best"], *_counting(one))
    return [
        _paired(group, best, checkpoints or CHECKPOINTS)
        for of_problem in by_problem.values()
        for group in comparable(of_problem)
    ]


def tables(paired: Paired, against: str) -> dict[str, Table]:
    """Return figures, and paired tests against one of the samplers, by title."""
    n_tasks, n_runs = len(set(paired.tasks)), len(paired.keys)
    title = f"{paired.problem}: {size(n_tasks, n_runs)}"
    found = {title: _overview(paired)}
    if len(paired.samplers) > 1:
        tests = [paired.comparisons(against, column) for column in paired.ranked]
        found[f"{paired.problem}: tasks won/tied/lost against {against}"] = paired_tests(
            paired.samplers, against, paired.ranked, tests
        )
    return found


def asynchrony(many: Paired, one: Paired) -> Table:
    """Return what it costs, at equal evaluations, that suggestions do not wait for results.

    Args:
        many: With several workers.
        one: With one worker.
    """
    columns = [c for c in many.ranked if c in one.columns and not c.endswith("%")]

    def mean(paired: Paired, name: str, column: str) -> float:
        return float(paired.of_runs(column)[paired.samplers.index(name)].mean())

    rows = [
        [name, *(f"{mean(many, name, c) - mean(one, name, c):+.3f}" for c in columns)]
        for name in many.samplers
        if name in one.samplers
    ]
    return Table(["sampler", *columns], rows)


def _paired(
    records: Sequence[Record],
    best: Mapping[tuple[str, str, int | str], float],
    checkpoints: Sequence[int],
) -> Paired:
    keys = paired_keys(records)
    runs = {(one["sampler"], key_of(one)): one for one in records}
    samplers = tuple(dict.fromkeys(one["sampler"] for one in records))
    grid = [[runs[name, key] for key in keys] for name in samplers]
    shortest = min(len(one["values"]) for row in grid for one in row)
    steps = reached(checkpoints, shortest)
    figures = [[_figures(one, best[_scale(one)], steps) for one in row] for row in grid]
    shared = set.intersection(*({*cell} for row in figures for cell in row))
    columns = tuple(column for column in figures[0][0] if column in shared)
    return Paired(
        records[0]["problem"],
        samplers,
        keys,
        columns,
        np.array([[[cell[c] for c in columns] for cell in row] for row in figures]),
        tuple(sum(one["stats"].get("fallbacks", 0) for one in row) for row in grid),
    )


def _scale(record: Record) -> tuple[str, str, int | str]:
    """What the best known value belongs to: some problems share it."""
    problem, kind = record["problem"], _kind(record)
    shared = kind if kind in ("asha", "async") else problem
    return shared, record["scenario"], record["task"]


def _kind(record: Record) -> str:
    return str(record["problem"]).partition("-")[0]


def _sign(column: str) -> float:
    """What makes smaller figures the better ones."""
    return -1.0 if column.startswith(LARGER_IS_BETTER) else 1.0


def _counting(record: Record) -> Floats:
    """What may count as a best value, −inf where nothing does, ``[trials or evaluations]``."""
    if "violations" in record:
        met = np.max(record["violations"], axis=1) <= 0.0
        return np.where(met, record["values"], -np.inf)
    if "evaluations" in record:
        return np.array(
            [acc if rung == RUNGS[-1] else -np.inf for rung, _, acc in record["evaluations"]]
        )
    return np.array([-np.inf if value is None else value for value in record["values"]])


def _figures(record: Record, best: float, steps: Sequence[int]) -> Figures:
    """The row of a table that a run is worth."""
    regret = partial(_regret, record, best)
    figures = _KINDS[_kind(record)](record, regret, steps)
    return {**figures, "s / trial": record["seconds"] / len(record["values"])}


def _constrained(record: Record, regret: Regret, steps: Sequence[int]) -> Figures:
    values = _counting(record)
    return {**_by_trial(values, regret, steps), "feasible": float(np.isfinite(values).mean())}


def _crash(record: Record, regret: Regret, steps: Sequence[int]) -> Figures:
    values = _counting(record)
    late = ~np.isfinite(values[CRASH_TRIALS:])
    figures = _by_trial(values, regret, steps)
    return {**figures, f"crashed >{CRASH_TRIALS}": float(late.mean())} if len(late) else figures


def _pareto(record: Record, regret: Regret, steps: Sequence[int]) -> Figures:
    return {f"{LARGER_IS_BETTER}@{n}": record["hypervolume"][n - 1] for n in steps}


def _asha(record: Record, regret: Regret, steps: Sequence[int]) -> Figures:
    values = _counting(record)
    costs = np.array([cost for _, cost, _ in record["evaluations"]])
    return {
        **_by_share(values, costs, regret),
        "trials": len(record["values"]),
        "full": int(np.isfinite(values[costs <= 1.0]).sum()),
    }


def _async(record: Record, regret: Regret, steps: Sequence[int]) -> Figures:
    values = _counting(record)
    return {
        **_by_trial(values, regret, steps),
        **_by_share(values, np.array(record["finished"]), regret),
        "time": record["finished"][-1],
    }


_KINDS: dict[str, Callable[[Record, Regret, Sequence[int]], Figures]] = {
    "constrained": _constrained,
    "crash": _crash,
    "pareto": _pareto,
    "asha": _asha,
    "async": _async,
}


def _by_trial(values: Floats, regret: Regret, steps: Sequence[int]) -> Figures:
    return {f"regret@{n}": regret(values[:n]) for n in steps}


def _by_share(values: Floats, spent: Floats, regret: Regret) -> Figures:
    return {f"regret@{share:.0%}": regret(values[spent <= share]) for share in SHARES}


def _regret(record: Record, best: float, values: Floats) -> float:
    scale = best - record["reference"]["median"]
    highest = values.max(initial=-np.inf)
    # A task where half of the random sample is optimal has nothing to find.
    return float((best - highest) / scale) if scale > 0 else 0.0


def _overview(paired: Paired) -> Table:
    ranked = paired.ranked
    others = [column for column in paired.columns if column not in ranked]
    means = dict(zip(paired.columns, paired.means().T, strict=True))
    ranks = [paired.ranks(column) for column in ranked]
    failed = paired.fallbacks if any(paired.fallbacks) else ()
    head = ["sampler", *ranked, *(f"rank@{c.partition('@')[2]}" for c in ranked), *others]
    rows = [
        [
            name,
            *(f"{means[column][i]:.3f}" for column in ranked),
            *(f"{one[i]:.2f}" for one in ranks),
            *(f"{means[column][i]:.3g}" for column in others),
            *(str(count) for count in failed[i : i + 1]),
        ]
        for i, name in enumerate(paired.samplers)
    ]
    lowest = np.stack([*(_sign(column) * means[column] for column in ranked), *ranks], axis=1)
    best = best_cells(lowest, range(1, lowest.shape[1] + 1))
    return Table([*head, "fallbacks"] if failed else head, rows, best)
