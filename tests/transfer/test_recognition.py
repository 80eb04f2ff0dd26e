"""Which learner a study tunes, from search spaces as tutorials write them."""

from __future__ import annotations

import pytest

from dre_plugins.space import Categorical, Domain, Float, Integer, Ordinal
from dre_plugins.transfer.learners import CHOICES, LEARNERS, RANGES, RATES
from dre_plugins.transfer.recognition import recognised, scores_of
from dre_plugins.transfer.spaces.prefixes import learner_of_prefix

RATE, TREES = Float(1e-3, 0.3, "log"), Integer(50, 1000)
SHARE, PENALTY = Float(0.4, 1.0), Float(1e-8, 10.0, "log")
COST = Float(1e-3, 1e3, "log")

TUTORIALS: dict[str, tuple[str | None, dict[str, Domain]]] = {
    "Optuna's LightGBM example": (
        "lightgbm",
        {
            "lambda_l1": PENALTY,
            "lambda_l2": PENALTY,
            "num_leaves": Integer(2, 256),
            "feature_fraction": SHARE,
            "bagging_fraction": SHARE,
            "bagging_freq": Integer(1, 7),
            "min_child_samples": Integer(5, 100),
        },
    ),
    "LightGBM in a pipeline": (
        "lightgbm",
        {"lgbm-lr": RATE, "lgbm-num-leaves": Integer(8, 64), "lgbm-max-depth": Integer(3, 12)},
    ),
    "Optuna's XGBoost example": (
        "xgboost",
        {
            "booster": Categorical(("gbtree", "gblinear", "dart")),
            "lambda": PENALTY,
            "alpha": PENALTY,
            "subsample": SHARE,
            "colsample_bytree": SHARE,
            "max_depth": Integer(3, 9, step=2),
            "min_child_weight": Integer(2, 10),
            "eta": PENALTY,
            "gamma": PENALTY,
            "grow_policy": Categorical(("depthwise", "lossguide")),
        },
    ),
    "XGBoost by its scikit-learn interface": (
        "xgboost",
        {
            "n_estimators": TREES,
            "max_depth": Integer(3, 10),
            "learning_rate": RATE,
            "subsample": SHARE,
            "colsample_bytree": SHARE,
            "gamma": Float(0.0, 5.0),
            "min_child_weight": Integer(1, 10),
        },
    ),
    "a random forest": (
        "random-forest",
        {
            "n_estimators": TREES,
            "max_depth": Integer(2, 32, "log"),
            "min_samples_split": Integer(2, 20),
            "min_samples_leaf": Integer(1, 10),
            "bootstrap": Categorical((True, False)),
        },
    ),
    "a forest in make_pipeline": (
        "random-forest",
        {
            "randomforestclassifier__n_estimators": Ordinal((100, 200, 500)),
            "randomforestclassifier__max_depth": Integer(2, 32),
        },
    ),
    "a support vector machine": (
        "svm",
        {"svc__C": COST, "svc__gamma": Float(1e-4, 1.0, "log")},
    ),
    "a support vector machine by logarithms": (
        "svm",
        {"log10_C": Float(-3.0, 3.0), "log10_gamma": Float(-5.0, 0.0)},
    ),
    "logistic regression": (
        "logistic-regression",
        {"clf__C": COST, "clf__penalty": Categorical(("l1", "l2"))},
    ),
    "an elastic net": ("elastic-net", {"alpha": PENALTY, "l1_ratio": Float(0.0, 1.0)}),
    "neighbours": (
        "k-nearest-neighbours",
        {"n_neighbors": Integer(1, 50), "weights": Categorical(("uniform", "distance"))},
    ),
    "a perceptron of scikit-learn": (
        "mlp",
        {
            "mlp__hidden_layer_sizes": Categorical(((50,), (100,), (50, 50))),
            "mlp__alpha": PENALTY,
            "mlp__learning_rate_init": RATE,
        },
    ),
    "a grid of perceptrons": (
        "mlp",
        {
            "hidden_layer_sizes": Categorical(("50,50", "100")),
            "solver": Categorical(("sgd", "adam")),
            "learning_rate": Categorical(("constant", "adaptive")),
        },
    ),
    "a network with dropout, whose layers are a list": (
        "network",
        {
            "hidden_layer_sizes": Categorical(("64,64", "128")),
            "learning_rate": RATE,
            "dropout": Float(0.0, 0.5),
        },
    ),
    "CatBoost": (
        "catboost",
        {"depth": Integer(4, 10), "learning_rate": RATE, "l2_leaf_reg": Float(1.0, 10.0)},
    ),
    "CatBoost, the shortest": (
        "catboost",
        {"iterations": TREES, "learning_rate": RATE, "depth": Integer(4, 10)},
    ),
    "a field of radiance": (
        None,
        {
            "iterations": TREES,
            "learning_rate": RATE,
            "depth": Integer(4, 10),
            "width": Integer(64, 256),
        },
    ),
    "histogram boosting": (
        "hist-gradient-boosting",
        {
            "learning_rate": RATE,
            "max_iter": TREES,
            "max_leaf_nodes": Integer(8, 64),
            "min_samples_leaf": Integer(5, 50),
        },
    ),
    "histogram boosting in scikit-learn's course": (
        "hist-gradient-boosting",
        {
            "classifier__l2_regularization": PENALTY,
            "classifier__learning_rate": Float(1e-3, 10.0, "log"),
            "classifier__max_leaf_nodes": Integer(2, 256, "log"),
            "classifier__min_samples_leaf": Integer(1, 100, "log"),
            "classifier__max_bins": Integer(2, 255, "log"),
        },
    ),
    "a network in PyTorch": (
        "network",
        {
            "lr": Float(1e-5, 1e-1, "log"),
            "batch_size": Ordinal((32, 64, 128)),
            "weight_decay": PENALTY,
            "dropout": Float(0.0, 0.5),
        },
    ),
    "a network in Keras": (
        "network",
        {
            "learning_rate": Float(1e-4, 1e-2, "log"),
            "units": Integer(32, 512, step=32),
            "num_layers": Integer(1, 4),
            "dropout_rate": Float(0.0, 0.5),
        },
    ),
    "Transformers' trainer": (
        "network",
        {
            "learning_rate": Float(1e-5, 1e-2, "log"),
            "per_device_train_batch_size": Ordinal((16, 32, 64)),
            "weight_decay": Float(0.0, 0.3),
            "num_train_epochs": Integer(1, 5),
        },
    ),
    "fine-tuning, whose learning rates are smaller": (
        None,
        {
            "learning_rate": Float(1e-6, 1e-4, "log"),
            "per_device_train_batch_size": Ordinal((4, 8, 16)),
            "weight_decay": Float(0.0, 0.3),
            "num_train_epochs": Integer(1, 5),
        },
    ),
    "a learning rate and a batch": (
        None,
        {"lr": Float(1e-5, 1e-1, "log"), "batch_size": Ordinal((32, 64, 128))},
    ),
    "stable baselines": (
        None,
        {
            "learning_rate": Float(1e-5, 1e-1, "log"),
            "batch_size": Ordinal((32, 64, 128)),
            "gamma": Float(0.9, 0.9999),
            "gae_lambda": Float(0.8, 1.0),
            "n_epochs": Integer(1, 20),
        },
    ),
    "neighbours after components": (
        "k-nearest-neighbours",
        {"n_components": Integer(2, 10), "knn__n_neighbors": Integer(1, 50)},
    ),
    "a branch of a pipeline": (
        "svm",
        {"scaler": Categorical((True, False)), "classifier": Categorical((1, 2)), "svc__C": COST},
    ),
    "reinforcement learning": (
        None,
        {
            "learning_rate": RATE,
            "gamma": Float(0.9, 0.9999),
            "n_steps": Integer(128, 2048, "log"),
            "ent_coef": PENALTY,
        },
    ),
    "a little of reinforcement learning": (
        None,
        {"learning_rate": RATE, "gamma": Float(0.9, 0.9999), "alpha": Float(0.0, 1.0)},
    ),
    "UMAP": (None, {"n_neighbors": Integer(5, 50), "min_dist": Float(0.0, 1.0), "metric": SHARE}),
    "gradient boosting of scikit-learn": (
        None,
        {
            "learning_rate": RATE,
            "n_estimators": TREES,
            "max_depth": Integer(2, 8),
            "min_samples_leaf": Integer(1, 20),
            "subsample": SHARE,
        },
    ),
    "Optuna's choice between two learners": (
        None,
        {
            "classifier": Categorical(("SVC", "RandomForest")),
            "svc_c": COST,
            "rf_max_depth": Integer(2, 32, "log"),
        },
    ),
    "two learners at length": (
        None,
        {
            "svc_c": COST,
            "svc_gamma": COST,
            "rf_n_estimators": TREES,
            "rf_max_depth": Integer(2, 32, "log"),
            "rf_max_features": SHARE,
        },
    ),
    "a tree or a forest": (
        None,
        {
            "max_depth": Integer(2, 32),
            "min_samples_split": Integer(2, 20),
            "min_samples_leaf": Integer(1, 10),
        },
    ),
    "functions": (None, {"x": Float(-1.0, 1.0), "y": Float(-1.0, 1.0)}),
}


