"""Evaluate the proposals of `held_out` with the real learners, in their environment.

    learners/bin/python -m dre_bench.learner_priors.first_trials --data datasets.npz \
        --proposals proposals.jsonl --out first_trials.jsonl

The environment is that of `dre_bench.learner_evaluations`. Run the command again to resume.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from dre_bench.learner_evaluations.evaluation import evaluate, mean_metric
from dre_bench.learner_evaluations.records import append, read
from dre_bench.learner_evaluations.run import LIMIT
from dre_bench.learner_evaluations.worker import OK, Worker


def run(archive: Path, proposals: Path, out: Path) -> None:
    """Append the results that `out` does not have yet; a failed evaluation has no metrics."""
    done = {(line["prior"], line["dataset"], line["place"]) for line in read(out)}
    worker = Worker(evaluate)
    try:
        for line in read(proposals):
            if (line["prior"], line["dataset"], line["place"]) in done:
                continue
            task = (archive, line["dataset"], line["learner"], line["configuration"])
            answer = worker.run(task, LIMIT)
            found = answer.get("metrics", {}) if answer["status"] == OK else {}
            line["metrics"] = {name: float(mean_metric(found, name)[-1]) for name in found}
            append(out, line)
    finally:
        worker.close()


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True, help="the archive of data sets")
    parser.add_argument("--proposals", type=Path, required=True, help="what `held_out` wrote")
    parser.add_argument("--out", type=Path, required=True, help="the file to add to (.jsonl)")
    chosen = parser.parse_args()
    run(chosen.data, chosen.proposals, chosen.out)


if __name__ == "__main__":
    main()
