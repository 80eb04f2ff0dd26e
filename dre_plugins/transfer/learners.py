"""Search spaces of common learners: names and ranges of parameters, and names that exclude them.

The weight of a name says how far it identifies the learner: 2 or more if few others have it, 1 if
several do, and less if most do. Sources: the parameter pages of XGBoost 2.1, LightGBM
4.5, CatBoost 1.2 and scikit-learn 1.5, and rpart; for networks the tutorials of PyTorch, Keras,
Lightning, Transformers and Optuna.
"""

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

SURE = 3.0
WEIGHTS = {"sure": SURE, "strong": 2.0, "weak": 1.0, "common": 0.5}


@dataclass(frozen=True)
class Learner:
    """Describe the search spaces of a learner, by normalised names that spaces separate."""

    title: str  # name of the learner in texts
    prefixes: str  # prefixes of parameters that name the learner
    _: KW_ONLY
    sure: str = ""  # names of each weight, see `WEIGHTS`
    strong: str = ""
    weak: str = ""
    common: str = ""
    needs: str = ""  # names of which a search space must have at least one; empty: none needed
    foreign: str = ""  # names that no search space of the learner has
    prior: str = ""  # name of its prior if it differs from the learner's
    least_rate: float = 0.0  # smallest upper end of the range of a learning rate
    needs_prefix: bool = False  # whether only a prefix tells it from a commoner learner

    @cached_property
    def weights(self) -> dict[str, float]:
        """Return the weight of each name."""
        return {name: WEIGHTS[kind] for kind in WEIGHTS for name in getattr(self, kind).split()}


_TREES = "max_depth min_samples_split min_samples_leaf"
_OF_FORESTS = "criterion class_weight max_leaf_nodes min_impurity_decrease ccp_alpha"

