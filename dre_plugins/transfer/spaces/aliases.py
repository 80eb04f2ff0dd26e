"""Names that mean the same hyper-parameter.

A role is the function of a parameter; its names are those of the learners' documentation. If two
learners use a word for different things, or measure the same thing differently, the word is left
out or counts for one family of learners only. Left out on purpose:

- CatBoost's ``l2_leaf_reg``: it is scaled by the mean weight of the rows, ``lambda`` is not.
- ``max_features`` and ``mtry``: a share, a word or a count, depending on the library.
- ranger's ``min.node.size``: the size below which a node is not split, not that of a leaf.
- R gbm's ``interaction.depth``: it counts splits, not levels.
- ``n_hidden``: the number of hidden layers as often as their width.
- ``warmup_steps`` and ``warmup_ratio``: their meaning depends on the length of the run.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from dre_plugins.transfer.spaces.prefixes import forms_of, learner_of_prefix, normalised


@dataclass(frozen=True)
class Role:
    """The function of a parameter, whatever its name."""

    names: frozenset[str]  # normalised names that have the role in every learner
    # names that have it in one family of learners, and mean something else in others
    words: frozenset[str] = frozenset()
    family: str = ""  # that family, a key of `TELLING`


def _role(names: str, words: str = "", family: str = "") -> Role:
    return Role(frozenset(names.split()), frozenset(words.split()), family)


# What libraries take as a share or as a count. Of other names, 1 and 1.0 are the same value.
SHARES_OR_COUNTS = frozenset(
    "max_features mtry max_samples min_samples_split minsplit min_samples_leaf min_child_samples "
    "min_data_in_leaf".split()
)
# Limits of the size of a tree, of which some words and numbers up to 0 mean that there is none.
LIMITS = frozenset("max_depth max_tree_depth max_leaves max_leaf_nodes".split())

# Sources: the parameter pages of XGBoost 2.1, LightGBM 4.5, CatBoost 1.2, scikit-learn 1.5, and
# the R packages xgboost, rpart, gbm, ranger, randomForest and e1071 (as in mlr's rbv2).
ROLES: Mapping[str, Role] = {
    "learning rate": _role(
        "eta learning_rate lr learning_rate_init init_lr initial_lr base_lr shrinkage"
        " shrinkage_rate"
    ),
    "trees": _role(
        "nrounds n_rounds num_round num_rounds num_boost_round n_estimators num_iterations"
        " num_iteration iterations num_trees n_trees ntree ntrees",
        "n_iter max_iter",
        "boosting",
    ),
    "tree depth": _role("max_depth maxdepth max_tree_depth", "depth", "boosting"),
    "leaves": _role("num_leaves max_leaves max_leaf_nodes num_leaf"),
    # The sums of second derivatives and of rows agree for squared error only: two roles.
    "leaf weight": _role(
        "min_child_weight min_sum_hessian_in_leaf min_sum_hessian_per_leaf min_sum_hessian"
        " min_hessian"
    ),
    "leaf rows": _role(
        "min_samples_leaf minbucket min_data_in_leaf min_data_per_leaf min_child_samples nodesize"
    ),
    "split rows": _role("min_samples_split minsplit"),
    # rpart divides by the root's impurity, which is between 0.1 and 1 for classes: less than
    # one step on the scale on which both are searched.
    "pruning": _role("cp ccp_alpha"),
    # XGBoost's gain is half of LightGBM's, which is nothing on a log scale either.
    "split gain": _role("min_split_loss min_gain_to_split min_split_gain", "gamma", "boosting"),
    "l1": _role("reg_alpha lambda_l1 l1_regularization", "alpha", "boosting"),
    "l2": _role("reg_lambda lambda_l2 l2_regularization", "lambda", "boosting"),
    "rows of a tree": _role(
        "subsample sub_row bagging bagging_fraction sample_fraction max_samples"
    ),
    "columns of a tree": _role("colsample_bytree colsample feature_fraction sub_feature"),
    "columns of a level": _role("colsample_bylevel rsm"),
    "columns of a node": _role("colsample_bynode feature_fraction_bynode sub_feature_bynode"),
    "bins": _role("max_bin max_bins border_count"),
    "leaf value": _role("max_delta_step max_tree_output max_leaf_output"),
    "trees dropped": _role("rate_drop", "drop_rate", "boosting"),
    # `prefixes.change_of` turns the strength of a penalty into the cost, which is its inverse.
    "svm cost": _role("c cost", "alpha lambda reg_param", "linear"),
    "weight decay": _role("weight_decay wd l2_penalty", "alpha l2 l2_reg", "network"),
    # Equal on one device, on which small networks are trained.
    "batch": _role(
        "batch_size batchsize minibatch_size mini_batch_size train_batch_size bs"
        " per_device_train_batch_size"
    ),
    "momentum": _role("momentum sgd_momentum nesterov_momentum"),
    "epochs": _role(
        "epochs n_epochs num_epochs max_epochs num_train_epochs", "max_iter", "network"
    ),
    "dropout": _role(
        "dropout dropout_rate dropout_prob dropout_p p_dropout max_dropout hidden_dropout"
        " hidden_dropout_prob",
        "drop_rate",
        "network",
    ),
    "beta 1": _role("beta1 beta_1 adam_beta1 adam_beta_1"),
    "beta 2": _role("beta2 beta_2 adam_beta2 adam_beta_2"),
    "layers": _role(
        "n_layers num_layers n_hidden_layers num_hidden_layers hidden_layers",
        "layers depth",
        "network",
    ),
    "layer width": _role(
        "hidden_size hidden_dim hidden_units n_units num_units max_units layer_size"
        " hidden_width hidden_features n_hidden_units num_hidden_units hidden_layer_size"
        " hidden_layer_sizes",
        "units width",
        "network",
    ),
    "gradient clip": _role(
        "grad_clip clip_grad clip_grad_norm grad_clip_norm max_grad_norm gradient_clipping"
        " gradient_clip_val clipnorm"
    ),
    "optimizer": _role("optimizer optimiser optim", "solver", "network"),
    "activation": _role("activation activation_function activation_fn act_fn nonlinearity"),
}

# Names that identify a family of learners.
TELLING: Mapping[str, frozenset[str]] = {
    "boosting": frozenset(
        "eta nrounds num_boost_round booster num_leaves min_child_weight min_child_samples"
        " min_data_in_leaf colsample_bytree colsample_bylevel feature_fraction"
        " bagging_fraction reg_alpha reg_lambda lambda_l1 lambda_l2 l2_leaf_reg"
        " l2_regularization min_split_loss min_gain_to_split rate_drop skip_drop"
        " random_strength bagging_temperature max_leaf_nodes max_bin max_bins"
        " scale_pos_weight".split()
    ),
    "network": frozenset(
        "hidden_layer_sizes learning_rate_init batch_size per_device_train_batch_size"
        " weight_decay momentum dropout dropout_rate max_dropout optimizer epochs n_epochs"
        " num_epochs max_epochs n_layers num_layers hidden_size hidden_dim hidden_units"
        " n_units max_units activation beta_1 beta_2 beta1 beta2".split()
    ),
    "svm": frozenset("c cost kernel degree coef0".split()),
    "linear": frozenset("penalty l1_ratio".split()),
}

# The families of learners that a prefix names, by keys of `learners.LEARNERS`.
FAMILY_OF: Mapping[str | None, str] = {
    **dict.fromkeys(("catboost", "hist-gradient-boosting", "lightgbm", "xgboost"), "boosting"),
    **dict.fromkeys(("mlp", "network"), "network"),
    "svm": "svm",
}

_AMBIGUOUS = frozenset[str]().union(*(role.words for role in ROLES.values()))


def is_ambiguous(name: str) -> bool:
    """Return whether one family of learners uses a word for one thing, another for something else.

    ``gamma`` is a penalty of boosted trees and the width of a kernel of support vectors.
    """
    return not _AMBIGUOUS.isdisjoint(forms_of(name))


def families(names: Iterable[str]) -> frozenset[str]:
    """Return the families of learners that parameters belong to, by names that identify them.

    If a prefix names the learner, names without a prefix belong to other parts of a pipeline.

    >>> sorted(families(["C", "gamma"])), sorted(families(["gamma"])), families(["svc_gamma"])
    (['svm'], [], frozenset({'svm'}))
    """
    names = list(names)
    names = [name for name in names if learner_of_prefix(name)] or names
    forms = set[str]().union(*(forms_of(name) for name in names))
    families = {family for family, telling in TELLING.items() if telling & forms}
    families |= {FAMILY_OF.get(learner_of_prefix(name), "") for name in names}
    return frozenset(families - {""})


def roles(names: Iterable[str], learners: Collection[str] | None = None) -> dict[str, str]:
    """Return the parameter that has each known role: role to name.

    A role that several names could have is left out; a word with several meanings counts only if
    the other names belong to one family of learners, and that is the word's. These families are
    `learners`, or those that the names identify.

    >>> roles(["eta", "gamma"]), roles(["C", "gamma"])
    ({'learning rate': 'eta', 'split gain': 'gamma'}, {'svm cost': 'C'})
    """
    names = list(names)
    forms = {name: forms_of(name) for name in names}
    learners = set(families(names) if learners is None else learners)
    name_of: dict[str, str] = {}
    for title, role in ROLES.items():
        fitting = role.names | role.words if learners == {role.family} else role.names
        candidates = [name for name, form in forms.items() if form & fitting]
        if len(candidates) == 1:
            name_of[title] = candidates[0]
    return name_of


def other_names(names: Iterable[str]) -> dict[str, list[str]]:
    """Return what else each parameter of a search space may be called in a study.

    >>> other_names(["C", "gamma"]), other_names(["C", "penalty"])
    ({'C': ['cost']}, {'C': ['alpha', 'cost', 'lambda', 'reg_param']})
    """
    names = list(names)
    learners = families(names)
    others = {}
    for title, name in roles(names).items():
        role = ROLES[title]
        meanings = role.names | role.words if role.family in learners else role.names
        others[name] = sorted(meanings - {normalised(name)})
    return others
