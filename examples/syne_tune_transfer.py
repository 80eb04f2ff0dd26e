"""Syne Tune learns from past evaluations."""

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC
from syne_tune.config_space import loguniform
from syne_tune.optimizer.schedulers.ask_tell_scheduler import AskTellScheduler
from syne_tune.optimizer.schedulers.transfer_learning import transfer_learning_task_evaluation

from dre_plugins import DRE, DRETransfer

SPACE = {"C": loguniform(1e-3, 1e3), "gamma": loguniform(1e-8, 1e1)}


def accuracy(dataset: str, config: dict) -> float:
    """Return the cross-validated accuracy of a support vector machine."""
    x, y = getattr(datasets, f"load_{dataset}")(return_X_y=True)
    return cross_val_score(SVC(**config), x[:300], y[:300], cv=3).mean()


past = {}
for dataset in ("iris", "wine", "breast_cancer"):
    table = pd.DataFrame([{k: d.sample() for k, d in SPACE.items()} for _ in range(40)])
    values = np.array([accuracy(dataset, row) for row in table.to_dict("records")])
    past[dataset] = transfer_learning_task_evaluation.TransferLearningTaskEvaluations(
        SPACE, table, ["accuracy"], values.reshape(-1, 1, 1, 1)
    )
for name, scheduler in {
    "from nothing": DRE(SPACE, "accuracy", do_minimize=False, random_seed=0, prior="universal"),
    "with the past": DRETransfer(SPACE, "accuracy", past, do_minimize=False, random_seed=0),
}.items():
    loop, reached = AskTellScheduler(scheduler), []
    for _ in range(5):
        trial = loop.ask()
        reached.append(accuracy("digits", trial.config))
        loop.tell(trial, {"accuracy": reached[-1]})
    print(f"accuracy on digits {name}: {', '.join(f'{value:.3f}' for value in reached)}")
