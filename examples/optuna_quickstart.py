"""Tune a classifier with Optuna: only the sampler is new.

python examples/optuna_quickstart.py
"""

import optuna
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from dre_plugins import DRESampler

X, y = load_breast_cancer(return_X_y=True)


def objective(trial: optuna.Trial) -> float:
    """Return the cross-validated accuracy of a model family and its own parameters."""
    family = trial.suggest_categorical("family", ["svm", "logistic"])
    if family == "svm":
        c = trial.suggest_float("svm_c", 1e-3, 1e3, log=True)
        gamma = trial.suggest_float("svm_gamma", 1e-5, 1e1, log=True)
        model = SVC(C=c, gamma=gamma)
    else:
        c = trial.suggest_float("logistic_c", 1e-4, 1e2, log=True)
        model = LogisticRegression(C=c, max_iter=1000)
    return cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=5).mean()


study = optuna.create_study(direction="maximize", sampler=DRESampler(seed=0))
study.optimize(objective, n_trials=30)
print(f"best accuracy {study.best_value:.4f} with {study.best_params}")
