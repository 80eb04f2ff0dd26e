"""Tables of ``benchmarks.studies``: ``python -m dre_plugins.benchmarks.studies_report FILE…``.

Figures are means over the runs of a problem; ``rank`` is the mean place among the samplers of the
same (scenario, task, seed), 1 = best, ties share their mean place. Only what every sampler of a
problem finished is compared.

    regret        (best - x) / (best - median) of the best accuracy x so far that counts; at most
                  1, which is also what a study has until anything counts. ``best`` is the
                  highest that is known for the task and the problem: of all runs given and of
                  2000 random configurations; ``median`` is that sample's. With constraints and
                  crashes only feasible or surviving trials and configurations count; under
                  ``asha`` only evaluations with all of the training data. Both problems ``asha``
                  share what is known, and so do both ``async``.
    @25           after 25 trials have ended.
    @10%          when 10 % of a budget is spent: of the training time of 50 full random trials
                  for ``asha``, of the time in which the workers run as many random trials for
                  ``async``. Training times are uneven: some studies end before 100 %, others long
                  after it.
    feasible      share of trials that meet all constraints.
    crashed >30   share of trials after the 30th that crashed; a random one does with 30 %.
    hypervolume   see ``benchmarks.study_problems``; 1 is the front of 2000 random configurations.
    full          evaluations with all of the training data that end within the budget.
    s / trial     seconds of the whole study, by its trials.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dre_plugins.benchmarks.quality import Record, read_records
from dre_plugins.benchmarks.studies import PROBLEMS, study_run_of
from dre_plugins.benchmarks.study_problems import RUNGS

Floats: TypeAlias = NDArray[np.float64]
Figures: TypeAlias = dict[str, float]

CHECKPOINTS = (10, 25, 50, 100)
SHARES = (0.05, 0.1, 0.2, 0.5, 1.0)
CRASH_TRIALS = 30


@dataclass(frozen=True)
class Table:
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
    keys: tuple[tuple[str, int, int], ...]
    columns: tuple[str, ...]
    figures: Floats
    fallbacks: tuple[int, ...]

    def means(self) -> Floats:
        """Means over the runs, ``[samplers, columns]``."""
        is_regret = [column.startswith("regret") for column in self.columns]
        figures = np.where(is_regret, np.minimum(self.figures, 1.0), self.figures)
        return np.asarray(figures.mean(1))

    def ranks(self, column: str) -> Floats:
        """Mean places of the samplers by one column, ``[samplers]``."""
        figures = self.figures[:, :, self.columns.index(column)]
        sign = -1.0 if column.startswith("hypervolume") else 1.0
        return np.asarray(stats.rankdata(sign * figures, axis=0).mean(1))


def collect(records: Sequence[Record]) -> list[Table]:
    """Arrange finished runs by problem.

    Args:
        records: Lines of one or several runs files; failed runs are left out, and of a run that
            was finished twice the later one counts.
    """
    finished = {study_run_of(record): record for record in records if "error" not in record}
    best: dict[tuple[str, str, int], float] = defaultdict(lambda: -np.inf)
    for run, record in finished.items():
        if "reference" in record:
            key = _scale(run.problem), run.scenario, run.task
            best[key] = max(best[key], record["reference"]["best"], *_counting(record))

    cells: dict[str, dict[tuple[str, tuple[str, int, int]], Record]] = defaultdict(dict)
    for run, record in finished.items():
        cells[run.problem][run.sampler, (run.scenario, run.task, run.seed)] = record
    tables = []
    for problem in PROBLEMS:
        samplers = tuple(dict.fromkeys(sampler for sampler, _ in cells[problem]))
        keys = tuple(
            key
            for key in sorted({key for _, key in cells[problem]})
            if all((sampler, key) in cells[problem] for sampler in samplers)
        )
        if not keys:
            continue
        grid = [[cells[problem][sampler, key] for key in keys] for sampler in samplers]
        figures = [
            [
                _figures(record, best[_scale(problem), key[0], key[1]])
                for record, key in zip(row, keys, strict=True)
            ]
            for row in grid
        ]
        shared = set.intersection(*({*cell} for row in figures for cell in row))
        columns = tuple(column for column in figures[0][0] if column in shared)
        tables.append(
            Table(
                problem,
                samplers,
                keys,
                columns,
                np.array([[[cell[c] for c in columns] for cell in row] for row in figures]),
                tuple(sum(record["stats"].get("fallbacks", 0) for record in row) for row in grid),
            )
        )
    return tables


def markdown(tables: Sequence[Table]) -> str:
    """The report as Markdown tables."""
    parts = [_section(table) for table in tables]
    by_problem = {table.problem: table for table in tables}
    if {"async-1", "async-8"} <= {*by_problem}:
        parts.append(_loss(by_problem["async-8"], by_problem["async-1"]))
    return "\n\n".join(parts)


def main(arguments: Sequence[str] | None = None) -> None:
    """Report on runs files from the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m dre_plugins.benchmarks.studies_report",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", type=Path, nargs="+", help="JSONL files of benchmark runs")
    parser.add_argument("--samplers", nargs="+", help="only these specifications")
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=[*PROBLEMS])
    parser.add_argument("--scenario", help="only this one")
    options = parser.parse_args(arguments)
    records = [
        record
        for path in options.runs
        for record in read_records(path)
        if record["problem"] in options.problems
        and record["sampler"] in (options.samplers or [record["sampler"]])
        and record["scenario"] == (options.scenario or record["scenario"])
    ]
    tables = collect(records)
    print(markdown(tables))
    _print_left_out(records, tables)


