"""Propose the first trials of studies on data sets that a portfolio has not learnt from.

    python -m dre_bench.learner_priors.held_out --evaluations FILE --out proposals.jsonl

Every fourth data set is held out in turn, and the learner's portfolio is chosen on the others.
`first_trials` evaluates its members, `report` compares them with the library's default. Run the
command again to resume.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dre_bench.learner_evaluations.records import append, read
from dre_bench.learner_evaluations.tables import read_tables
from dre_bench.learner_priors.tasks import LEARNERS, Tables, prior_space, search_space, tables_of
from dre_bench.learner_priors.training import portfolio_of

N_FOLDS = 4


def first_configurations(
    name: str, tables: Tables, datasets: list[str], held_out: list[str]
) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield each data set held out that the learner is for with each member and its place."""
    space = prior_space(name, tables)
    members = portfolio_of(name, space, datasets, tables, held_out)
    for dataset in held_out:
        kind = dataset.split("/")[0]
        table = tables.get((LEARNERS[name].learner, kind))
        if members is None or table is None or kind not in LEARNERS[name].tasks:
            continue
        table_space = search_space(table.space)
        columns = [space.names.index(parameter) for parameter in table_space.names]
        for place, member in enumerate(members[:, columns]):
            yield dataset, place, table_space.to_configuration(member)


def run(evaluations: Path, out: Path, priors: list[str]) -> None:
    """Append the proposals that `out` does not have yet."""
    datasets, tables = read_tables(evaluations)
    done = {(line["prior"], line["fold"]) for line in read(out)}
    for name in priors:
        for fold in range(N_FOLDS):
            if (name, fold) in done or not tables_of(name, tables):
                continue
            common = {"prior": name, "fold": fold, "learner": LEARNERS[name].learner}
            found = first_configurations(name, tables, datasets, datasets[fold::N_FOLDS])
            for dataset, place, configuration in found:
                which = {"dataset": dataset, "place": place}
                append(out, {**common, **which, "configuration": configuration})
            print(name, fold, flush=True)


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