@pytest.mark.parametrize("tutorial", TUTORIALS)
def test_what_a_tutorial_tunes(tutorial: str) -> None:
    expected, space = TUTORIALS[tutorial]
    assert recognised(space) == expected, scores_of(space)


def test_one_parameter_is_too_little_unless_a_prefix_names_the_learner() -> None:
    for _, space in TUTORIALS.values():
        for name, domain in space.items():
            assert recognised({name: domain}) in (None, learner_of_prefix(name))
    assert recognised({"svc__C": COST}) == recognised({"svc__gamma": COST}) == "svm"


def test_a_range_that_no_learner_has_does_not_count() -> None:
    space = {"num_leaves": Integer(2, 256), "learning_rate": RATE, "bagging_fraction": SHARE}
    assert recognised(space) == "lightgbm"
    assert recognised({**space, "bagging_fraction": Float(1.0, 90.0)}) is None


def test_the_tables_name_what_there_is() -> None:
    weighted = {name for learner in LEARNERS.values() for name in learner.weights}
    assert {*RANGES} <= weighted and weighted >= RATES
    for key, name in CHOICES:
        assert name in LEARNERS[key].weights
    for learner in LEARNERS.values():
        assert not learner.foreign & {*learner.weights}
        assert learner.needs <= {*learner.weights}
