"""What paired runs say, in numbers, tables and words: shared by all forms of the report."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

from dre_bench.reports import statistics
from dre_bench.reports.results import Results
from dre_bench.reports.statistics import (
    ALPHA,
    Comparison,
    CriticalDifference,
    Floats,
)

SEED = 0
"""Of the bootstrap, so that a report can be repeated."""
UNKNOWN = "–"
SAME = 1e-9
"""Means up to so far apart share the first place."""
ALL_TIES = "—"


@dataclass(frozen=True)
class Table:
    """Cells as text.

    Attributes:
        head: Names of the columns.
        rows: Cells; the first of a row is its name.
        best: (row, column) of cells to point out.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    best: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True)
class Analysis:
    """Curves and what is computed from them, once and where it is needed.

    Attributes:
        results: The paired runs.
        against: The sampler that others are compared with.
        checkpoints: Numbers of trials that are reported.
    """

    results: Results
    against: str
    checkpoints: tuple[int, ...]

    @cached_property
    def rank_bands(self) -> tuple[Floats, Floats]:
        """Ends of the confidence bands of the mean ranks, each ``[samplers, trials]``."""
        ranks, tasks = self.results.ranks(), self.results.task_of_run
        return statistics.bootstrap_bands(ranks, tasks, np.random.default_rng(SEED))

    @cached_property
    def differences(self) -> dict[int, CriticalDifference]:
        """By checkpoint; none with fewer than three samplers or two tasks."""
        by_task = self.results.by_task()
        if by_task.shape[0] < 3 or by_task.shape[1] < 2:
            return {}
        at = zip(self.checkpoints, self.results.index_of(self.checkpoints), strict=True)
        return {n: statistics.critical_difference(by_task[:, :, i]) for n, i in at}


@dataclass(frozen=True)
class Part:
    """What is reported of runs of one problem that can be compared.

    Attributes:
        name: Name of the problem, numbered where it has several parts.
        about: Which runs these are, where it has several.
        tables: What the text says, by title.
        curves: What figures are drawn of; None for real studies.
        purpose: What the problem is about, in a sentence.
    """

    name: str
    about: str
    tables: Mapping[str, Table]
    curves: Analysis | None = None
    purpose: str = ""

    @property
    def title(self) -> str:
        """Its heading."""
        return f"{self.name}: {self.about}" if self.about else self.name

    @property
    def heading(self) -> str:
        """Its heading for those who do not know the names of problems."""
        purpose = self.purpose.rstrip(".")
        return f"{purpose} ({self.title})" if purpose else self.title


def prefixes(parts: Sequence[Part]) -> dict[str, str]:
    """Return what names of files and of elements of the page begin with, by the part's name."""
    if len(parts) == 1:
        return {parts[0].name: ""}
    return {one.name: re.sub(r"[^A-Za-z0-9._]+", "-", one.name).strip("-") + "-" for one in parts}


def comparisons(results: Results, against: str, checkpoint: int) -> list[Comparison]:
    """Compare every sampler with one, over tasks; p is adjusted for the number of samplers.

    Returns:
        One for each sampler; that of `against` itself is all ties.
    """
    (index,) = results.index_of([checkpoint])
    by_task = results.by_task()[:, :, index]
    return statistics.compare_all(by_task, results.samplers.index(against))


def reached(checkpoints: Sequence[int], last: int) -> tuple[int, ...]:
    """Return the checkpoints that runs of this length reach; their end if it is none."""
    return tuple(sorted({n for n in checkpoints if n <= last})) or (last,)


def markdown(title: str, table: Table) -> str:
    """Return a table as Markdown."""
    lines = [table.head, ["---"] * len(table.head), *table.rows]
    return f"### {title}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def size(n_tasks: int, n_runs: int) -> str:
    """Say how much each sampler is compared on."""
    return f"{_count(n_tasks, 'task')}, {_count(n_runs, 'run')} a sampler"


def overview(results: Results, against: str | None, checkpoints: Sequence[int]) -> Table:
    """The main table: one row for each sampler.

    Args:
        results: The paired runs.
        against: The sampler that all are compared with; without one there are no tests.
        checkpoints: Numbers of trials that are reported.
    """
    at = results.index_of(checkpoints)
    regret, ranks = results.regret.mean(1), results.ranks().mean(1)[:, at]
    area, stuck = statistics.area_under_curve(regret), results.stagnating()
    seconds = results.seconds_per_ask()[:, 1]
    against_it = [comparisons(results, against, n) for n in checkpoints if against]
    head = [
        "sampler",
        *(f"regret@{n}" for n in checkpoints),
        *(f"rank@{n}" for n in checkpoints),
        *(f"vs {against}@{n}" for n in checkpoints if against),
        "area",
        "stagnating",
        "ask",
    ]
    rows = [
        [
            name,
            *(f"{value:.4f}" for value in regret[i, at]),
            *(f"{value:.2f}" for value in ranks[i]),
            *(compared(column[i]) for column in against_it),
            f"{area[i]:.4f}",
            f"{stuck[i]:.0%}",
            in_seconds(seconds[i]),
        ]
        for i, name in enumerate(results.samplers)
    ]
    columns = [*range(1, 2 * len(at) + 1), head.index("area")]
    best = best_cells(np.column_stack([regret[:, at], ranks, area]), columns)
    return Table(head, rows, best)


