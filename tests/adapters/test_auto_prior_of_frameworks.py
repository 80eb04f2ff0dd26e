"""`prior="auto"` where a framework gives the whole search space at once."""

import logging
import pickle
from typing import Any

import pytest
from presets import FAST
from small_spaces import told

from dre_plugins.space import Categorical, Condition, Domain, Float, Integer, SearchSpace
from dre_plugins.study.arguments import prior_from
from dre_plugins.study.ask_tell import AskTell
from dre_plugins.transfer.recognition import AutoPrior

RATE = Float(1e-3, 0.3, "log")
BOOSTING: dict[str, Domain] = {
    "lgbm-lr": RATE,
    "lgbm-num-leaves": Integer(4, 128, "log"),
    "patience": Float(0.0, 1.0),
}
LEAF = Integer(1, 50, "log")
CHOICE = SearchSpace(
    {
        "classifier": Categorical(("neighbours", "trees")),
        "knn__n_neighbors": Integer(1, 50),
        "et__min_samples_leaf": LEAF,
        "et__max_features": Float(0.1, 1.0),
        "patience": Float(0.0, 1.0),
    },
    [
        Condition("knn__n_neighbors", "classifier", ("neighbours",)),
        Condition("et__min_samples_leaf", "classifier", ("trees",)),
        Condition("et__max_features", "classifier", ("trees",)),
    ],
)
PORTFOLIO_OF = {
    "neighbours": "the portfolio of k nearest neighbours",
    "trees": "the portfolio of extremely randomised trees",
}
LINEAR_TOO = SearchSpace(
    {
        "booster": Categorical(("gblinear", "gbtree")),
        "eta": RATE,
        "max_depth": Integer(1, 15),
        "colsample_bytree": Float(0.3, 1.0),
    },
    [Condition(name, "booster", ("gbtree",)) for name in ("max_depth", "colsample_bytree")],
)
LEARNING: dict[str, Domain] = {"learning_rate": RATE, "gamma": Float(0.9, 0.999)}


def study_of(
    space: dict[str, Domain] | SearchSpace, seed: int = 0, prior: str = "auto", **given: Any
) -> AskTell:
    arguments = {"settings": FAST, **given}
    return AskTell(space, seed=seed, prior=prior_from(prior, FAST.preset), **arguments)


def test_the_learner_is_recognised_and_named(caplog: pytest.LogCaptureFixture) -> None:
    study = study_of(BOOSTING)
    with caplog.at_level(logging.INFO):
        number, first = study.ask()
    explained = str(study.explain(number))
    assert explained == "prior: the prior's choice; learnt from the portfolio of LightGBM"
    assert "prior 'lightgbm' knows lgbm-lr (there 'learning_rate')" in caplog.text
    assert "parameters of LightGBM: if not, prior='universal'" in caplog.text
    assert pickle.loads(pickle.dumps(study_of(BOOSTING))).ask()[1] == first


@pytest.mark.parametrize("space", [LEARNING, {"svm_kernel": Categorical(("own", "rbf"))}])
def test_where_no_prior_knows_anything_a_study_begins_at_random(space: dict[str, Domain]) -> None:
    study = study_of(space)
    number, _ = study.ask()
    assert study.explain(number).source == "random"


def test_the_first_trials_are_the_portfolio_whether_asked_together_or_not() -> None:
    study, alone = study_of(BOOSTING), study_of(BOOSTING)
    together = [configuration for _, configuration in study.ask_batch(9)]
    sources = [study.explain(number).source for number in range(9)]
    last = 8 - sources[::-1].index("prior")
    assert 3 <= last <= 5 and sources[: last + 1] == ["prior"] * 3 + ["random"] + ["prior"] * (
        last - 3
    )
    for place in range(last + 1):
        number, configuration = alone.ask()
        assert alone.explain(number).source == sources[place]
        assert {**configuration, "patience": 0} == {**together[place], "patience": 0}
    for number in range(4):
        alone.tell(number, float(number))
    assert alone.explain(alone.ask()[0]).source == "universal-prior"


def test_what_is_enqueued_takes_no_members_place() -> None:
    (_, first), _ = study_of(BOOSTING).ask_batch(2)
    study = study_of(BOOSTING)
    for rate in (0.2, 0.19):
        study.enqueue({"lgbm-lr": rate})
        study.ask()
    assert study.ask()[1]["lgbm-lr"] == first["lgbm-lr"]


def test_no_member_is_tried_that_was_tried_or_breaks_the_rule() -> None:
    (_, first), (_, second) = study_of(BOOSTING).ask_batch(2)
    study = study_of(BOOSTING)
    study.enqueue(first)
    study.ask()
    assert study.ask()[1]["lgbm-lr"] == second["lgbm-lr"]
    study = study_of(BOOSTING, valid=lambda found: found["lgbm-lr"] != first["lgbm-lr"])
    assert study.ask()[1]["lgbm-lr"] == second["lgbm-lr"]  # the others take its place
    assert [study.explain(study.ask()[0]).source for _ in range(3)] == ["prior", "prior", "random"]
    study = study_of(LINEAR_TOO)  # the members leave the booster open
    assert len({study.ask()[1]["eta"] for _ in range(3)}) == 3


def test_start_up_trials_are_as_many_as_the_user_says() -> None:
    study = told(study_of(BOOSTING, n_startup_trials=2), 3, lambda c: c["lgbm-lr"])
    assert [study.explain(n).source for n in range(3)] == ["prior", "prior", "model"]


def test_each_branch_begins_with_the_prior_of_its_learner() -> None:
    firsts: dict[str, list[dict[str, Any]]] = {"neighbours": [], "trees": []}
    for seed in range(2):
        study, alone = (study_of(CHOICE, seed, prior) for prior in ("auto", "universal"))
        met = set()
        for (number, found), (_, without) in zip(
            study.ask_batch(5), alone.ask_batch(5), strict=True
        ):
            is_first = found["classifier"] not in met
            met.add(found["classifier"])
            assert study.explain(number).source == ("prior" if is_first else "random")
            portfolio = PORTFOLIO_OF[found["classifier"]] if is_first else None
            assert study.explain(number).past_studies == portfolio
            if is_first:
                own = {name: value for name, value in found.items() if "__" in name}
                firsts[found["classifier"]].append(own)
                assert found["patience"] == without["patience"]
            else:
                assert found == without
        assert study.stats["prior"] == 2 and study.stats["random"] == 3
    assert [first == second for first, second in firsts.values()] == [True, True]


def test_no_branch_begins_against_a_rule_or_for_several_objectives() -> None:
    trees = SearchSpace({n: CHOICE.domains[n] for n in CHOICE.names if n.startswith("et__")})
    portfolio = AutoPrior().portfolio_on(trees)
    assert portfolio is not None
    leaf = trees.to_configuration(portfolio.units[0])["et__min_samples_leaf"]

    def other(configuration: dict[str, Any]) -> bool:
        return bool(configuration.get("et__min_samples_leaf", 0) != leaf)

    for given in ({"valid": other}, {"direction": ["minimize", "maximize"]}):
        study, alone = (study_of(CHOICE, 0, prior, **given) for prior in ("auto", "universal"))
        batches = [dict(enumerate(asked.ask_batch(5))) for asked in (study, alone)]
        of_trees = [n for n, (_, found) in batches[1].items() if found["classifier"] == "trees"]
        assert of_trees and all(batches[0][n] == batches[1][n] for n in of_trees)
