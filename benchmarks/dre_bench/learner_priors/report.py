"""Compare the first trial that priors propose with the library's default and with chance.

    python -m dre_bench.learner_priors.report --evaluations FILE --trials first_trials.jsonl \
        --out benchmarks/data/learner_priors.json

`regrets` says what a regret is. The best of a data set may be the proposal itself.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dre_bench.learner_evaluations.plan import DEFAULT, SOBOL
from dre_bench.learner_evaluations.tables import read_tables
from dre_bench.learner_priors.held_out import HELD_OUT
from dre_bench.learner_priors.regrets import SAME, is_of_kind, losses_of, regrets, scale_of
from dre_bench.learner_priors.tasks import Tables


@dataclass(frozen=True)
class Comparison:
    """Compare first trials on data sets that were held out, means over metrics and data sets.

    Attributes:
        n_datasets: Data sets.
        prior: Mean regret of the prior's proposal.
        default: Mean regret of the library's default.
        chance: Mean regret of a space-filling point.
        error: Standard error of the difference between the first two, over data sets.
        wins: Share of data sets and metrics where the proposal is better than the default; a tie
            is half a win.
    """

    n_datasets: int
    prior: float
    default: float
    chance: float
    error: float
    wins: float

    @property
    def is_worth_shipping(self) -> bool:
        """Whether the first trial beats the library's default by more than the error."""
        return self.prior + self.error < self.default


def compared(
    lines: Iterable[Mapping[str, Any]], datasets: list[str], tables: Tables
) -> Comparison:
    """Compare the evaluated proposals of one prior, see `Comparison`."""
    found = [np.mean(rows, axis=0) for line in lines if (rows := [*_rows(line, datasets, tables)])]
    prior, default, chance, wins = np.array(found).T
    error = float(np.std(default - prior, ddof=1) / np.sqrt(len(found)))
    return Comparison(
        n_datasets=len(found),
        prior=float(prior.mean()),
        default=float(default.mean()),
        chance=float(chance.mean()),
        error=error,
        wins=float(wins.mean()),
    )


def _rows(
    line: Mapping[str, Any], datasets: list[str], tables: Tables
) -> Iterator[tuple[float, float, float, float]]:
    """Yield three regrets and the win by each metric that tells anything."""
    table = tables[line["learner"], line["dataset"].split("/")[0]]
    rows = np.flatnonzero(table.dataset == datasets.index(line["dataset"]))
    is_default, is_sobol = (is_of_kind(table, rows, kind) for kind in (DEFAULT, SOBOL))
    for metric, losses in losses_of(table, rows).items():
        sign = 1.0 if metric in ("log_loss", "rmse") else -1.0
        loss = sign * line["metrics"].get(metric, np.nan)
        all_losses = np.array([loss, *losses])
        if not is_default.any() or not np.isfinite(all_losses).any():
            continue
        best = float(np.nanmin(all_losses))
        scale = scale_of(losses, best, is_sobol)
        if not scale:
            continue
        prior, default, chance = (
            float(regrets(values, best, scale).mean())
            for values in (np.array([loss]), losses[is_default], losses[is_sobol])
        )
        lead = float(np.nan_to_num(losses[is_default][0], nan=np.inf) - loss)
        win = 0.5 if abs(lead) <= SAME else float(lead > 0)
        yield prior, default, chance, win


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
    print(f"{'prior':32s}{'sets':>6s}{'regret':>9s}{'default':>9s}{'chance':>9s}{'wins':>7s}")
    for name, which in sorted({(line["prior"], line["which"]) for line in lines}):
        part = [line for line in lines if (line["prior"], line["which"]) == (name, which)]
        found = compared(part, datasets, tables)
        print(
            f"{name + ', ' + which:32s}{found.n_datasets:6d}{found.prior:9.3f}{found.default:9.3f}"
            f"{found.chance:9.3f}{found.wins:7.2f}  {'ship' if found.is_worth_shipping else ''}"
        )
        if which == HELD_OUT:
            figures[name] = asdict(found)
    if chosen.out is not None:
        chosen.out.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
