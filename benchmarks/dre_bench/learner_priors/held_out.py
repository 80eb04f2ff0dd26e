"""Propose the first trials of studies on data sets that a prior has not learnt from.

    python -m dre_bench.learner_priors.held_out --evaluations FILE --out proposals.jsonl

Every fourth data set is held out in turn, the priors are trained on the others, and each proposes
the first configuration for each data set held out. `first_trials` evaluates them, `report`
compares them with the library's default. The priors that ship are asked as well; they may know
some of the data sets. Run the command again to resume.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dre_bench.learner_evaluations.tables import read_tables
from dre_bench.learner_priors.tasks import LEARNERS, Tables, search_space
from dre_bench.learner_priors.training import train
from dre_plugins import AskTell
from dre_plugins.transfer.prior import Prior, names

N_FOLDS = 4
# A proposal depends on a seed a little: data sets take turns with so many.
N_SEEDS = 3
HELD_OUT, SHIPPED = "held out", "shipped"


def proposals(name: str, prior: Prior, held_out: list[str], tables: Tables) -> Iterator[Any]:
    """Yield the data set and the first configuration of each that a learner has a space for."""
    known: dict[tuple[str, int], dict[str, Any]] = {}
    for place, dataset in enumerate(held_out):
        kind, seed = dataset.split("/")[0], place % N_SEEDS
        table = tables.get((LEARNERS[name].learner, kind))
        if table is None or kind not in LEARNERS[name].tasks:
            continue
        if (kind, seed) not in known:
            study = AskTell(search_space(table.space), seed=seed, prior=prior)
            known[kind, seed] = study.ask()[1]
        yield dataset, known[kind, seed]


def run(evaluations: Path, out: Path, priors: list[str]) -> None:
    """Append the proposals that `out` does not have yet."""
    datasets, tables = read_tables(evaluations)
    done = set()
    if out.exists():
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        done = {(line["prior"], line["which"], line["fold"]) for line in lines}
    for name in priors:
        for fold in range(N_FOLDS):
            held_out = datasets[fold::N_FOLDS]
            for which in (HELD_OUT, SHIPPED):
                if (name, which, fold) in done or (which == SHIPPED and name not in names()):
                    continue
                is_new = which == HELD_OUT
                prior = train(name, datasets, tables, held_out) if is_new else Prior.load(name)
                if prior is None:
                    continue
                lines = [
                    {
                        "prior": name,
                        "which": which,
                        "fold": fold,
                        "dataset": dataset,
                        "learner": LEARNERS[name].learner,
                        "configuration": configuration,
                    }
                    for dataset, configuration in proposals(name, prior, held_out, tables)
                ]
                with out.open("a") as file:
                    file.writelines(json.dumps(line) + "\n" for line in lines)
                print(name, which, fold, len(lines), flush=True)


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--evaluations", type=Path, required=True, help="the exported file")
    parser.add_argument("--out", type=Path, required=True, help="the file to add to (.jsonl)")
    parser.add_argument("--names", nargs="*", choices=list(LEARNERS), default=list(LEARNERS))
    chosen = parser.parse_args()
    run(chosen.evaluations, chosen.out, chosen.names)


if __name__ == "__main__":
    main()
