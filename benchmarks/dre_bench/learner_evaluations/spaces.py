"""The wide space of each learner, under the names of its library.

The ranges hold what tutorials and tuning libraries search, and more at both ends. Where a default
is beyond what a range can reach (0 on a logarithmic scale, or no limit), the nearer end of the
range stands for it: a penalty of 1e-6 does what none does, and trees on at most 1000 rows hardly
grow beyond `UNLIMITED_DEPTH`. A default of None depends on the data.
"""

from __future__ import annotations

from collections.abc import Callable

from dre_bench.learner_evaluations.parameters import Space, category, integer, number

CLASSIFICATION, REGRESSION = "classification", "regression"

MOST_TREES = 1000
MOST_FOREST_TREES = 500
MOST_EPOCHS = 200
UNLIMITED_DEPTH = 32
UNLIMITED_BOOSTING_DEPTH = 16
UNLIMITED_LEAVES = 512
# The least of a logarithmic range that stands for zero.
NO_PENALTY = 1e-6
LEAST_LEARNING_RATE, MOST_LEARNING_RATE = 1e-3, 1.0
LEAST_FRACTION = 0.1


def _for_classes(task: str) -> Space:
    choices = (category("class_weight", ("none", "balanced"), "none"),)
    return choices if task == CLASSIFICATION else ()


def _criterion(task: str) -> Space:
    choices = (category("criterion", ("gini", "entropy"), "gini"),)
    return choices if task == CLASSIFICATION else ()


def lightgbm(task: str) -> Space:
    """Give LightGBM's space; bagging takes place in each round (`subsample_freq` is 1)."""
    return (
        integer("n_estimators", 10, MOST_TREES, 100),
        number("learning_rate", LEAST_LEARNING_RATE, MOST_LEARNING_RATE, 0.1),
        integer("num_leaves", 2, 256, 31),
        integer("max_depth", 1, UNLIMITED_BOOSTING_DEPTH, UNLIMITED_BOOSTING_DEPTH, log=False),
        integer("min_child_samples", 1, 100, 20),
        number("min_child_weight", 1e-5, 100, 1e-3),
        number("subsample", LEAST_FRACTION, 1, 1.0, log=False),
        number("colsample_bytree", LEAST_FRACTION, 1, 1.0, log=False),
        number("reg_alpha", NO_PENALTY, 1e2, NO_PENALTY),
        number("reg_lambda", NO_PENALTY, 1e3, NO_PENALTY),
        number("min_split_gain", NO_PENALTY, 10, NO_PENALTY),
        integer("max_bin", 8, 255, 255),
    )


def xgboost(task: str) -> Space:
    """Give the space of XGBoost with trees as base learners and histograms."""
    return (
        integer("n_estimators", 10, MOST_TREES, 100),
        number("learning_rate", LEAST_LEARNING_RATE, MOST_LEARNING_RATE, 0.3),
        integer("max_depth", 1, UNLIMITED_BOOSTING_DEPTH, 6, log=False),
        number("min_child_weight", 1e-3, 100, 1.0),
        number("gamma", NO_PENALTY, 10, NO_PENALTY),
        number("subsample", LEAST_FRACTION, 1, 1.0, log=False),
        number("colsample_bytree", LEAST_FRACTION, 1, 1.0, log=False),
        number("colsample_bylevel", LEAST_FRACTION, 1, 1.0, log=False),
        number("reg_alpha", NO_PENALTY, 1e2, NO_PENALTY),
        number("reg_lambda", NO_PENALTY, 1e3, 1.0),
        category("grow_policy", ("depthwise", "lossguide"), "depthwise"),
        integer("max_leaves", 2, 256, None, parent="grow_policy", parent_values=("lossguide",)),
    )


def catboost(task: str) -> Space:
    """Give CatBoost's space with symmetric trees.

    The library chooses the learning rate and the bootstrap from the data by default.
    """
    return (
        integer("iterations", 10, MOST_TREES, 1000),
        number("learning_rate", LEAST_LEARNING_RATE, MOST_LEARNING_RATE, None),
        integer("depth", 1, 10, 6, log=False),
        number("l2_leaf_reg", 1e-3, 1e3, 3.0),
        number("random_strength", 1e-3, 10, 1.0),
        number("rsm", LEAST_FRACTION, 1, 1.0, log=False),
        integer("border_count", 8, 254, 254),
        category("bootstrap_type", ("Bayesian", "Bernoulli", "MVS"), None),
        number(
            "bagging_temperature", 0, 10, None,
            log=False, parent="bootstrap_type", parent_values=("Bayesian",),
        ),
        number(
            "subsample", LEAST_FRACTION, 1, None,
            log=False, parent="bootstrap_type", parent_values=("Bernoulli", "MVS"),
        ),
    )  # fmt: skip


def hist_gradient_boosting(task: str) -> Space:
    """Give the space of scikit-learn's histogram gradient boosting, without early stopping."""
    return (
        integer("max_iter", 10, MOST_TREES, 100),
        number("learning_rate", LEAST_LEARNING_RATE, MOST_LEARNING_RATE, 0.1),
        integer("max_leaf_nodes", 2, 256, 31),
        integer("max_depth", 1, UNLIMITED_BOOSTING_DEPTH, UNLIMITED_BOOSTING_DEPTH, log=False),
        integer("min_samples_leaf", 1, 100, 20),
        number("l2_regularization", NO_PENALTY, 1e3, NO_PENALTY),
        number("max_features", LEAST_FRACTION, 1, 1.0, log=False),
        integer("max_bins", 8, 255, 255),
    )


