"""Propose the first trials of studies on data sets that a prior has not learnt from.

    python -m dre_bench.learner_priors.held_out --evaluations FILE --out proposals.jsonl

Every fourth data set is held out in turn, and the learner's favourite is found on the others: the
first trial of a study with the prior, whatever its weights. Where the search space is small enough
to be a table, the weights decide, so that the prior is trained. `first_trials` evaluates the
trial, `report` compares it with the library's default. The priors of `dre_bench.priors` are asked
as well; they may know some of the data sets. Run the command again to resume.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dre_bench.learner_evaluations.tables import read_tables
from dre_bench.learner_priors.tasks import LEARNERS, Tables, prior_space, search_space, tables_of
from dre_bench.learner_priors.training import favourite, train
from dre_plugins import AskTell
from dre_plugins.recommend.search import MAX_TABLE
from dre_plugins.transfer.prior import Prior

N_FOLDS = 4
HELD_OUT, SHIPPED = "held out", "shipped"
# Priors of the same learners that are made of other data.
OTHERS = {"decision-tree-small": "decision-tree", "xgboost-small": "xgboost"}


def first_configurations(
    name: str, which: str, tables: Tables, datasets: list[str], held_out: list[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the data sets held out and the first trial of each that the learner is for."""
    space = prior_space(name, tables)
    best: NDArray[np.float64] | None = None
    prior: Prior | None = None
    if which == SHIPPED:
        prior = Prior.load(OTHERS[name])
    elif space.assignments(MAX_TABLE) is not None:
        prior = train(name, datasets, tables, held_out)
    else:
        best = favourite(name, space, datasets, tables, held_out)
    first_asked: dict[str, dict[str, Any]] = {}
    for dataset in held_out:
        kind = dataset.split("/")[0]
        table = tables.get((LEARNERS[name].learner, kind))
        if table is None or kind not in LEARNERS[name].tasks:
            continue
        table_space = search_space(table.space)
        if best is not None:
            columns = [space.names.index(parameter) for parameter in table_space.names]
            yield dataset, table_space.to_configuration(best[columns])
        elif prior is not None:
            if kind not in first_asked:
                first_asked[kind] = AskTell(table_space, seed=0, prior=prior).ask()[1]
            yield dataset, first_asked[kind]


def run(evaluations: Path, out: Path, priors: list[str]) -> None:
    """Append the proposals that `out` does not have yet."""
    datasets, tables = read_tables(evaluations)
    done = set()
    if out.exists():
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        done = {(line["prior"], line["which"], line["fold"]) for line in lines}
    plan = [(name, which) for name in priors for which in (HELD_OUT, SHIPPED)]
    for name, which in plan:
        if not tables_of(name, tables) or (which == SHIPPED and name not in OTHERS):
            continue
        for fold in range(N_FOLDS):
            if (name, which, fold) in done:
                continue
            held_out = datasets[fold::N_FOLDS]
            found = [*first_configurations(name, which, tables, datasets, held_out)]
            common = {
                "prior": name,
                "which": which,
                "fold": fold,
                "learner": LEARNERS[name].learner,
            }
            with out.open("a") as file:
                for dataset, configuration in found:
                    line = {**common, "dataset": dataset, "configuration": configuration}
                    file.write(json.dumps(line) + "\n")
            print(name, which, fold, len(found), flush=True)


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
