"""Names that mean the same, those that only look like it, and those of several meanings."""

import doctest
from itertools import combinations

import pytest

from dre_plugins.space import Categorical, Domain, Float, Integer, SearchSpace
from dre_plugins.transfer.prior import Prior
from dre_plugins.transfer.spaces import aliases
from dre_plugins.transfer.spaces.aliases import ROLES, TELLING, roles
from dre_plugins.transfer.spaces.alignment import align, try_align

NATIVE = "eta nrounds gamma lambda alpha subsample max_depth min_child_weight colsample_bytree"
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
    ("first", "second"), [(NATIVE, SKLEARN_API), (NATIVE, LIGHTGBM), (RPART, TREES)]
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


RATE, WIDTH, COST = Float(1e-3, 1.0, "log"), Float(1e-5, 1.0, "log"), Float(1e-2, 1e2, "log")
ROUNDS = Integer(5, 500, "log")
XGBOOST: dict[str, Domain] = {
    "eta": RATE,
    "nrounds": ROUNDS,
    "gamma": WIDTH,
    "alpha": WIDTH,
    "max_depth": Integer(1, 15),
    "booster": Categorical(("gbtree", "dart")),
}


def links(source: dict[str, Domain], target: dict[str, Domain]) -> dict[str, str]:
    alignment = try_align(SearchSpace(source), SearchSpace(target))
    found = {} if alignment is None else {link.source: link.target for link in alignment.links}
    back = try_align(SearchSpace(target), SearchSpace(source))
    assert found == {} if back is None else {link.target: link.source for link in back.links}
    return found


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        # Support vectors: the width of a kernel is no penalty of a tree.
        ({"C": COST, "gamma": WIDTH}, {}),
        ({"svc__C": COST, "svc__gamma": WIDTH}, {}),
        ({"kernel": Categorical(("rbf", "poly")), "gamma": WIDTH}, {}),
        # Both in one space: whose gamma it is cannot be told.
        ({"C": COST, "gamma": WIDTH, "eta": RATE}, {"eta": "eta"}),
        # Logistic regression: steps of a solver are no trees.
        ({"C": COST, "max_iter": ROUNDS}, {}),
        # A network: decay of weights is no penalty of leaves.
        (
            {"alpha": WIDTH, "learning_rate_init": RATE, "max_iter": ROUNDS},
            {"learning_rate_init": "eta"},
        ),
        # Boosted trees of scikit-learn, whole and as far as a define-by-run trial has asked.
        (
            {"learning_rate": RATE, "max_iter": ROUNDS, "l2_regularization": WIDTH},
            {"learning_rate": "eta", "max_iter": "nrounds"},
        ),
        (
            {"learning_rate": RATE, "max_iter": ROUNDS},
            {"learning_rate": "eta", "max_iter": "nrounds"},
        ),
        ({"max_iter": ROUNDS}, {}),
        # Boosted trees whose names give nothing away but the learning rate.
        ({"learning_rate": RATE, "gamma": WIDTH}, {"learning_rate": "eta", "gamma": "gamma"}),
        ({"eta": RATE, "gamma": WIDTH}, {"eta": "eta", "gamma": "gamma"}),
    ],
)
def test_beside_a_prior_of_boosted_trees(
    space: dict[str, Domain], expected: dict[str, str]
) -> None:
    assert links(space, XGBOOST) == expected


@pytest.mark.parametrize("n_asked", [1, 2, 3])
def test_a_study_matches_its_own_kind_from_the_first_parameter_on(n_asked: int) -> None:
    svc = {"gamma": WIDTH, "C": COST, "kernel": Categorical(("rbf", "poly"))}
    asked = dict(list(svc.items())[:n_asked])
    assert links(asked, svc) == {name: name for name in asked}
    pipeline = {**XGBOOST, **svc, "learner": Categorical(("svc", "xgboost"))}
    assert links(asked, pipeline) == {name: name for name in asked}


def test_what_stands_beside_a_parameter_tells_what_it_is() -> None:
    prior = Prior.load("xgboost")
    assert not prior.knows("gamma", {"C": COST, "gamma": WIDTH})
    assert prior.knows("gamma", {"eta": RATE, "gamma": WIDTH})
    assert prior.knows("max_iter", {"learning_rate": RATE, "max_iter": ROUNDS})
    assert not prior.knows("max_iter", {"C": COST, "max_iter": ROUNDS})


def test_a_summary_names_what_is_known_and_what_is_not() -> None:
    space = SearchSpace({"max_depth": Integer(1, 9), "learning_rate": RATE, "C": COST})
    alignment = align(space, SearchSpace(XGBOOST))
    assert alignment is not None
    assert alignment.summary() == "knows max_depth, learning_rate (there 'eta'); not: C"
    listed = SearchSpace({"hidden_layer_sizes": Categorical(("64", "64_32"))})
    counted = SearchSpace({"n_layers": Integer(1, 4), "width": Integer(16, 256)})
    known = "knows hidden_layer_sizes (there 'n_layers' and 'width'); not: none"
    assert align(listed, counted).summary() == known
