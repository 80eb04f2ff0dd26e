"""Search spaces of learners as published tutorials write them.

They are narrower than those of the evaluations, have other names and other scales, lack
parameters, and some have one that no prior knows.
"""

from collections.abc import Mapping
from functools import partial

from dre_bench.learner_evaluations.spaces import CLASSIFICATION, REGRESSION
from dre_bench.learner_priors.user_space import UserSpace
from dre_plugins.space import Categorical, Float, Integer, Ordinal

PENALTY, RATE, SHARE = Float(1e-8, 10.0, "log"), Float(0.01, 0.3, "log"), Float(0.4, 1.0)
FLAG, UNKNOWN = Categorical((True, False)), Integer(1, 10)
METRIC = Categorical(("euclidean", "manhattan", "cosine"))
WEIGHTS = Categorical(("uniform", "distance"))
# Of perceptrons whose users do not tune it.
SETTLED = {"epochs": 50, "activation": "relu", "solver": "adam"}

# By the learner among the evaluations, and what the space is to be recognised as.
LIGHTGBM = partial(UserSpace, "lightgbm", "lightgbm")
XGBOOST = partial(UserSpace, "xgboost", "xgboost")
CATBOOST = partial(UserSpace, "catboost", "catboost")
HISTOGRAM_BOOSTING = partial(UserSpace, "hist_gradient_boosting", "hist-gradient-boosting")
RANDOM_FOREST = partial(UserSpace, "random_forest", "random-forest")
EXTRA_TREES = partial(UserSpace, "extra_trees", "extra-trees")
DECISION_TREE = partial(UserSpace, "decision_tree", "decision-tree")
SVM = partial(UserSpace, "svm", "svm")
LOGISTIC_REGRESSION = partial(UserSpace, "linear", "logistic-regression", tasks=(CLASSIFICATION,))
ELASTIC_NET = partial(UserSpace, "linear", "elastic-net", tasks=(REGRESSION,))
NEIGHBOURS = partial(UserSpace, "k_nearest_neighbours", "k-nearest-neighbours")
PERCEPTRON = partial(UserSpace, "mlp", "mlp")
NETWORK = partial(UserSpace, "mlp", "network")

