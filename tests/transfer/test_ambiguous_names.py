"""A word that learners use for different things is matched where the learners are the same."""

import pytest

from dre_plugins.space import Categorical, Domain, Float, Integer, SearchSpace
from dre_plugins.transfer.prior import Prior
from dre_plugins.transfer.spaces.alignment import align, try_align

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