def best_cells(values: Floats, columns: Sequence[int]) -> frozenset[tuple[int, int]]:
    """Return (row, column) of the lowest value of each column.

    Args:
        values: ``[rows, columns]``.
        columns: The number in the table of each column.
    """
    lowest = np.isclose(values, values.min(0), rtol=0, atol=SAME)
    return frozenset((int(i), columns[j]) for i, j in np.argwhere(lowest))


def paired_tests(
    samplers: Sequence[str],
    against: str,
    columns: Sequence[str],
    tests: Sequence[Sequence[Comparison]],
) -> Table:
    """A row for each sampler but one; what is significant is pointed out.

    Args:
        samplers: Their names.
        against: The one that others are compared with.
        columns: Names of what they are compared by.
        tests: Comparisons of all samplers, for each column.
    """
    others = [i for i, name in enumerate(samplers) if name != against]
    rows = [[samplers[i], *(compared(column[i]) for column in tests)] for i in others]
    significant = frozenset(
        (row, j)
        for row, i in enumerate(others)
        for j, column in enumerate(tests, 1)
        if column[i].p <= ALPHA
    )
    return Table(["sampler", *columns], rows, significant)


def compared(one: Comparison) -> str:
    """Wins, ties and losses over tasks, and the p-value of the paired test."""
    if not one.wins + one.losses:
        return ALL_TIES
    return f"{one.wins}/{one.ties}/{one.losses} p={one.p:.2g}"


def in_seconds(seconds: float) -> str:
    """Seconds of a suggestion; unknown ones as a dash."""
    return UNKNOWN if np.isnan(seconds) else f"{seconds:.3f} s"


def duration(seconds: float) -> str:
    """Seconds in two digits, or milliseconds."""
    if np.isnan(seconds):
        return UNKNOWN
    return f"{1000 * seconds:.2g} ms" if seconds < 0.0995 else f"{seconds:.2g} s"


def in_words(analysis: Analysis) -> list[tuple[str, str]]:
    """Say who leads where and what is significant.

    Returns:
        Headings and what belongs under them.
    """
    results, checkpoints = analysis.results, analysis.checkpoints
    at, last = results.index_of(checkpoints), checkpoints[-1]
    regret, ranks = results.regret.mean(1), results.ranks().mean(1)
    said = [
        ("Compared", _compared(results)),
        ("Regret", _leaders(results, checkpoints, regret[:, at], "mean regret", 3)),
        ("Rank", _leaders(results, checkpoints, ranks[:, at], "average rank", 2)),
        ("Whole curve", _area(results, regret)),
        ("Is it chance?", _significance(results, last, regret[:, at[-1]])),
    ]
    if last in analysis.differences:
        said.append(("Ranks over tasks", _difference(results, last, analysis.differences[last])))
    if len(results.scenarios) > 1:
        said.append(("By scenario", _by_scenario(results, last)))
    said.append(("Stuck", _stuck(results)))
    seconds = results.seconds_per_ask()[:, 1]
    if not np.isnan(seconds).all():
        said.append(("Time", _time(results, seconds)))
    return said


def _compared(results: Results) -> str:
    n_keys, last = len(results.keys), int(results.steps[-1])
    return (
        f"{_count(len(results.samplers), 'sampler')} on {_count(len(results.tasks), 'task')} of "
        f"{_count(len(results.scenarios), 'scenario')}: {_count(n_keys, 'run')} of "
        f"{last} {results.protocol.step} for each sampler, paired by task and seed."
    )


def _leaders(
    results: Results, checkpoints: Sequence[int], means: Floats, name: str, digits: int
) -> str:
    """Group checkpoints in a row that have the same leaders."""
    lowest = np.isclose(means, means.min(0), rtol=0, atol=SAME)
    leaders = [tuple(np.flatnonzero(column)) for column in lowest.T]
    sentences = []
    for who, group in groupby(range(len(checkpoints)), key=lambda j: leaders[j]):
        chosen = [*group]
        values = _listed(f"{means[who[0], j]:.{digits}f}" for j in chosen)
        verb = "has" if len(who) == 1 else "share"
        sentence = (
            f"{_listed(results.samplers[i] for i in who)} {verb} the lowest {name} after "
            f"{_listed(str(checkpoints[j]) for j in chosen)} {results.protocol.step}: {values}"
        )
        others = [i for i in range(len(means)) if i not in who]
        if others:
            second = [(min(others, key=lambda i: float(means[i, j])), j) for j in chosen]
            parts = []
            for i, places in groupby(second, key=lambda pair: pair[0]):
                reached = _listed(f"{means[i, j]:.{digits}f}" for _, j in places)
                parts.append(f"{results.samplers[i]} with {reached}")
            sentence += f" (next: {', then '.join(parts)})"
        sentences.append(sentence + ".")
    return " ".join(sentences)


