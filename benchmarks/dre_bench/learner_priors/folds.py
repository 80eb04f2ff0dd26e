"""Train the priors of learners without the data sets of each fold, to be measured on these.

python -m dre_bench.learner_priors.folds --evaluations FILE --out FOLDER
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from dre_bench.learner_evaluations.tables import read_tables
from dre_bench.learner_priors.held_out import N_FOLDS
from dre_bench.learner_priors.networks import NAME
from dre_bench.learner_priors.tasks import LEARNERS, tables_of
from dre_bench.learner_priors.training import train
from dre_plugins.transfer.prior_file import CATALOGUE


def main() -> None:
    """Read the command line; train what is not there yet, a folder for each fold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--evaluations", type=Path, required=True, help="the exported file")
    parser.add_argument("--out", type=Path, required=True, help="folder of the folds")
    parser.add_argument("--names", nargs="*", choices=list(LEARNERS), default=list(LEARNERS))
    chosen = parser.parse_args()
    datasets, tables = read_tables(chosen.evaluations)
    for fold in range(N_FOLDS):
        folder = chosen.out / str(fold)
        folder.mkdir(parents=True, exist_ok=True)
        # Of other data sets: it knows none of those held out.
        shutil.copy(CATALOGUE / f"{NAME}.safetensors", folder)
    for name in chosen.names:
        for fold in range(N_FOLDS):
            path = chosen.out / str(fold) / f"{name}.safetensors"
            if path.exists() or not tables_of(name, tables):
                continue
            prior = train(name, datasets, tables, datasets[fold::N_FOLDS])
            if prior is not None:
                prior.save(path)
                print(path, flush=True)


if __name__ == "__main__":
    main()
