"""Tables of studies in spaces of tutorials: regret by number of trials, and first trials.

    PYTHONPATH=.:benchmarks:lab python lab/users_spaces_tables.py runs.jsonl [LEARNER ...]

The file is that of `python -m dre_bench.learner_priors.studies run`. A table has the studies that
all of its samplers have. Beside a mean are the standard error of the difference to "auto", the
studies in which "auto" is better and worse, and p by Wilcoxon's test over studies.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import wilcoxon

from dre_bench.learner_evaluations.records import read
from dre_bench.learner_evaluations.tables import read_tables
from dre_bench.learner_priors.studies import curves
from dre_bench.learner_priors.user_spaces import SPACES

EVALUATIONS = Path("benchmarks/data/learner_evaluations/evaluations.npz")
SHORT, LONG, FEW = (1, 2, 3, 5, 7, 10), (1, 2, 5, 10, 15, 20, 25), (1, 5, 10)
SAMPLERS = ("auto", "universal", "tpe", "gp")
# Regrets closer than this are equal.
SAME = 1e-9

Key = tuple[Any, ...]
Curves = dict[Key, tuple[np.ndarray, float]]


def compared(ours: np.ndarray, theirs: np.ndarray) -> str:
    """Return the mean of `theirs`, the error of the difference, pairs and p."""
    difference = theirs - ours
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    different = difference[abs(difference) > SAME]
    p = float(wilcoxon(different).pvalue) if len(different) else 1.0
    pairs = f"{(different > 0).sum()}/{(different < 0).sum()}"
    return f"{short(theirs.mean())} ± {short(error)} ({pairs}, {probability(p)})"


def short(value: float) -> str:
    """Return a number with three digits and no leading zero."""
    return f"{value:.3f}".removeprefix("0")


def probability(p: float) -> str:
    """Return p with one or two digits that count."""
    if p < 0.0001:
        return "< .0001"
    digits = next(n for n in (2, 3, 4) if p >= 10.0**-n)
    return f"{p:.{digits}f}".removeprefix("0")


def table(
    found: Curves, keys: Sequence[Key], samplers: Sequence[str], looks: Sequence[int]
) -> None:
    """Print a table of the studies `keys`, the first of the samplers beside the others."""
    values = {s: np.array([found[(*key, s)][0][: looks[-1]] for key in keys]) for s in samplers}
    ours = values[samplers[0]]
    rows = [[f"{len(keys)} studies, regret after", *map(str, looks)]]
    rows.append([samplers[0], *(short(ours[:, look - 1].mean()) for look in looks)])
    for other in samplers[1:]:
        theirs = values[other]
        cells = (compared(ours[:, look - 1], theirs[:, look - 1]) for look in looks)
        rows.append([other, *cells])
    lines = [f"| {' | '.join(row)} |" for row in rows]
    print("", lines[0], f"|---|{'--:|' * len(looks)}", *lines[1:], "", sep="\n")


def first_trials(found: Curves, keys: Sequence[Key], samplers: Sequence[str]) -> None:
    """Print how often the first trial is better and worse than the library's default."""
    defaults = np.array([found[(*key, samplers[0])][1] for key in keys])
    parts = [f"default {short(defaults.mean())}"]
    for name in samplers:
        gains = defaults - np.array([found[(*key, name)][0][0] for key in keys])
        better, worse = (int((sign * gains > SAME).sum()) for sign in (1, -1))
        parts.append(f"{name} {short((defaults - gains).mean())} ({better}/{worse})")
    print(f"First trials of {len(keys)} studies:", ", ".join(parts))


def main() -> None:
    """Print all tables, of the learners that are named or of all."""
    lines, only = read(Path(sys.argv[1])), sys.argv[2:]
    found = curves(lines, *read_tables(EVALUATIONS))
    found = {k: of for k, of in found.items() if not only or SPACES[k[0]].key in only}
    for samplers in (SAMPLERS[:2], SAMPLERS):
        keys = sorted({k[:4] for k in found if all((*k[:4], s) in found for s in samplers)})
        table(found, keys, samplers, SHORT)
        long = [key for key in keys if len(found[(*key, "auto")][0]) >= LONG[-1]]
        table(found, long, samplers, LONG)
        first_trials(found, keys, samplers)
        for learner in sorted({SPACES[key[0]].key for key in keys}):
            of_learner = [key for key in keys if SPACES[key[0]].key == learner]
            print(f"\n{learner}")
            first_trials(found, of_learner, samplers)
            table(found, of_learner, samplers, FEW)


if __name__ == "__main__":
    main()
