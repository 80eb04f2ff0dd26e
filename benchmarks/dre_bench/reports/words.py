"""Who leads, and whether that is chance, in sentences."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

import numpy as np
import pandas as pd

from dre_bench.reports import statistics
from dre_bench.reports.results import Analysis, Results, by_sampler, by_task, ranks
from dre_bench.reports.statistics import ALPHA, CriticalDifference
from dre_bench.reports.tables import SAME, count, duration


def in_words(analysis: Analysis) -> dict[str, str]:
    """Say who leads where and what is significant, by heading."""
    results, last = analysis.results, analysis.checkpoints[-1]
    at = [*analysis.checkpoints]
    regret, step = by_sampler(results.regret), results.protocol.step
    found = {
        "Compared": (
            f"{count(len(results.samplers), 'sampler')} on {count(len(results.tasks), 'task')} of "
            f"{count(len(results.scenarios), 'scenario')}: {count(len(results.keys), 'run')} of "
            f"{results.regret.columns[-1]} {step} for each sampler, paired by task and seed."
        ),
        "Regret": _leaders(regret[at], "mean regret", step, 3),
        "Rank": _leaders(by_sampler(ranks(results.regret))[at], "average rank", step, 2),
        "Is it chance?": _significance(results, regret[last], last),
    }
    if last in analysis.differences:
        found["Ranks over tasks"] = _difference(analysis.differences[last], f"{last} {step}")
    seconds = results.seconds_per_ask()[0.5].dropna().sort_values(kind="stable")
    if len(seconds):
        listed = _listed(f"{name} {duration(value)}" for name, value in seconds.items())
        found["Time"] = f"Median time of a suggestion: {listed}."
    return found


def _leaders(means: pd.DataFrame, name: str, step: str, digits: int) -> str:
    """Group checkpoints in a row that have the same leaders."""
    leaders = {
        n: (*means.index[np.isclose(means[n], means[n].min(), rtol=0, atol=SAME)],) for n in means
    }
    sentences = []
    for who, group in groupby(means, key=leaders.__getitem__):
        chosen = [*group]
        values = _listed(f"{means.loc[who[0], n]:.{digits}f}" for n in chosen)
        verb = "has" if len(who) == 1 else "share"
        sentence = f"{_listed(who)} {verb} the lowest {name} after {_listed(map(str, chosen))} {step}: {values}"
        others = means.drop(index=[*who])
        if len(others):
            rivals = {n: others[n].idxmin() for n in chosen}
            parts = (
                f"{rival} with {_listed(f'{others.loc[rival, n]:.{digits}f}' for n in places)}"
                for rival, places in groupby(chosen, key=rivals.__getitem__)
            )
            sentence += f" (next: {', then '.join(parts)})"
        sentences.append(sentence + ".")
    return " ".join(sentences)


def _significance(results: Results, regret: pd.Series, last: int) -> str:
    n_others, n_tasks = len(results.samplers) - 1, len(results.tasks)
    if not n_others:
        return "One sampler alone: nothing to compare."
    least = statistics.smallest_p(n_tasks, n_others)
    if least > ALPHA:
        return (
            f"With {count(n_tasks, 'task')} and {count(n_others, 'rival')} no difference can be "
            f"significant: the smallest possible p is {least:.2g}."
        )
    leader = regret.idxmin()
    tests = statistics.compare_all(by_task(results.regret[last]), leader).drop(index=leader)
    # The test is of the other against the leader: what the other loses, the leader wins.
    wins, real = tests["losses"] > tests["wins"], tests["p"] <= ALPHA
    verdicts = {
        "is significant over": tests[real & wins],
        "is that of a few tasks: over most it is significantly behind": tests[real & ~wins],
        "is not significant over": tests[~real],
    }
    parts = (
        f"{verdict} {_listed(f'{row.Index} (p {_p(row.p)})' for row in found.itertuples())}"
        for verdict, found in verdicts.items()
        if len(found)
    )
    return (
        f"After {last} {results.protocol.step} the lead of {leader} in regret "
        f"{', and '.join(parts)}: paired Wilcoxon tests over tasks, adjusted by Holm."
    )


def _difference(found: CriticalDifference, after: str) -> str:
    leader = found.ranks.idxmin()
    behind = found.ranks.index[found.ranks - found.ranks[leader] > found.difference]
    differ = "differ" if found.friedman_p <= ALPHA else "do not differ significantly"
    return (
        f"After {after} the samplers {differ} by Friedman's test (p {_p(found.friedman_p)}). "
        f"Average ranks more than {found.difference:.2f} apart differ by Nemenyi's. The best, "
        f"{leader} ({found.ranks[leader]:.2f}), is ahead of "
        + (f"{_listed(behind)} by that." if len(behind) else "none.")
    )


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"= {p:.2g}"


def _listed(parts: Iterable[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
