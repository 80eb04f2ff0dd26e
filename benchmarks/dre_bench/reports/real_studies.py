"""Figures of real studies: constraints, crashes, several objectives, halving, workers.

Means over the runs of a problem. Only what every sampler finished is compared. What the columns
mean is in `DEFINITIONS`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import pandas as pd

from dre_bench.problems.real_studies import RUNGS
from dre_bench.reports import statistics
from dre_bench.reports.results import Key, by_sampler, by_task, comparable, paired_runs, ranks
from dre_bench.reports.statistics import Floats
from dre_bench.reports.tables import Table, paired_tests, pointed_out, reached, size, texts
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
        figures: A row for each (sampler, scenario, task, seed); regrets may exceed 1 or be
            infinite.
        fallbacks: How often the surrogate of each sampler failed.
    """

    problem: str
    figures: pd.DataFrame
    fallbacks: Mapping[str, int]

    @property
    def samplers(self) -> list[str]:
        """Names, in their order."""
        return [*self.figures.index.unique("sampler")]

    @property
    def keys(self) -> list[Key]:
        """(scenario, task, seed) of all runs of a sampler, sorted."""
        return [*self.figures.loc[self.samplers[0]].index]

    @property
    def ranked(self) -> list[str]:
        """The columns by which samplers are compared."""
        return [column for column in self.figures if "@" in column]

    def means(self) -> pd.DataFrame:
        """Means over the runs, ``[samplers, columns]``; a regret counts as 1 at most."""
        return by_sampler(self.figures.assign(**{c: self._of_runs(c) for c in self.figures}))

    def ranks(self, column: str) -> pd.Series:
        """Mean places of the samplers by one column."""
        return by_sampler(ranks(_sign(column) * self.figures[[column]]))[column]

    def comparisons(self, against: str, column: str) -> pd.DataFrame:
        """Compare every sampler with one, see `statistics.compare_all`."""
        losses = by_task(_sign(column) * self._of_runs(column))
        return statistics.compare_all(losses, against)

    def _of_runs(self, column: str) -> pd.Series:
        figures = self.figures[column]
        return figures.clip(upper=1.0) if column.startswith("regret") else figures


def collect(
    records: Sequence[Record],
    checkpoints: Sequence[int] = (),
    everything: Sequence[Record] | None = None,
) -> list[Paired]:
    """Arrange finished runs by problem.

    Args:
        records: Records of finished runs, see ``results.finished``.
        checkpoints: Numbers of trials that are reported; those of `CHECKPOINTS` by default.
        everything: Finished runs that tell the best value of a task; by default the same.

    Returns:
        One for the runs of a problem that can be compared, see ``results.comparable``.
    """
    best: dict[tuple[str, str, int | str], float] = defaultdict(lambda: -np.inf)
    for record in records if everything is None else everything:
        if "reference" in record:
            task = _scale(record)
            best[task] = max(best[task], record["reference"]["best"], *_counting(record))
    by_problem = defaultdict[str, list[Record]](list)
    for record in records:
        by_problem[record["problem"]].append(record)
    return [
        _paired(group, best, checkpoints or CHECKPOINTS)
        for of_problem in by_problem.values()
        for group in comparable(of_problem)
    ]


def tables(paired: Paired, against: str) -> dict[str, Table]:
    """Return figures, and paired tests against one of the samplers, by title."""
    found = {f"{paired.problem}: {size(paired.keys)}": _overview(paired)}
    if len(paired.samplers) > 1:
        tests = {column: paired.comparisons(against, column) for column in paired.ranked}
        title = f"{paired.problem}: tasks won/tied/lost against {against}"
        found[title] = paired_tests(tests, against)
    return found


def _paired(
    records: Sequence[Record],
    best: Mapping[tuple[str, str, int | str], float],
    checkpoints: Sequence[int],
) -> Paired:
    index, chosen = paired_runs(records)
    steps = reached(checkpoints, min(len(record["values"]) for record in chosen))
    rows = [_figures(record, best[_scale(record)], steps) for record in chosen]
    figures = pd.DataFrame(rows, index).dropna(axis=1)  # only what all runs have
    fallbacks = dict.fromkeys(index.unique("sampler"), 0)
    for record in chosen:
        fallbacks[record["sampler"]] += record["stats"].get("fallbacks", 0)
    return Paired(records[0]["problem"], figures, fallbacks)


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
    """Return the row of a run."""
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
    means, ranked = paired.means(), paired.ranked
    places = {f"rank@{column.partition('@')[2]}": paired.ranks(column) for column in ranked}
    columns = {column: texts(means[column], "{:.3f}") for column in ranked}
    columns |= {head: texts(column, "{:.2f}") for head, column in places.items()}
    columns |= {c: texts(means[c], "{:.3g}") for c in means if c not in ranked}
    if any(paired.fallbacks.values()):
        columns["fallbacks"] = [*map(str, paired.fallbacks.values())]
    low = {column: _sign(column) * means[column] for column in ranked}
    return pointed_out(Table.of(columns, paired.samplers), low | places)
