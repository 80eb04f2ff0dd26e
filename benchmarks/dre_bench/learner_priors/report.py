"""Compare the first trials that priors propose with the library's default and with chance.

    python -m dre_bench.learner_priors.report --evaluations FILE --trials first_trials.jsonl \
        --out benchmarks/data/learner_priors.json

`regrets` says what a regret is. The best of a data set may be one of the proposals.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import comb
from pathlib import Path
from typing import Any

import numpy as np

from dre_bench.learner_evaluations.plan import DEFAULT, SOBOL
from dre_bench.learner_evaluations.tables import read_tables
from dre_bench.learner_priors.regrets import SAME, is_of_kind, losses_of, regrets, scale_of
from dre_bench.learner_priors.tasks import Tables


@dataclass(frozen=True)
class Comparison:
    """Compare first trials on data sets that were held out, means over metrics and data sets.

    Attributes:
        n_datasets: Data sets.
        prior: Mean regret of the portfolio's first member.
        best: Mean regret of the best of its members.
        default: Mean regret of the library's default.
        rival: Mean regret of the best of the default and space-filling points, as many together.
        chance: Mean regret of a space-filling point.
        error: Standard error of the difference between best and rival, over data sets.
        wins: Share of data sets and metrics where the proposal is better than the default; a tie
            is half a win.
    """

    n_datasets: int
    prior: float
    best: float
    default: float
    rival: float
    chance: float
    error: float
    wins: float

    @property
    def is_worth_shipping(self) -> bool:
        """Whether the portfolio beats default and chance by more than the error."""
        return self.best + self.error < self.rival


def compared(
    lines: Iterable[Mapping[str, Any]], datasets: list[str], tables: Tables
) -> Comparison:
    """Compare the evaluated proposals of one prior, see `Comparison`."""
    of_datasets: dict[str, list[Mapping[str, Any]]] = {}
    for line in sorted(lines, key=lambda line: int(line["place"])):
        of_datasets.setdefault(line["dataset"], []).append(line)
    found = [
        np.mean(rows, axis=0)
        for members in of_datasets.values()
        if (rows := [*_rows(members, datasets, tables)])
    ]
    prior, least, default, rival, chance, wins = np.array(found).T
    error = float(np.std(rival - least, ddof=1) / np.sqrt(len(found)))
    return Comparison(
        n_datasets=len(found),
        prior=float(prior.mean()),
        best=float(least.mean()),
        default=float(default.mean()),
        rival=float(rival.mean()),
        chance=float(chance.mean()),
        error=error,
        wins=float(wins.mean()),
    )


def _rows(
    members: Sequence[Mapping[str, Any]], datasets: list[str], tables: Tables
) -> Iterator[tuple[float, ...]]:
    """Yield five regrets and the win by each metric that tells anything."""
    dataset = members[0]["dataset"]
    table = tables[members[0]["learner"], dataset.split("/")[0]]
    rows = np.flatnonzero(table.dataset == datasets.index(dataset))
    is_default, is_sobol = (is_of_kind(table, rows, kind) for kind in (DEFAULT, SOBOL))
    for metric, losses in losses_of(table, rows).items():
        sign = 1.0 if metric in ("log_loss", "rmse") else -1.0
        proposed = np.array([sign * line["metrics"].get(metric, np.nan) for line in members])
        all_losses = np.array([*proposed, *losses])
        if not is_default.any() or not np.isfinite(all_losses).any():
            continue
        best = float(np.nanmin(all_losses))
        scale = scale_of(losses, best, is_sobol)
        if not scale:
            continue
        of_members, of_default, of_sobol = (
            regrets(values, best, scale)
            for values in (proposed, losses[is_default], losses[is_sobol])
        )
        lead = float(np.nan_to_num(losses[is_default][0], nan=np.inf) - proposed[0])
        win = 0.5 if abs(lead) <= SAME else float(lead > 0)
        default, chance = float(of_default.mean()), float(of_sobol.mean())
        rival = least_of(np.minimum(of_sobol, default), len(members) - 1)
        yield float(of_members[0]), float(of_members.min()), default, rival, chance, win


def least_of(regret: np.ndarray, n_drawn: int) -> float:
    """Return the expected least of so many of the regrets `[N]`, drawn without repetition.

    >>> least_of(np.array([1.0, 2.0, 3.0]), 2)
    1.3333333333333333
    """
    n = len(regret)
    chances = [comb(n - 1 - rank, n_drawn - 1) / comb(n, n_drawn) for rank in range(n)]
    return float(np.sort(regret) @ chances)


def main() -> None:
    """Read the command line, print a line for each prior, and write the figures down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--evaluations", type=Path, required=True, help="the exported file")
    parser.add_argument("--trials", type=Path, required=True, help="what `first_trials` wrote")
    parser.add_argument("--out", type=Path, help="the file of the figures (.json)")
    chosen = parser.parse_args()
    datasets, tables = read_tables(chosen.evaluations)
    lines = [json.loads(line) for line in chosen.trials.read_text().splitlines()]
    figures = {}
    print(f"{'prior':24s}   sets   first    best default   rival   error  chance  wins")
    for name in sorted({line["prior"] for line in lines}):
        found = compared([line for line in lines if line["prior"] == name], datasets, tables)
        print(
            f"{name:24s}{found.n_datasets:7d}{found.prior:8.3f}{found.best:8.3f}"
            f"{found.default:8.3f}{found.rival:8.3f}{found.error:8.3f}{found.chance:8.3f}"
            f"{found.wins:6.2f}  "
            f"{'ship' if found.is_worth_shipping else ''}"
        )
        figures[name] = asdict(found)
    if chosen.out is not None:
        chosen.out.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