SPACES: Mapping[str, UserSpace] = {
    "lightgbm, Optuna's example": LIGHTGBM(
        {
            "lambda_l1": ("reg_alpha", PENALTY),
            "lambda_l2": ("reg_lambda", PENALTY),
            "num_leaves": ("num_leaves", Integer(2, 256)),
            "feature_fraction": ("colsample_bytree", SHARE),
            "bagging_fraction": ("subsample", SHARE),
            "bagging_freq": (None, Integer(1, 7)),
            "min_child_samples": ("min_child_samples", Integer(5, 100)),
        }
    ),
    "lightgbm, scikit-learn": LIGHTGBM(
        {
            "learning_rate": ("learning_rate", RATE),
            "n_estimators": ("n_estimators", Integer(50, 500)),
            "max_depth": ("max_depth", Integer(3, 12)),
            "num_leaves": ("num_leaves", Integer(8, 128)),
            "min_data_in_leaf": ("min_child_samples", Integer(5, 50)),
        }
    ),
    "lightgbm, pipeline": LIGHTGBM(
        {
            "n_components": (None, UNKNOWN),
            "lgbm__log10_lr": ("learning_rate", Float(-3.0, 0.0)),
            "lgbm__num_leaves": ("num_leaves", Integer(4, 64)),
            "lgbm__reg_lambda": ("reg_lambda", Float(1e-3, 100.0, "log")),
        }
    ),
    "xgboost, Optuna's example": XGBOOST(
        {
            "lambda": ("reg_lambda", Float(1e-8, 1.0, "log")),
            "alpha": ("reg_alpha", Float(1e-8, 1.0, "log")),
            "subsample": ("subsample", Float(0.2, 1.0)),
            "colsample_bytree": ("colsample_bytree", Float(0.2, 1.0)),
            "max_depth": ("max_depth", Integer(3, 9, step=2)),
            "min_child_weight": ("min_child_weight", Integer(2, 10)),
            "eta": ("learning_rate", Float(1e-8, 1.0, "log")),
            "gamma": ("gamma", Float(1e-8, 1.0, "log")),
            "grow_policy": ("grow_policy", Categorical(("depthwise", "lossguide"))),
        }
    ),
    "xgboost, scikit-learn": XGBOOST(
        {
            "n_estimators": ("n_estimators", Integer(50, 500)),
            "max_depth": ("max_depth", Integer(3, 10)),
            "learning_rate": ("learning_rate", RATE),
            "subsample": ("subsample", Float(0.5, 1.0)),
            "colsample_bytree": ("colsample_bytree", Float(0.5, 1.0)),
            "min_child_weight": ("min_child_weight", Integer(1, 10)),
        }
    ),
    "xgboost, pipeline": XGBOOST(
        {
            "n_features": (None, UNKNOWN),
            "xgb-log10-eta": ("learning_rate", Float(-3.0, 0.0)),
            "xgb-max-depth": ("max_depth", Integer(2, 12)),
            "xgb-reg-lambda": ("reg_lambda", Float(1e-3, 100.0, "log")),
        }
    ),
    "catboost, at length": CATBOOST(
        {
            "iterations": ("iterations", Integer(100, 500)),
            "learning_rate": ("learning_rate", RATE),
            "depth": ("depth", Integer(4, 8)),
            "l2_leaf_reg": ("l2_leaf_reg", Float(1.0, 10.0)),
            "border_count": ("border_count", Integer(32, 254)),
        }
    ),
    "catboost, short": CATBOOST(
        {
            "depth": ("depth", Integer(2, 8)),
            "lr": ("learning_rate", Float(1e-3, 0.5, "log")),
            "l2_leaf_reg": ("l2_leaf_reg", Float(0.1, 100.0, "log")),
        },
        {"iterations": 200},
    ),
    "catboost, pipeline": CATBOOST(
        {
            "cb_random_strength": ("random_strength", Float(1e-2, 10.0, "log")),
            "cb_learning_rate": ("learning_rate", RATE),
            "cb_depth": ("depth", Integer(3, 9)),
            "patience": (None, UNKNOWN),
        },
        {"iterations": 200},
    ),
    "histogram boosting, course": HISTOGRAM_BOOSTING(
        {
            "classifier__l2_regularization": ("l2_regularization", Float(1e-6, 1e3, "log")),
            "classifier__learning_rate": ("learning_rate", Float(1e-3, 10.0, "log")),
            "classifier__max_leaf_nodes": ("max_leaf_nodes", Integer(2, 256, "log")),
            "classifier__min_samples_leaf": ("min_samples_leaf", Integer(1, 100, "log")),
            "classifier__max_bins": ("max_bins", Integer(2, 255, "log")),
        }
    ),
    "histogram boosting, scikit-learn": HISTOGRAM_BOOSTING(
        {
            "learning_rate": ("learning_rate", RATE),
            "max_iter": ("max_iter", Integer(50, 500)),
            "max_depth": ("max_depth", Integer(2, 12)),
            "min_samples_leaf": ("min_samples_leaf", Integer(5, 50)),
        }
    ),
    "histogram boosting, pipeline": HISTOGRAM_BOOSTING(
        {
            "n_components": (None, UNKNOWN),
            "hgb__log10_learning_rate": ("learning_rate", Float(-3.0, 0.0)),
            "hgb__max_leaf_nodes": ("max_leaf_nodes", Integer(4, 128, "log")),
            "hgb__l2_regularization": ("l2_regularization", Float(1e-8, 10.0, "log")),
        }
    ),
    "random forest, scikit-learn": RANDOM_FOREST(
        {
            "n_estimators": ("n_estimators", Integer(50, 300)),
            "max_depth": ("max_depth", Integer(2, 32, "log")),
            "min_samples_split": ("min_samples_split", Integer(2, 20)),
            "min_samples_leaf": ("min_samples_leaf", Integer(1, 10)),
            "bootstrap": ("bootstrap", FLAG),
        }
    ),
    "random forest, pipeline": RANDOM_FOREST(
        {
            "k_best": (None, UNKNOWN),
            "rf__n_estimators": ("n_estimators", Ordinal((50, 100, 200))),
            "rf__max_depth": ("max_depth", Integer(3, 20)),
            "rf__max_features": ("max_features", Float(0.1, 1.0)),
        }
    ),
    "random forest, shares": RANDOM_FOREST(
        {
            "forest_max_features": ("max_features", Float(0.05, 1.0, "log")),
            "forest_max_samples": ("max_samples", Float(0.3, 1.0)),
            "forest_min_samples_leaf": ("min_samples_leaf", Integer(1, 20, "log")),
        },
        {"bootstrap": "true"},
    ),
    "extra trees, short": EXTRA_TREES(
        {
            "et_n_estimators": ("n_estimators", Integer(50, 300)),
            "et_max_depth": ("max_depth", Integer(3, 30)),
            "et_min_samples_leaf": ("min_samples_leaf", Integer(1, 20)),
        }
    ),
    "extra trees, pipeline": EXTRA_TREES(
        {
            "imputer": (None, Categorical(("mean", "median"))),
            "extratreesclassifier__max_features": ("max_features", Float(0.1, 1.0)),
            "extratreesclassifier__min_samples_split": ("min_samples_split", Integer(2, 20)),
            "extratreesclassifier__bootstrap": ("bootstrap", FLAG),
        }
    ),
    "extra trees, by logarithms": EXTRA_TREES(
        {
            "et-log2-max-features": ("max_features", Float(-4.0, 0.0)),
            "et-min-samples-leaf": ("min_samples_leaf", Integer(1, 20, "log")),
        }
    ),
    "decision tree, scikit-learn": DECISION_TREE(
        {
            "max_depth": ("max_depth", Integer(2, 20)),
            "min_samples_split": ("min_samples_split", Integer(2, 40)),
            "min_samples_leaf": ("min_samples_leaf", Integer(1, 20)),
            "splitter": ("splitter", Categorical(("best", "random"))),
        }
    ),
    "decision tree, pipeline": DECISION_TREE(
        {
            "n_bins": (None, UNKNOWN),
            "dt__max_depth": ("max_depth", Integer(2, 12)),
            "dt__ccp_alpha": ("ccp_alpha", Float(1e-5, 0.05, "log")),
        }
    ),
    "decision tree, pruned": DECISION_TREE(
        {
            "ccp_alpha": ("ccp_alpha", Float(1e-6, 0.1, "log")),
            "max_depth": ("max_depth", Integer(1, 20)),
            "max_leaf_nodes": ("max_leaf_nodes", Integer(2, 100)),
        }
    ),
    "svm, pipeline": SVM(
        {"svc__C": ("C", Float(1e-2, 1e3, "log")), "svc__gamma": ("gamma", Float(1e-4, 1, "log"))}
    ),
    "svm, by logarithms": SVM(
        {"log10_C": ("C", Float(-3.0, 3.0)), "log10_gamma": ("gamma", Float(-5.0, 1.0))}
    ),
    "svm, with components": SVM(
        {
            "n_components": (None, UNKNOWN),
            "svm_c": ("C", Float(1e-3, 1e3, "log")),
            "svm_gamma": ("gamma", Float(1e-5, 1e1, "log")),
            "svm_class_weight": ("class_weight", Categorical((None, "balanced"))),
        },
        tasks=(CLASSIFICATION,),
    ),
    "logistic regression, scikit-learn": LOGISTIC_REGRESSION(
        {"C": ("C", Float(1e-4, 1e2, "log")), "penalty": ("penalty", Categorical(("l1", "l2")))}
    ),
    "logistic regression, pipeline": LOGISTIC_REGRESSION(
        {
            "k_best": (None, UNKNOWN),
            "logisticregression__C": ("C", Float(1e-3, 1e3, "log")),
            "logisticregression__class_weight": ("class_weight", Categorical((None, "balanced"))),
        },
        {"penalty": "l2"},
    ),
    "logistic regression, mixed": LOGISTIC_REGRESSION(
        {"log10_C": ("C", Float(-4.0, 4.0)), "l1_ratio": ("l1_ratio", Float(0.0, 1.0))},
        {"penalty": "elasticnet"},
    ),
    "elastic net, scikit-learn": ELASTIC_NET(
        {"alpha": ("alpha", Float(1e-4, 10, "log")), "l1_ratio": ("l1_ratio", Float(0.0, 1.0))}
    ),
    "elastic net, by logarithms": ELASTIC_NET(
        {"log10_alpha": ("alpha", Float(-5.0, 1.0)), "l1_ratio": ("l1_ratio", Float(0.1, 0.9))}
    ),
    "elastic net, pipeline": ELASTIC_NET(
        {
            "degree": (None, UNKNOWN),
            "enet__alpha": ("alpha", Float(1e-3, 100, "log")),
            "enet__l1_ratio": ("l1_ratio", Float(0.0, 1.0)),
        }
    ),
    "neighbours, scikit-learn": NEIGHBOURS(
        {"n_neighbors": ("n_neighbors", Integer(1, 50)), "weights": ("weights", WEIGHTS)}
    ),
    "neighbours, pipeline": NEIGHBOURS(
        {
            "knn__n_neighbors": ("n_neighbors", Integer(3, 30)),
            "knn__weights": ("weights", WEIGHTS),
            "knn__metric": ("metric", Categorical(("euclidean", "manhattan"))),
        }
    ),
    "neighbours, with components": NEIGHBOURS(
        {
            "n_components": (None, UNKNOWN),
            "kneighborsclassifier__n_neighbors": ("n_neighbors", Integer(1, 99, "log")),
            "kneighborsclassifier__metric": ("metric", METRIC),
        }
    ),
    "perceptron, scikit-learn": PERCEPTRON(
        {
            "learning_rate_init": ("learning_rate_init", Float(1e-4, 1e-1, "log")),
            "alpha": ("alpha", Float(1e-6, 1e-1, "log")),
            "batch_size": ("batch_size", Ordinal((16, 32, 64, 128))),
        },
        {**SETTLED, "n_layers": 1, "width": 100},
    ),
    "perceptron, pipeline": PERCEPTRON(
        {
            "k_best": (None, UNKNOWN),
            "mlp__learning_rate_init": ("learning_rate_init", Float(1e-4, 0.3, "log")),
            "mlp__log10_alpha": ("alpha", Float(-6.0, 0.0)),
            "mlp__activation": ("activation", Categorical(("tanh", "relu"))),
        },
        {**SETTLED, "n_layers": 2, "width": 64, "batch_size": 32},
    ),
    "perceptron, grid search": PERCEPTRON(
        {
            "hidden_layer_sizes": ("width", Categorical(("(50, 50, 50)", "(50, 50)", "(100,)"))),
            "activation": ("activation", Categorical(("tanh", "relu"))),
            "solver": ("solver", Categorical(("sgd", "adam"))),
            "alpha": ("alpha", Float(1e-5, 0.1, "log")),
        },
        {"learning_rate_init": 1e-3, "batch_size": 200, "epochs": 100},
    ),
    "network, PyTorch": NETWORK(
        {
            "lr": ("learning_rate_init", Float(1e-4, 1e-1, "log")),
            "batch_size": ("batch_size", Ordinal((16, 32, 64, 128))),
            "weight_decay": ("alpha", Float(1e-6, 1.0, "log")),
            "n_layers": ("n_layers", Integer(1, 3)),
            "hidden_dim": ("width", Ordinal((32, 64, 128, 256))),
        },
        SETTLED,
    ),
    "network, momentum": NETWORK(
        {
            "learning_rate": ("learning_rate_init", Float(1e-4, 0.5, "log")),
            "momentum": ("momentum", Float(0.0, 0.99)),
            "bs": ("batch_size", Ordinal((16, 32, 64, 128))),
            "l2": ("alpha", Float(1e-6, 1e-1, "log")),
        },
        {**SETTLED, "solver": "sgd", "n_layers": 1, "width": 100},
    ),
}

# Studies that choose between learners, each with the parameters of one of the spaces.
PIPELINES: Mapping[str, tuple[str, ...]] = {
    "svm or logistic regression": ("svm, pipeline", "logistic regression, pipeline"),
    "svm or random forest": ("svm, with components", "random forest, pipeline"),
    "neighbours or lightgbm": ("neighbours, pipeline", "lightgbm, pipeline"),
    "elastic net or xgboost": ("elastic net, pipeline", "xgboost, pipeline"),
    "neighbours or svm": ("neighbours, pipeline", "svm, pipeline"),
}


def parts_of(title: str) -> tuple[UserSpace, ...]:
    """Return the spaces of a study: one, or several of which each trial chooses one."""
    return tuple(SPACES[part] for part in PIPELINES.get(title, (title,)))
