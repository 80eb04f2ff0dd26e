"""Small real problems: a learner of scikit-learn tuned on data that come with it.

A task is a way to shuffle the data before they are cut into folds; what is maximised is the mean
over the folds. An evaluation takes a tenth of a second or so.

    svm-digits          support vectors on 400 digits: accuracy, in steps of a digit; conditional
    pipeline-cancer     components, then one of three classifiers: minus the log loss; conditional
    boosting-diabetes   boosted trees on the progress of diabetes: R²
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from dre_bench.tasks import Parameter, Scenario, only_for

N_TASKS = 20
N_FOLDS = 3


@dataclass(frozen=True)
class Learner:
    """Describe one problem.

    Attributes:
        data: Function of `sklearn.datasets` that loads the data.
        n_rows: Rows that are used; None takes all.
        scoring: Name of a score of scikit-learn, larger is better.
        parameters: What is tuned.
        build: A configuration -> what is fitted.
    """

    data: str
    n_rows: int | None
    scoring: str
    parameters: tuple[Parameter, ...]
    build: Callable[[Mapping[str, Any]], Any]


def _support_vectors(configuration: Mapping[str, Any]) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    return make_pipeline(StandardScaler(), SVC(**configuration))


def _pipeline(configuration: Mapping[str, Any]) -> Any:
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    classifiers = {
        "logistic": LogisticRegression,
        "neighbours": KNeighborsClassifier,
        "bayes": GaussianNB,
    }
    settings = dict(configuration)
    components = PCA(settings.pop("n_components"), random_state=0)
    classifier = classifiers[settings.pop("classifier")](**settings)
    return make_pipeline(StandardScaler(), components, classifier)


def _boosting(configuration: Mapping[str, Any]) -> Any:
    from sklearn.ensemble import GradientBoostingRegressor

    return GradientBoostingRegressor(random_state=0, **configuration)


LEARNERS: Mapping[str, Learner] = {
    "svm-digits": Learner(
        "load_digits",
        400,
        "accuracy",
        (
            Parameter("kernel", "categorical", choices=("linear", "rbf", "poly")),
            Parameter("C", "float", 1e-4, 1e4, log=True),
            Parameter(
                "gamma", "float", 1e-6, 1e1, log=True, parent="kernel", active_for=("rbf", "poly")
            ),
            Parameter("degree", "int", 2, 5, parent="kernel", active_for=("poly",)),
        ),
        _support_vectors,
    ),
    "pipeline-cancer": Learner(
        "load_breast_cancer",
        None,
        "neg_log_loss",
        (
            Parameter("n_components", "int", 1, 30),
            Parameter("classifier", "categorical", choices=("logistic", "neighbours", "bayes")),
            *only_for("classifier", "logistic", Parameter("C", "float", 1e-5, 1e3, log=True)),
            *only_for(
                "classifier",
                "neighbours",
                Parameter("n_neighbors", "int", 1, 100, log=True),
                Parameter("p", "float", 1.0, 4.0),
                Parameter("weights", "categorical", choices=("uniform", "distance")),
            ),
            *only_for(
                "classifier", "bayes", Parameter("var_smoothing", "float", 1e-9, 1e1, log=True)
            ),
        ),
        _pipeline,
    ),
    "boosting-diabetes": Learner(
        "load_diabetes",
        None,
        "r2",
        (
            Parameter("n_estimators", "int", 5, 50, log=True),
            Parameter("learning_rate", "float", 1e-3, 1.0, log=True),
            Parameter("subsample", "float", 0.1, 1.0),
            Parameter("max_depth", "int", 1, 6),
            Parameter("min_samples_leaf", "int", 1, 60, log=True),
            Parameter("max_features", "float", 0.1, 1.0),
            Parameter("loss", "categorical", choices=("squared_error", "huber")),
        ),
        _boosting,
    ),
}


class LearnerScenario(Scenario):
    """A learner and a data set, cut into folds in several ways.

    Args:
        name: One of `LEARNERS`.
    """

    metric = "score"
    n_reference = 200  # of 2000 configurations some problems would take a quarter of an hour

    def __init__(self, name: str) -> None:
        self.name = name
        self.tasks = [*range(N_TASKS)]
        self._learner = LEARNERS[name]
        self.parameters = self._learner.parameters

    def value(self, task: int, configuration: Mapping[str, Any]) -> float:
        """Return what is maximised, of one configuration."""
        if task not in self.tasks:
            raise ValueError(f"{self.name} has no task {task}; it has 0 to {N_TASKS - 1}.")
        from sklearn.model_selection import cross_val_score
        from sklearn.utils import shuffle

        learner = self._learner
        inputs, targets = shuffle(
            *_loaded(learner.data), n_samples=learner.n_rows, random_state=task
        )
        scores = cross_val_score(
            learner.build(configuration), inputs, targets, scoring=learner.scoring, cv=N_FOLDS
        )
        return float(scores.mean())


@cache
def _loaded(data: str) -> tuple[Any, Any]:
    from sklearn import datasets

    inputs, targets = getattr(datasets, data)(return_X_y=True)
    return inputs, targets
