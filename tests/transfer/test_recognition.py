"""Which learner a study tunes, from search spaces as tutorials write them."""

import re
from itertools import chain

import pytest

from dre_plugins.space import Categorical, Domain, Float, Integer, Ordinal
from dre_plugins.transfer.learners import CHOICES, LEARNERS, RANGES, RATES
from dre_plugins.transfer.recognition import recognised, scores_of
from dre_plugins.transfer.spaces.prefixes import learner_of_prefix

RATE, TREES = Float(1e-3, 0.3, "log"), Integer(50, 1000)
SHARE, PENALTY = Float(0.4, 1.0), Float(1e-8, 10.0, "log")
COST, DEPTH = Float(1e-3, 1e3, "log"), Integer(2, 32, "log")
WIDE, FINE = Float(1e-5, 1e-1, "log"), Float(1e-6, 1e-4, "log")

# What tutorials write for a parameter, where its range or its choices count; elsewhere a share.
DOMAINS: dict[str, Domain] = {
    **dict.fromkeys(("learning_rate", "lgbm-lr", "mlp__learning_rate_init"), RATE),
    **dict.fromkeys(("max_depth", "lgbm-max-depth", "rf_max_depth", "depth"), DEPTH),
    "randomforestclassifier__max_depth": DEPTH,
    **dict.fromkeys(("n_estimators", "rf_n_estimators", "iterations", "max_iter"), TREES),
    **dict.fromkeys(("num_leaves", "lgbm-num-leaves", "max_leaf_nodes"), Integer(2, 256)),
    **{"classifier__l2_regularization": PENALTY, "classifier__learning_rate": RATE},
    "classifier__max_leaf_nodes": Integer(2, 256, "log"),
    "classifier__min_samples_leaf": Integer(1, 100, "log"),
    "classifier__max_bins": Integer(2, 255, "log"),
    **dict.fromkeys(("n_neighbors", "knn__n_neighbors", "min_samples_leaf"), Integer(1, 50)),
    **dict.fromkeys(("lambda", "alpha", "eta", "mlp__alpha", "weight_decay"), PENALTY),
    **dict.fromkeys(("svc__C", "svc__gamma", "svc_c", "svc_gamma", "clf__C"), COST),
    **dict.fromkeys(("batch_size", "per_device_train_batch_size"), Ordinal((16, 32, 64))),
    **{"lr": WIDE, "gamma": Float(0.9, 0.9999), "dropout": Float(0.0, 0.5)},
    "randomforestclassifier__n_estimators": Ordinal((100, 200, 500)),
    "weights": Categorical(("uniform", "distance")),
    "clf__penalty": Categorical(("l1", "l2")),
    "mlp__hidden_layer_sizes": Categorical(((50,), (100,), (50, 50))),
    "classifier": Categorical(("SVC", "RandomForest")),
    **{"log10_C": Float(-3.0, 3.0), "log10_gamma": Float(-5.0, 0.0)},
}


def in_camel_case(name: str) -> str:
    return re.sub("(?<!_)_([a-zA-Z])", lambda match: match[1].upper(), name)


def space_of(names: str, **domains: Domain) -> dict[str, Domain]:
    return {name: DOMAINS.get(name, SHARE) for name in names.split()} | domains


