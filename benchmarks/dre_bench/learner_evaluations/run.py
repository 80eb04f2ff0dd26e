"""Evaluate all learners on all data sets; goes on where an earlier run was interrupted.

python -m dre_bench.learner_evaluations.run --data datasets.npz --raw FOLDER
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from dre_bench.learner_evaluations import datasets, environment, plan, records
from dre_bench.learner_evaluations.evaluation import evaluate
from dre_bench.learner_evaluations.learners import LEARNERS
from dre_bench.learner_evaluations.spaces import CLASSIFICATION, SPACES
from dre_bench.learner_evaluations.worker import Worker

# Seconds of processor time for all folds of an evaluation. The default has more, as it is what
# every other configuration is compared with.
LIMIT, DEFAULT_LIMIT = 20.0, 100.0


def evaluate_until(
    worker: Worker, archive: Path, raw: Path, learner: str, dataset: str, end: int
) -> int:
    """Evaluate a learner on a data set up to a position; say how many evaluations it took.

    Does nothing while another process works on the same pair.
    """
    path = records.path_of(raw, learner, dataset)
    with records.claimed(path) as free:
        if not free:
            return 0
        records.drop_incomplete_line(path)
        history = records.read(path)
        before = len(history)
        while len(history) < end:
            configuration = plan.configuration_at(learner, dataset, history)
            kind, number = plan.POSITIONS[len(history)]
            limit = LIMIT if configuration is not None else DEFAULT_LIMIT
            answer = worker.run((archive, dataset, learner, configuration), limit)
            if answer["status"] == "timed out":
                answer["fit_seconds"] = limit
            record = {
                "kind": kind,
                "number": number,
                "configuration": configuration or {},
                **answer,
            }
            records.append(path, record)
            history.append(record)
        return max(len(history) - before, 0)


def run(
    archive: Path, raw: Path, learners: Sequence[str], names: Sequence[str], ends: Sequence[int]
) -> None:
    """Evaluate breadth first: all pairs to the end of a slice, then to the end of the next."""
    worker = Worker(evaluate)
    ordered = sorted(names, key=lambda name: datasets.load(archive, name).size)
    try:
        for end in ends:
            for learner in learners:
                # Load the library here, once, and let the next child process inherit it.
                LEARNERS[learner].build(None, CLASSIFICATION)
                worker.close()
                done = sum(
                    evaluate_until(worker, archive, raw, learner, name, end) for name in ordered
                )
                print(f"position {end}: {learner}: {done} evaluations", flush=True)
    finally:
        worker.close()


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the archive of data sets")
    parser.add_argument("--raw", type=Path, required=True, help="folder of the evaluations")
    parser.add_argument("--learners", nargs="*", choices=list(SPACES), default=list(SPACES))
    parser.add_argument("--datasets", nargs="*", help="TASK/NAME; default: all of them")
    parser.add_argument("--end", type=int, help="position at which to stop")
    chosen = parser.parse_args()
    names = chosen.datasets or datasets.names(chosen.data)
    last = min(chosen.end or len(plan.POSITIONS), len(plan.POSITIONS))
    ends = [end for end in plan.SLICE_ENDS if end < last] + [last]
    environment.note(chosen.raw)
    run(chosen.data, chosen.raw, chosen.learners, names, ends)


if __name__ == "__main__":
    main()
