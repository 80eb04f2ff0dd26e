"""The first trial of FLAML's zero-shot tuning, beside those of the learners' priors.

    PYTHONPATH=.:benchmarks flaml/bin/python lab/flaml_first_trials.py suggest DATASETS SUGGESTED
    PYTHONPATH=.:benchmarks learners/bin/python lab/flaml_first_trials.py evaluate DATASETS \
        SUGGESTED EVALUATED
    python -m dre_bench.learner_priors.report --evaluations EVALUATIONS --trials EVALUATED

`suggest` needs `flaml[automl]` and scikit-learn, `evaluate` the environment of the learners'
evaluations. Either goes on where it stopped. Files are JSON lines.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from dre_bench.learner_evaluations import datasets, evaluation
from dre_bench.learner_evaluations.learners import LEARNERS
from dre_bench.learner_evaluations.records import append, read
from dre_bench.learner_evaluations.worker import Worker

# The prior of each learner that FLAML has a portfolio for, and FLAML's name of the learner.
ESTIMATORS = {
    "lightgbm": ("lightgbm", "lgbm"),
    "xgboost": ("xgboost-small", "xgboost"),
    "random_forest": ("random-forest", "rf"),
    "extra_trees": ("extra-trees", "extra_tree"),
}
# Seconds of processor time for all folds, as the library's default has.
LIMIT = 100.0


def suggest(archive: Path, out: Path) -> None:
    """Ask FLAML for its configuration of each learner on each data set."""
    from flaml.default.suggest import suggest_hyperparams

    done = {(line["learner"], line["dataset"]) for line in read(out)}
    for name in datasets.names(archive):
        data = datasets.load(archive, name)
        for learner, (prior, estimator) in ESTIMATORS.items():
            if (learner, name) in done:
                continue
            found, _ = suggest_hyperparams(data.task, data.inputs, data.target, estimator)
            line = {"prior": prior, "which": "flaml", "learner": learner, "dataset": name}
            append(out, {**line, "configuration": found})


def evaluate(archive: Path, suggested: Path, out: Path) -> None:
    """Cross-validate what was suggested, on the folds of the learners' evaluations."""
    done = {(line["learner"], line["dataset"]) for line in read(out)}
    worker = Worker(evaluated)
    try:
        for line in read(suggested):
            if (line["learner"], line["dataset"]) in done:
                continue
            task = (archive, line["dataset"], line["learner"], line["configuration"])
            answer = worker.run(task, LIMIT)
            found = answer.get("metrics", {})
            means = {name: float(evaluation.mean_metric(found, name)[-1]) for name in found}
            append(out, {**line, "status": answer["status"], "metrics": means})
    finally:
        worker.close()


def evaluated(archive: Path, dataset: str, learner: str, arguments: dict[str, Any]) -> Any:
    """Evaluate a learner of which the library's own arguments are given."""
    known = LEARNERS[learner]

    def build(_: object, task: str) -> Any:
        return known.build(None, task).set_params(**arguments)

    LEARNERS[learner] = replace(known, build=build, rungs=None)
    try:
        return evaluation.evaluate(archive, dataset, learner, arguments)
    finally:
        LEARNERS[learner] = known


if __name__ == "__main__":
    command, *paths = sys.argv[1:]
    {"suggest": suggest, "evaluate": evaluate}[command](*map(Path, paths))