def _scale(problem: str) -> str:
    """Problems that share the best known value of a task."""
    kind = problem.partition("-")[0]
    return kind if kind in ("asha", "async") else problem


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


def _figures(record: Record, best: float) -> Figures:
    """The row of a table that a run is worth."""
    figures = _KINDS[record["problem"].partition("-")[0]](record, best)
    return {**figures, "s / trial": record["seconds"] / len(record["values"])}


def _constrained(record: Record, best: float) -> Figures:
    values = _counting(record)
    return {**_by_trial(record, values, best), "feasible": float(np.isfinite(values).mean())}


def _crash(record: Record, best: float) -> Figures:
    values = _counting(record)
    late = ~np.isfinite(values[CRASH_TRIALS:])
    figures = _by_trial(record, values, best)
    return {**figures, f"crashed >{CRASH_TRIALS}": float(late.mean())} if len(late) else figures


def _pareto(record: Record, best: float) -> Figures:
    return {
        f"hypervolume@{n}": record["hypervolume"][n - 1]
        for n in CHECKPOINTS
        if n <= len(record["values"])
    }


def _asha(record: Record, best: float) -> Figures:
    values = _counting(record)
    costs = np.array([cost for _, cost, _ in record["evaluations"]])
    return {
        **_by_share(record, values, costs, best),
        "trials": len(record["values"]),
        "full": int(np.isfinite(values[costs <= 1.0]).sum()),
    }


def _async(record: Record, best: float) -> Figures:
    values = _counting(record)
    finished = np.array(record["finished"])
    return {
        **_by_trial(record, values, best),
        **_by_share(record, values, finished, best),
        "time": record["finished"][-1],
    }


_KINDS: dict[str, Callable[[Record, float], Figures]] = {
    "constrained": _constrained,
    "crash": _crash,
    "pareto": _pareto,
    "asha": _asha,
    "async": _async,
}


def _by_trial(record: Record, values: Floats, best: float) -> Figures:
    return {
        f"regret@{n}": _regret(record, values[:n], best) for n in CHECKPOINTS if n <= len(values)
    }


def _by_share(record: Record, values: Floats, spent: Floats, best: float) -> Figures:
    return {
        f"regret@{share:.0%}": _regret(record, values[spent <= share], best) for share in SHARES
    }


def _regret(record: Record, values: Floats, best: float) -> float:
    scale = best - record["reference"]["median"]
    reached = values.max(initial=-np.inf)
    # A task where half of the random sample is optimal has nothing to find.
    return float((best - reached) / scale) if scale > 0 else 0.0


def _section(table: Table) -> str:
    ranked = [column for column in table.columns if "@" in column]
    others = [column for column in table.columns if "@" not in column]
    means = dict(zip(table.columns, table.means().T, strict=True))
    head = ["sampler", *ranked, *(f"rank@{c.partition('@')[2]}" for c in ranked), *others]
    rows = [
        [
            name,
            *(f"{means[column][i]:.3f}" for column in ranked),
            *(f"{table.ranks(column)[i]:.2f}" for column in ranked),
            *(f"{means[column][i]:.3g}" for column in others),
        ]
        for i, name in enumerate(table.samplers)
    ]
    failed = [
        f"{name}: the surrogate failed {count} times."
        for name, count in zip(table.samplers, table.fallbacks, strict=True)
        if count
    ]
    title = (
        f"{table.problem}: {len({key[:2] for key in table.keys})} tasks, {len(table.keys)} runs"
    )
    return "\n\n".join([_table(f"{title} a sampler", head, rows), *failed])


def _loss(many: Table, one: Table) -> str:
    """What it costs, at equal evaluations, that suggestions do not wait for results."""
    samplers = [name for name in many.samplers if name in one.samplers]
    columns = [
        column
        for column in many.columns
        if column in one.columns and column.startswith("regret@") and not column.endswith("%")
    ]

    def mean(table: Table, name: str, column: str) -> float:
        return float(table.means()[table.samplers.index(name), table.columns.index(column)])

    rows = [
        [name, *(f"{mean(many, name, c) - mean(one, name, c):+.3f}" for c in columns)]
        for name in samplers
    ]
    return _table("Loss from asynchrony: 8 workers against 1", ["sampler", *columns], rows)


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return f"### {title}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _print_left_out(records: Sequence[Record], tables: Sequence[Table]) -> None:
    finished = Counter(
        run.problem for run in {study_run_of(r) for r in records if "error" not in r}
    )
    n_failed = len({study_run_of(record) for record in records}) - finished.total()
    n_compared = sum(len(table.samplers) * len(table.keys) for table in tables)
    if n_failed or finished.total() > n_compared:
        n_unpaired = finished.total() - n_compared
        print(f"\nLeft out: {n_failed} failed runs, {n_unpaired} runs without their pair.")


if __name__ == "__main__":
    main()