# By the learner that each of them tunes; none that is known, for the last.
TUTORIALS: dict[str | None, dict[str, dict[str, Domain]]] = {
    "lightgbm": {
        "Optuna's LightGBM example": space_of(
            "lambda_l1 lambda_l2 num_leaves feature_fraction bagging_fraction bagging_freq"
            " min_child_samples"
        ),
        "LightGBM in a pipeline": space_of("lgbm-lr lgbm-num-leaves lgbm-max-depth"),
    },
    "xgboost": {
        "Optuna's XGBoost example": space_of(
            "booster lambda alpha subsample colsample_bytree max_depth min_child_weight eta"
            " gamma grow_policy",
            gamma=PENALTY,
        ),
        "XGBoost by its scikit-learn interface": space_of(
            "n_estimators max_depth learning_rate subsample colsample_bytree gamma"
            " min_child_weight",
            gamma=Float(0.0, 5.0),
        ),
    },
    "random-forest": {
        "a random forest": space_of(
            "n_estimators max_depth min_samples_split min_samples_leaf bootstrap"
        ),
        "a forest of one kind or the other": space_of("n_estimators max_depth min_samples_leaf"),
        "a forest in make_pipeline": space_of(
            "randomforestclassifier__n_estimators randomforestclassifier__max_depth"
        ),
    },
    "svm": {
        "a support vector machine": space_of("svc__C svc__gamma"),
        "a support vector machine by logarithms": space_of("log10_C log10_gamma"),
        "a branch of a pipeline": space_of("scaler classifier svc__C"),
    },
    "logistic-regression": {
        "logistic regression": space_of("clf__C clf__penalty"),
        "logistic regression by its initials": space_of("lr_C lr_class_weight"),
    },
    "elastic-net": {"an elastic net": space_of("alpha l1_ratio")},
    "k-nearest-neighbours": {
        "neighbours": space_of("n_neighbors weights"),
        "neighbours after components": space_of("n_components knn__n_neighbors"),
    },
    "mlp": {
        "a perceptron of scikit-learn": space_of(
            "mlp__hidden_layer_sizes mlp__alpha mlp__learning_rate_init"
        ),
        "a grid of perceptrons": space_of(
            "hidden_layer_sizes solver learning_rate",
            hidden_layer_sizes=Categorical(("50,50", "100")),
            solver=Categorical(("sgd", "adam")),
            learning_rate=Categorical(("constant", "adaptive")),
        ),
    },
    "network": {
        "a network with dropout, whose layers are a list": space_of(
            "hidden_layer_sizes learning_rate dropout",
            hidden_layer_sizes=Categorical(("64,64", "128")),
        ),
        "a network in PyTorch": space_of("lr batch_size weight_decay dropout"),
        "a network in Keras": space_of(
            "learning_rate units num_layers dropout_rate", dropout_rate=Float(0.0, 0.5)
        ),
        "Transformers' trainer": space_of(
            "learning_rate per_device_train_batch_size weight_decay num_train_epochs",
            learning_rate=WIDE,
        ),
    },
    "catboost": {
        "CatBoost, the shortest": space_of("iterations learning_rate depth"),
        "CatBoost": space_of("depth learning_rate l2_leaf_reg"),
        "CatBoost in an ensemble": space_of("cat_depth cat_learning_rate cat_l2 weight"),
    },
    "hist-gradient-boosting": {
        "histogram boosting": space_of("learning_rate max_iter max_leaf_nodes min_samples_leaf"),
        "histogram boosting in scikit-learn's course": space_of(
            "classifier__l2_regularization classifier__learning_rate classifier__max_leaf_nodes"
            " classifier__min_samples_leaf classifier__max_bins"
        ),
    },
    None: {
        "a field of radiance": space_of(
            "iterations learning_rate depth width", width=Integer(64, 256)
        ),
        "fine-tuning, whose learning rates are smaller": space_of(
            "learning_rate per_device_train_batch_size weight_decay num_train_epochs",
            learning_rate=FINE,
        ),
        "fine-tuning with a choice of rates": space_of(
            "learning_rate weight_decay epochs", learning_rate=Categorical((1e-4, 5e-5))
        ),
        "fine-tuning with two rates": space_of("lr_encoder lr_head weight_decay dropout"),
        "a transformer, a part of which is a perceptron": space_of(
            "lr batch_size weight_decay dropout num_heads mlp_dropout"
        ),
        "an isolation forest": space_of("n_estimators max_samples contamination"),
        "networks of graphs": space_of("lr hidden_channels num_layers dropout"),
        "a learning rate and a batch": space_of("lr batch_size"),
        "stable baselines": space_of(
            "learning_rate batch_size gamma gae_lambda n_epochs", learning_rate=WIDE
        ),
        "reinforcement learning": space_of("learning_rate gamma n_steps ent_coef"),
        "a little of reinforcement learning": space_of(
            "learning_rate gamma alpha", alpha=Float(0.0, 1.0)
        ),
        "UMAP": space_of("n_neighbors min_dist metric"),
        "gradient boosting of scikit-learn": space_of(
            "learning_rate n_estimators max_depth min_samples_leaf subsample"
        ),
        "Optuna's choice between two learners": space_of("classifier svc_c rf_max_depth"),
        "two learners at length": space_of(
            "svc_c svc_gamma rf_n_estimators rf_max_depth rf_max_features"
        ),
        "a tree or a forest": space_of("max_depth min_samples_split min_samples_leaf"),
        "penalties without their strength": space_of("penalty l1_ratio"),
        "kernels of others": space_of("C kernel", kernel=Categorical(("own", "linear"))),
        "functions": space_of("x y"),
    },
}


@pytest.mark.parametrize(
    ("learner", "tutorial"), [(key, name) for key, group in TUTORIALS.items() for name in group]
)
def test_what_a_tutorial_tunes(learner: str | None, tutorial: str) -> None:
    space = TUTORIALS[learner][tutorial]
    assert recognised(space) == learner, scores_of(space)
    scores = scores_of({in_camel_case(name): domain for name, domain in space.items()})
    assert scores == scores_of(space)


def test_one_parameter_is_too_little_unless_a_prefix_names_the_learner() -> None:
    for space in chain.from_iterable(group.values() for group in TUTORIALS.values()):
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
        assert not {*learner.foreign.split()} & {*learner.weights}
        assert {*learner.needs.split()} <= {*learner.weights}
