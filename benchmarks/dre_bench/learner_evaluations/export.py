"""Collect all evaluations in one compact file, with how it was made.

python -m dre_bench.learner_evaluations.export --data datasets.npz --raw FOLDER --out FILE
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from dre_bench.learner_evaluations import datasets, environment, plan, records
from dre_bench.learner_evaluations.metrics import LEAST_PROBABILITY, METRICS
from dre_bench.learner_evaluations.run import DEFAULT_LIMIT, LIMIT
from dre_bench.learner_evaluations.rungs import SHARES
from dre_bench.learner_evaluations.spaces import SPACES
from dre_bench.learner_evaluations.tables import STATUSES, make_table, to_arrays


def provenance(raw: Path) -> dict[str, Any]:
    """Say how the evaluations were made, in the types of JSON."""
    return {
        "made": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": "python -m dre_bench.learner_evaluations." + " ".join(
            [Path(sys.argv[0]).stem, *sys.argv[1:]]
        ),
        "environments": environment.noted(raw),
        "data": "42 data sets of the UCI tradition, from the collection renatopp/arff-datasets",
        "most_rows": datasets.MOST_ROWS,
        "folds": datasets.FOLDS,
        "fold_seed": datasets.SEED,
        "plan_seed": plan.SEED,
        "slices": plan.SLICES,
        "seconds_limit": LIMIT,
        "seconds_limit_of_the_default": DEFAULT_LIMIT,
        "rungs": SHARES,
        "statuses": STATUSES,
        "metrics": METRICS,
        "least_probability": LEAST_PROBABILITY,
    }  # fmt: skip


def export(archive: Path, raw: Path, out: Path) -> dict[str, int]:
    """Write the file; return how many evaluations of each learner it has."""
    names = datasets.names(archive)
    arrays: dict[str, Any] = {
        "provenance": np.array(json.dumps(provenance(raw))),
        "datasets": np.array(names),
    }
    for name in names:
        data = datasets.load(archive, name)
        arrays[f"rows/{name}"] = data.rows.astype(np.int16)
        arrays[f"folds/{name}"] = data.fold
    counts = dict.fromkeys(SPACES, 0)
    for learner in SPACES:
        for task in METRICS:
            histories = {
                index: records.read(records.path_of(raw, learner, name))
                for index, name in enumerate(names)
                if name.startswith(task)
            }
            table = make_table(learner, task, histories)
            counts[learner] += len(table.position)
            if len(table.position):
                stored = to_arrays(table)
                arrays |= {f"{learner}/{task}/{key}": stored[key] for key in stored}
    out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(out, **arrays)
    return counts


def main() -> None:
    """Read the command line and export."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the archive of data sets")
    parser.add_argument("--raw", type=Path, required=True, help="folder of the evaluations")
    parser.add_argument("--out", type=Path, required=True, help="the file to write (.npz)")
    chosen = parser.parse_args()
    counts = export(chosen.data, chosen.raw, chosen.out)
    for learner, count in counts.items():
        print(f"{learner:24s}{count:8d}")
    print(f"{'together':24s}{sum(counts.values()):8d}, {chosen.out.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