def _area(results: Results, regret: Floats) -> str:
    area = statistics.area_under_curve(regret)
    order = np.argsort(area, kind="stable")
    listed = _listed(f"{results.samplers[i]} {area[i]:.3f}" for i in order)
    return f"Mean regret over all {results.protocol.step}, best first: {listed}."


def _significance(results: Results, last: int, regret: Floats) -> str:
    n_others = len(results.samplers) - 1
    if not n_others:
        return "One sampler alone: nothing to compare."
    least = statistics.smallest_p(len(results.tasks), n_others)
    if least > ALPHA:
        return (
            f"With {_count(len(results.tasks), 'task')} and {_count(n_others, 'rival')} no "
            f"difference can be significant: the smallest possible p is {least:.2g}."
        )
    leader = int(np.argmin(regret))
    tests = comparisons(results, results.samplers[leader], last)
    others = [i for i in range(len(tests)) if i != leader]
    groups = defaultdict[str, list[int]](list)
    for i in others:
        # The test is of the other against the leader: what the other loses, the leader wins.
        if tests[i].p > ALPHA:
            verdict = "is not significant over"
        elif tests[i].losses > tests[i].wins:
            verdict = "is significant over"
        else:
            verdict = "is that of a few tasks: over most it is significantly behind"
        groups[verdict].append(i)
    parts = []
    for verdict, group in sorted(groups.items(), reverse=True):
        p = [_p(tests[i].p) for i in group]
        names = [results.samplers[i] for i in group]
        if len(group) > 1 and len(set(p)) == 1:
            parts.append(f"{verdict} {_listed(names)} (p {p[0]} each)")
        else:
            each = _listed(f"{name} (p {one})" for name, one in zip(names, p, strict=True))
            parts.append(f"{verdict} {each}")
    return (
        f"After {last} {results.protocol.step} the lead of {results.samplers[leader]} in regret "
        f"{', and '.join(parts)}: paired Wilcoxon tests over tasks, adjusted by Holm."
    )


def _difference(results: Results, last: int, found: CriticalDifference) -> str:
    leader = int(np.argmin(found.ranks))
    behind = [
        name
        for name, rank in zip(results.samplers, found.ranks, strict=True)
        if rank - found.ranks[leader] > found.difference
    ]
    differ = "differ" if found.friedman_p <= ALPHA else "do not differ significantly"
    text = (
        f"After {last} {results.protocol.step} the samplers {differ} by Friedman's test "
        f"(p {_p(found.friedman_p)}). Average ranks more than {found.difference:.2f} apart differ "
        f"by Nemenyi's. The best, {results.samplers[leader]} ({found.ranks[leader]:.2f}), "
    )
    return text + (f"is ahead of {_listed(behind)} by that." if behind else "is ahead of none.")


def _by_scenario(results: Results, last: int) -> str:
    leaders = {}
    for scenario in results.scenarios:
        part = results.of_scenario(scenario)
        (index,) = part.index_of([last])
        mean = part.regret[:, :, index].mean(1)
        lowest = np.isclose(mean, mean.min(), rtol=0, atol=SAME)
        leaders[scenario] = tuple(np.array(results.samplers)[lowest])
    after = f"Lowest mean regret after {last} {results.protocol.step}"
    if len(leaders) <= 4:
        listed = "; ".join(f"{scenario}: {_listed(who)}" for scenario, who in leaders.items())
        return f"{after} on {listed}."
    counts = Counter(name for who in leaders.values() for name in who)
    listed = _listed(f"{name} on {n}" for name, n in counts.most_common())
    return f"{after}, of {len(leaders)} scenarios: {listed} (ties count for each)."


def _stuck(results: Results) -> str:
    shares = results.stagnating()
    order = np.argsort(shares, kind="stable")
    listed = _listed(f"{results.samplers[i]} {shares[i]:.0%}" for i in order)
    listed = listed if shares.any() else "none"
    return (
        f"Runs that end above a regret of {statistics.STAGNATION_REGRET:g} and gained nothing in "
        f"their last {statistics.STAGNATION_TRIALS} {results.protocol.step}: {listed}."
    )


def _time(results: Results, seconds: Floats) -> str:
    order = [i for i in np.argsort(seconds, kind="stable") if not np.isnan(seconds[i])]
    listed = _listed(f"{results.samplers[i]} {duration(seconds[i])}" for i in order)
    return f"Median time of a suggestion: {listed}."


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"= {p:.2g}"


def _count(n: int, name: str) -> str:
    return f"{n} {name}{'' if n == 1 else 's'}"


def _listed(parts: Iterable[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