def random_forest(task: str) -> Space:
    """Give the space of a random forest; `max_features` is a share of the features."""
    return (
        integer("n_estimators", 10, MOST_FOREST_TREES, 100),
        integer("max_depth", 1, UNLIMITED_DEPTH, UNLIMITED_DEPTH),
        integer("min_samples_split", 2, 128, 2),
        integer("min_samples_leaf", 1, 64, 1),
        number("max_features", 0.02, 1, None if task == CLASSIFICATION else 1.0),
        category("bootstrap", ("true", "false"), "true"),
        number(
            "max_samples", LEAST_FRACTION, 1, 1.0,
            log=False, parent="bootstrap", parent_values=("true",),
        ),
        *_criterion(task),
        *_for_classes(task),
    )  # fmt: skip


def extra_trees(task: str) -> Space:
    """Give the space of extremely randomised trees, which draw all rows by default."""
    space = random_forest(task)
    return tuple(
        category("bootstrap", ("false", "true"), "false") if p.name == "bootstrap" else p
        for p in space
    )


def decision_tree(task: str) -> Space:
    """Give the space of one decision tree."""
    return (
        integer("max_depth", 1, UNLIMITED_DEPTH, UNLIMITED_DEPTH),
        integer("min_samples_split", 2, 128, 2),
        integer("min_samples_leaf", 1, 128, 1),
        integer("max_leaf_nodes", 2, UNLIMITED_LEAVES, UNLIMITED_LEAVES),
        number("max_features", LEAST_FRACTION, 1, 1.0, log=False),
        number("ccp_alpha", NO_PENALTY, 0.1, NO_PENALTY),
        category("splitter", ("best", "random"), "best"),
        *_criterion(task),
        *_for_classes(task),
    )


def svm(task: str) -> Space:
    """Give the space of a support vector machine with an RBF kernel on scaled features."""
    tube = (number("epsilon", 1e-4, 1, 0.1),) if task == REGRESSION else ()
    return (
        number("C", 1e-4, 1e4, 1.0),
        number("gamma", NO_PENALTY, 1e2, None),
        *tube,
        *_for_classes(task),
    )


def linear(task: str) -> Space:
    """Give the space of a logistic regression, or of an elastic net on a scaled target."""
    if task == REGRESSION:
        return (number("alpha", NO_PENALTY, 1e2, 1.0), number("l1_ratio", 0, 1, 0.5, log=False))
    return (
        number("C", 1e-5, 1e5, 1.0),
        category("penalty", ("l2", "l1", "elasticnet"), "l2"),
        number(
            "l1_ratio", 0, 1, None,
            log=False, parent="penalty", parent_values=("elasticnet",),
        ),
        *_for_classes(task),
    )  # fmt: skip


def k_nearest_neighbours(task: str) -> Space:
    """Give the space of k nearest neighbours; at most as many as the smallest training set has."""
    return (
        integer("n_neighbors", 1, 100, 5),
        category("weights", ("uniform", "distance"), "uniform"),
        category("metric", ("euclidean", "manhattan", "chebyshev", "cosine"), "euclidean"),
    )


def mlp(task: str) -> Space:
    """Give the space of a multilayer perceptron: equal hidden layers, a fixed number of epochs."""
    return (
        number("learning_rate_init", 1e-5, 1, 1e-3),
        integer("batch_size", 8, 256, None),
        number("alpha", 1e-7, 10, 1e-4),
        integer("n_layers", 1, 4, 1, log=False),
        integer("width", 8, 256, 100),
        integer("epochs", 3, MOST_EPOCHS, MOST_EPOCHS),
        category("activation", ("relu", "tanh"), "relu"),
        category("solver", ("adam", "sgd"), "adam"),
        number(
            "momentum", 0, 0.99, None,
            log=False, parent="solver", parent_values=("sgd",),
        ),
    )  # fmt: skip


def network(task: str) -> Space:
    """Give the space of a network of PyTorch; a script that tunes nothing has the defaults."""
    return (
        number("learning_rate", 1e-5, 1, 1e-3),
        integer("batch_size", 8, 256, 32),
        number("weight_decay", 1e-7, 0.1, 1e-7),
        number("dropout", 0, 0.6, 0.0, log=False),
        integer("n_layers", 1, 5, 2, log=False),
        integer("width", 8, 512, 64),
        integer("epochs", 5, 100, 30),
        category("activation", ("relu", "leaky_relu", "tanh"), "relu"),
        category("optimizer", ("adam", "adamw", "rmsprop", "sgd"), "adam"),
        number(
            "momentum", 0, 0.99, None,
            log=False, parent="optimizer", parent_values=("sgd",),
        ),
    )  # fmt: skip


# Ordered by the time that an evaluation takes, cheap ones first.
SPACES: dict[str, Callable[[str], Space]] = {
    "decision_tree": decision_tree,
    "k_nearest_neighbours": k_nearest_neighbours,
    "linear": linear,
    "svm": svm,
    "xgboost": xgboost,
    "lightgbm": lightgbm,
    "extra_trees": extra_trees,
    "random_forest": random_forest,
    "mlp": mlp,
    "network": network,
    "catboost": catboost,
    "hist_gradient_boosting": hist_gradient_boosting,
}


def space_of(learner: str, task: str) -> Space:
    """Give the space of a learner on `classification` or `regression`."""
    return SPACES[learner](task)