LEARNERS: Mapping[str, Learner] = {
    "catboost": Learner(
        "CatBoost",
        "catboost cb cat catboostclassifier catboostregressor",
        strong="l2_leaf_reg border_count bagging_temperature random_strength bootstrap_type"
        " rsm one_hot_max_size leaf_estimation_iterations",
        weak="iterations depth learning_rate",
        common="lr subsample colsample_bylevel min_data_in_leaf grow_policy eta n_estimators",
        foreign="width batch_size n_layers epochs",
    ),
    "decision-tree": Learner(
        "a decision tree",
        "dt cart rpart decision_tree decisiontree decisiontreeclassifier decisiontreeregressor",
        strong="splitter ccp_alpha cp minsplit minbucket",
        weak=f"{_TREES} maxdepth",
        common="max_features max_leaf_nodes criterion class_weight min_impurity_decrease",
        foreign="n_estimators learning_rate lr eta subsample bootstrap max_samples max_iter",
        prior="decision-tree-small",
    ),
    "elastic-net": Learner(
        "an elastic net",
        "enet elasticnet elastic_net",
        strong="l1_ratio alpha",
        common="max_iter tol selection",
        needs="l1_ratio",
        foreign="c penalty learning_rate eta0 solver loss gamma",
    ),
    "extra-trees": Learner(
        "extremely randomised trees",
        "et extra_trees extratrees extratreesclassifier extratreesregressor",
        weak=f"n_estimators {_TREES} max_features bootstrap max_samples",
        common=_OF_FORESTS,
        foreign="learning_rate lr eta subsample",
        # The prior of random forests serves these trees, too (lab/2026-11-26-public-spaces.md).
        needs_prefix=True,
    ),
    "hist-gradient-boosting": Learner(
        "histogram gradient boosting",
        "hgb histgb hist_gradient_boosting histgradientboosting"
        " histgradientboostingclassifier histgradientboostingregressor",
        strong="l2_regularization max_bins",
        weak="max_iter max_leaf_nodes min_samples_leaf",
        common="learning_rate lr max_depth max_features",
        needs="l2_regularization max_bins max_leaf_nodes max_iter",
        foreign="n_estimators subsample",
    ),
    "k-nearest-neighbours": Learner(
        "k nearest neighbours",
        "knn kneighbors kneighborsclassifier kneighborsregressor nearest_neighbors",
        strong="n_neighbors",
        weak="weights metric p leaf_size",
        needs="n_neighbors",
        foreign="n_components min_dist perplexity contamination",
    ),
    "lightgbm": Learner(
        "LightGBM",
        "lgb lgbm lightgbm lgbmclassifier lgbmregressor",
        strong="num_leaves min_child_samples min_data_in_leaf bagging_fraction bagging_freq"
        " feature_fraction subsample_freq lambda_l1 lambda_l2 min_gain_to_split min_split_gain"
        " min_sum_hessian_in_leaf path_smooth cat_smooth",
        weak="colsample_bytree reg_alpha reg_lambda",
        common="learning_rate lr n_estimators num_iterations num_boost_round max_depth"
        " subsample min_child_weight max_bin boosting boosting_type eta scale_pos_weight",
    ),
    "logistic-regression": Learner(
        "logistic regression",
        "logreg logistic logit lr logistic_regression logisticregression",
        strong="c penalty l1_ratio",
        weak="solver class_weight",
        common="max_iter tol fit_intercept",
        needs="c",
        foreign="kernel gamma epsilon degree coef0 learning_rate nu",
    ),
    "mlp": Learner(
        "a multilayer perceptron",
        "mlp mlpclassifier mlpregressor",
        sure="hidden_layer_sizes learning_rate_init",
        weak="alpha solver activation batch_size",
        common="momentum max_iter beta_1 beta_2 learning_rate epochs n_layers width",
        foreign="gamma n_estimators c weight_decay dropout dropout_rate optimizer",
    ),
    "network": Learner(
        "a neural network",
        "nn net network dnn neural_network neural_net torch keras",
        strong="weight_decay dropout dropout_rate dropout_prob max_dropout hidden_size"
        " hidden_dim hidden_units n_units num_units max_units optimizer",
        weak="batch_size batchsize bs per_device_train_batch_size train_batch_size momentum"
        " sgd_momentum drop_rate n_layers num_layers n_hidden_layers num_hidden_layers"
        " layer_size activation width hidden_layer_sizes",
        common="learning_rate lr init_lr initial_lr base_lr epochs n_epochs num_epochs"
        " num_train_epochs wd l2 units layers depth grad_clip max_grad_norm warmup_ratio"
        " warmup_steps",
        needs="batch_size batchsize bs per_device_train_batch_size train_batch_size momentum"
        " sgd_momentum weight_decay dropout dropout_rate dropout_prob max_dropout drop_rate",
        foreign="gamma tau gae_lambda ent_coef clip_range buffer_size n_estimators max_depth"
        " num_leaves c kernel l2_leaf_reg iterations learning_rate_init"
        " lora_r lora_alpha lr_encoder lr_backbone lr_head encoder_lr backbone_lr head_lr"
        " n_heads num_heads heads nhead d_model embed_dim hidden_channels",
        least_rate=1e-3,  # smaller rates are for fine-tuning, which was not evaluated
    ),
    "random-forest": Learner(
        "a random forest",
        "rf forest random_forest randomforest randomforestclassifier randomforestregressor",
        strong="bootstrap max_samples",
        weak=f"n_estimators {_TREES} max_features",
        common=_OF_FORESTS,
        foreign="learning_rate lr eta subsample contamination",
    ),
    "svm": Learner(
        "a support vector machine",
        "svm svc svr",
        strong="c kernel degree coef0",
        weak="gamma epsilon",
        common="class_weight shrinking tol",
        needs="c",
        foreign="penalty l1_ratio solver learning_rate n_estimators",
    ),
    "xgboost": Learner(
        "XGBoost",
        "xgb xgboost xgbclassifier xgbregressor",
        strong="booster colsample_bylevel colsample_bynode nrounds min_split_loss"
        " num_parallel_tree rate_drop skip_drop max_delta_step sample_type normalize_type"
        " min_child_weight",
        weak="eta grow_policy tree_method max_leaves gamma colsample_bytree reg_alpha"
        " reg_lambda lambda alpha scale_pos_weight",
        common="learning_rate lr n_estimators num_boost_round max_depth subsample max_bin",
        needs="max_depth max_leaves eta learning_rate",
        prior="xgboost-small",
    ),
}

RATES = frozenset("learning_rate lr eta learning_rate_init init_lr initial_lr base_lr".split())

# Range of a parameter of this name in every learner; with other numbers it means something else.
RANGES: Mapping[str, tuple[float, float]] = {
    name: bounds
    for bounds, names in {
        (0.0, 2.0): " ".join(sorted(RATES)),
        (0.0, 1.0): "subsample bagging_fraction feature_fraction colsample_bytree"
        " colsample_bylevel colsample_bynode rsm l1_ratio dropout dropout_rate max_dropout"
        " momentum",
        (1.0, 1e6): "n_estimators num_boost_round num_iterations iterations nrounds batch_size",
        (0.0, math.inf): "n_neighbors min_samples_leaf c alpha reg_alpha reg_lambda",
        (-1.0, 1000.0): "max_depth depth",
        (2.0, 1e5): "num_leaves",
    }.items()
    for name in names.split()
}

# Choices of parameters whose names several learners use: a study must have at least one of them.
CHOICES: Mapping[tuple[str, str], frozenset[str]] = {
    ("mlp", "solver"): frozenset({"adam", "sgd"}),
    ("logistic-regression", "solver"): frozenset(
        {"liblinear", "saga", "sag", "newton-cg", "newton-cholesky"}
    ),
    ("k-nearest-neighbours", "weights"): frozenset({"uniform", "distance"}),
    ("svm", "kernel"): frozenset({"rbf"}),
}
