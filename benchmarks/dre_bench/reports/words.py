"""Who leads, and whether that is chance, in sentences."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dre_bench.reports import statistics
from dre_bench.reports.results import Analysis, by_sampler, by_task
from dre_bench.reports.statistics import ALPHA
from dre_bench.reports.tables import SAME, count


def in_words(analysis: Analysis) -> dict[str, str]:
    """Say who leads at the last checkpoint and what is significant, by heading."""
    results, last = analysis.results, analysis.checkpoints[-1]
    after = f"fter {last} {results.protocol.step}"
    means = by_sampler(results.regret[[last]])[last]
    lowest = np.isclose(means, means.min(), rtol=0, atol=SAME)
    leaders = means.index[lowest]
    found = {
        "Compared": (
            f"{count(len(results.samplers), 'sampler')} on {count(len(results.tasks), 'task')} of "
            f"{count(len(results.scenarios), 'scenario')}: {count(len(results.keys), 'run')} of "
            f"{results.regret.columns[-1]} {results.protocol.step} for each sampler, paired by "
            "task and seed."
        ),
        "Regret": (
            f"A{after} {_listed(leaders)} {'has' if len(leaders) == 1 else 'share'} the lowest "
            f"mean regret, {means.min():.3f}."
        ),
        "Is it chance?": f"A{after} {_significance(analysis, str(leaders[0]))}",
    }
    if not lowest.all():
        found["Regret"] += f" Next is {means[~lowest].idxmin()} with {means[~lowest].min():.3f}."
    return found


def _significance(analysis: Analysis, leader: str) -> str:
    results = analysis.results
    n_others, n_tasks = len(results.samplers) - 1, len(results.tasks)
    least = min(1.0, n_others * 2.0 ** (1 - n_tasks))
    if least > ALPHA or not n_others:
        return (
            f"no difference can be significant with {count(n_tasks, 'task')} and "
            f"{count(n_others, 'rival')}: the smallest possible p is {least:.2g}."
        )
    regret = by_task(results.regret[analysis.checkpoints[-1]])
    tests = statistics.compare_all(regret, leader).drop(index=leader)
    # The test is of the other against the leader: what the other loses, the leader wins.
    wins, is_real = tests["losses"] > tests["wins"], tests["p"] <= ALPHA
    verdicts = {
        "is significant over": tests[is_real & wins],
        "is that of a few tasks: over most it is significantly behind": tests[is_real & ~wins],
        "is not significant over": tests[~is_real],
    }
    parts = (
        f"{verdict} {_listed(f'{name} (p {_p(p)})' for name, p in found['p'].items())}"
        for verdict, found in verdicts.items()
        if len(found)
    )
    return (
        f"the lead of {leader} in regret {', and '.join(parts)}: paired Wilcoxon tests over "
        "tasks, adjusted by Holm."
    )


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"= {p:.2g}"


def _listed(parts: Iterable[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
