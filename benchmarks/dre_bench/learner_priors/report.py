"""Compare the first trial that priors propose with the library's default and with chance.

    python -m dre_bench.learner_priors.report --evaluations FILE --trials first_trials.jsonl

Regret is the distance to the best that any evaluation of the learner reached on the data set, by
one metric, as a share of the distance from there to the median of the space-filling points; it is
cut off at `WORST`, so that one failure does not decide a mean.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dre_bench.learner_evaluations.plan import DEFAULT, POSITIONS, SOBOL
from dre_bench.learner_evaluations.tables import Table, read_tables
from dre_bench.learner_priors.tasks import SIGNS, Tables

WORST = 2.0
# Losses closer than this are equal: the evaluations are kept as float32.
SAME = 1e-6


@dataclass(frozen=True)
class Comparison:
    """Compare first trials on all data sets by all metrics.

    Attributes:
        n_datasets: Data sets.
        prior: Mean regret of the prior's proposal.
        default: Mean regret of the library's default.
        chance: Mean regret of a space-filling point.
        wins: Share of data sets and metrics where the proposal is better than the default; a tie
            is half a win.
    """

    n_datasets: int
    prior: float
    default: float
    chance: float
    wins: float

    @property
    def is_worth_shipping(self) -> bool:
        """Whether the first trial beats the library's default, on average and more often."""
        return self.prior < self.default and self.wins > 0.5


def compared(lines: Iterable[Mapping[str, Any]], datasets: list[str], tables: Tables) -> Comparison:
    """Compare the evaluated proposals of one prior, see `Comparison`."""
    found = [row for line in lines for row in _rows(line, datasets, tables)]
    names, prior, default, chance, wins = zip(*found, strict=True)
    means = (float(np.mean(values)) for values in (prior, default, chance, wins))
    return Comparison(len(set(names)), *means)


def _rows(
    line: Mapping[str, Any], datasets: list[str], tables: Tables
) -> Iterator[tuple[str, float, float, float, float]]:
    """Yield the data set, three regrets and the win by each metric that tells anything."""
    dataset = line["dataset"]
    table = tables[line["learner"], dataset.split("/")[0]]
    rows = table.dataset == datasets.index(dataset)
    for metric in (metric for metric in SIGNS if metric in table.metrics):
        losses = -SIGNS[metric] * table.metrics[metric][rows, -1].astype(float)
        of_kind = _by_kind(table, rows, losses)
        if not (of_kind[DEFAULT].size and np.isfinite(of_kind[SOBOL]).any()):
            continue
        loss = -SIGNS[metric] * line["metrics"].get(metric, np.nan)
        best = np.nanmin([*losses, loss])
        scale = np.nanmedian(of_kind[SOBOL]) - best
        if not scale > SAME:
            continue
        regrets = [
            np.nan_to_num((value - best) / scale, nan=WORST).clip(0.0, WORST)
            for value in (np.array([loss]), of_kind[DEFAULT], of_kind[SOBOL])
        ]
        difference = np.nan_to_num(of_kind[DEFAULT][0] - loss, nan=-1.0)
        win = 0.5 if abs(difference) <= SAME else float(difference > 0)
        prior, default, chance = (float(values.mean()) for values in regrets)
        yield dataset, prior, default, chance, win


def _by_kind(table: Table, rows: np.ndarray, losses: np.ndarray) -> dict[str, np.ndarray]:
    kinds = np.array([POSITIONS[position][0] for position in table.position[rows]])
    return {kind: losses[kinds == kind] for kind in (DEFAULT, SOBOL)}


def main() -> None:
    """Read the command line and print a line for each prior."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--evaluations", type=Path, required=True, help="the exported file")
    parser.add_argument("--trials", type=Path, required=True, help="what `first_trials` wrote")
    chosen = parser.parse_args()
    datasets, tables = read_tables(chosen.evaluations)
    lines = [json.loads(line) for line in chosen.trials.read_text().splitlines()]
    print(f"{'prior':36s}{'sets':>6s}{'regret':>9s}{'default':>9s}{'chance':>9s}{'wins':>7s}")
    for name, which in sorted({(line["prior"], line["which"]) for line in lines}):
        part = [line for line in lines if (line["prior"], line["which"]) == (name, which)]
        found = compared(part, datasets, tables)
        print(
            f"{name + ', ' + which:36s}{found.n_datasets:6d}{found.prior:9.3f}{found.default:9.3f}"
            f"{found.chance:9.3f}{found.wins:7.2f}  {'ship' if found.is_worth_shipping else ''}"
        )


if __name__ == "__main__":
    main()
