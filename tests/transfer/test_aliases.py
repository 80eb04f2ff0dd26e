"""Names that mean the same, and those that only look like it."""

import doctest
from itertools import combinations

import pytest

from dre_plugins.transfer.spaces import aliases
from dre_plugins.transfer.spaces.aliases import ROLES, TELLING, roles

XGBOOST = "eta nrounds gamma lambda alpha subsample max_depth min_child_weight colsample_bytree"
SKLEARN_API = (
    "learning_rate n_estimators gamma reg_lambda reg_alpha subsample max_depth min_child_weight"
    " colsample_bytree"
)
LIGHTGBM = (
    "learning_rate num_iterations min_gain_to_split lambda_l2 lambda_l1 bagging_fraction"
    " max_depth min_sum_hessian_in_leaf feature_fraction"
)


def test_the_examples_hold() -> None:
    assert doctest.testmod(aliases).failed == 0


RPART = "cp maxdepth minbucket minsplit"
TREES = "ccp_alpha max_depth min_samples_leaf min_samples_split"


@pytest.mark.parametrize(
    ("first", "second"), [(XGBOOST, SKLEARN_API), (XGBOOST, LIGHTGBM), (RPART, TREES)]
)
def test_libraries_agree(first: str, second: str) -> None:
    native, other = roles(first.split()), roles(second.split())
    assert native.keys() == other.keys() and len(native) >= 4
    pairs = {*zip(first.split(), second.split(), strict=True)}
    assert {(native[role], other[role]) for role in native} <= pairs


# Names of the catalogue that join words: `batchsize`, `clipnorm` and so on.
CAMEL_CASE = (
    "batchSize nRounds clipNorm colSample maxDepth minBucket minSplit nodeSize nTree subSample"
    " model.minSplit rpartMinSplit"
)


@pytest.mark.parametrize("name", CAMEL_CASE.split())
def test_joined_names_may_be_in_camel_case(name: str) -> None:
    (role,) = roles([name])
    assert roles([name.casefold().removeprefix("rpart")]).keys() == {role}


def test_company_decides() -> None:
    assert roles(["alpha", "eta"])["l1"] == "alpha"
    assert roles(["alpha", "hidden_layer_sizes"])["weight decay"] == "alpha"
    assert roles(["max_iter", "max_leaf_nodes"])["trees"] == "max_iter"
    assert roles(["max_iter", "batch_size"])["epochs"] == "max_iter"
    assert roles(["alpha", "l1_ratio"])["svm cost"] == "alpha"  # its inverse, see `change_of`


def test_a_role_with_two_players_is_nobodys() -> None:
    assert "learning rate" not in roles(["eta", "lr"])


def test_no_name_plays_two_roles() -> None:
    for role, other in combinations(ROLES.values(), 2):
        assert not role.names & other.names
        assert not role.names & other.words and not role.words & other.names
        if role.family == other.family:
            assert not role.words & other.words


def test_words_have_a_family() -> None:
    for role in ROLES.values():
        assert bool(role.words) == (role.family in TELLING)
