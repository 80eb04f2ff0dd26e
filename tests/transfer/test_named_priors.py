"""Priors by their names and paths, those that ship, and those of beliefs."""

import pickle
from typing import Any

import numpy as np
import pytest
from presets import FAST, TINY
from small_spaces import told

from dre_plugins import Recommender
from dre_plugins.recommend.search import MAX_TABLE
from dre_plugins.recommend.settings import Settings
from dre_plugins.space import Categorical, Condition, Constant, Domain, Float, Integer, Ordinal
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.study.ask_tell import AskTell
from dre_plugins.transfer.learners import LEARNERS
from dre_plugins.transfer.prior import Prior, PriorError
from dre_plugins.transfer.prior_file import CATALOGUE, names
from dre_plugins.transfer.recognition import AutoPrior
from dre_plugins.transfer.spaces.aliases import other_names
from dre_plugins.transfer.training import metadata_of_beliefs

BOOSTING: dict[str, Domain] = {
    "num_leaves": Integer(4, 128, "log"),
    "learning_rate": Float(1e-3, 0.3, "log"),
    "min_child_samples": Integer(1, 100, "log"),
}


def study_with(prior: object, space: dict[str, Domain] = BOOSTING) -> AskTell:
    return AskTell(space, seed=0, prior=prior, settings=FAST)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "loaded"),
    [
        ("auto", AutoPrior()),
        ("lightgbm", Prior.load("lightgbm")),
        (CATALOGUE / "lightgbm.safetensors", Prior.load("lightgbm")),
    ],
)
def test_a_name_stands_for_the_prior(given: object, loaded: object) -> None:
    study = study_with(given)
    number, configuration = study.ask()
    assert study.explain(number).source == "prior"
    assert configuration == study_with(loaded).ask()[1]
    assert pickle.loads(pickle.dumps(study_with(given))).ask()[1] == configuration


def test_what_is_found_by_names_keeps_from_the_ends_of_ranges_but_not_of_choices() -> None:
    trees = {
        "et_n_jobs": Constant(2),  # constants have no coordinates
        "et_max_features": Float(0.05, 0.75, "log"),
        "et_min_samples_leaf": Integer(1, 50, "log"),
        "et_criterion": Categorical((*"abcdefghijklmnopqr", "gini", "entropy")),
    }
    space = SearchSpace(trees)
    named = Prior.load("extra-trees").first_trials(space)
    found = AutoPrior().portfolio_on(space)
    assert found is not None
    numbers = [space.names.index(name) for name in space.names[:-1]]
    choice = space.names.index("et_criterion")
    assert named[:, numbers].max() > 0.9 >= found.units[:, numbers].max()
    inside = space.canonical(named.clip(0.1, 0.9))[:, numbers]
    np.testing.assert_array_equal(found.units[:, numbers], inside)
    np.testing.assert_array_equal(found.units[:, choice], named[:, choice])


def test_members_between_listed_values_are_tried_once() -> None:
    space = {"learning_rate_init": Float(1e-4, 0.1, "log"), "batch_size": Ordinal([32, 64, 128])}
    study = study_with("auto", {**space, "alpha": Float(1e-6, 1.0, "log")})
    for value in range(3):
        number, _ = study.ask()
        assert study.explain(number).source == "prior"
        study.tell(number, value)


def test_members_are_of_the_kernel_that_their_prior_was_evaluated_with() -> None:
    kernels = Categorical(("linear", "poly", "rbf"))
    space = {"svc__C": Float(0.01, 100.0, "log"), "svc__gamma": Float(1e-4, 1.0, "log")}
    for prior, n_members in (("auto", 3), ("svm", 1)):
        study = study_with(prior, {"svc__kernel": kernels, **space})
        assert [study.ask()[1]["svc__kernel"] for _ in range(n_members)] == ["rbf"] * n_members


def test_a_list_may_have_names_and_none() -> None:
    arguments: Any = {"prior": ["lightgbm", None], "settings": Settings(preset=TINY)}
    study = AskTell(BOOSTING, direction=["minimize", "minimize"], seed=0, **arguments)
    assert study.explain(study.ask()[0]).source == "prior"


def test_an_unknown_name_and_what_is_no_prior_are_refused() -> None:
    with pytest.raises(PriorError, match=r"must be one of .*'xgboost'.*got 'xgbost'"):
        study_with("xgbost")
    for refusing in (study_with, Prior.load):
        with pytest.raises(PriorError, match=r"the path of a file, got 3; .*a Prior, and a list"):
            refusing(3)


# ---- those that ship: small, free, and with a card

# Of YAHPO Gym's surrogates: where each is from, the command that makes it, and its evaluations.
SURROGATES = {
    "decision-tree": ("YAHPO", "dre_bench.priors", 100_000),
    "xgboost": ("YAHPO", "dre_bench.priors", 100_000),
    "network": ("LCBench", "dre_bench.learner_priors.networks", 1_000),
}
MEASURED = [name for name in names() if name not in SURROGATES]
MOST_BYTES = 4_000_000


def test_priors_of_common_learners_ship():
    recognised = {learner.prior or key for key, learner in LEARNERS.items()}
    assert recognised | {*SURROGATES} <= {*names()} <= recognised | {*LEARNERS}
    assert sum(path.stat().st_size for path in CATALOGUE.iterdir()) <= MOST_BYTES


@pytest.mark.parametrize("name", names())
def test_a_shipped_prior_is_small_and_tells_where_it_is_from(name):
    assert (CATALOGUE / f"{name}.safetensors").stat().st_size < 1_000_000
    card = Prior.load(name).card
    assert card.licence == "Apache-2.0" and card.created and card.defaults
    measured = ("benchmarks/data/learner_evaluations", "dre_bench.learner_priors", 100)
    source, command, n_evaluations = SURROGATES.get(name, measured)
    assert source in card.source and command in card.rebuild
    assert card.n_evaluations > n_evaluations


@pytest.mark.parametrize("name", MEASURED)
def test_a_measured_prior_has_beaten_its_rivals_and_begins_with_its_favourite(name):
    prior = Prior.load(name)
    figures = prior.card.validation
    assert figures["regret of the portfolio"] < figures["regret of default and random trials"]
    assert figures["data sets held out"] >= 9 and len(prior.favourites) == 1
    assert prior.portfolio is not None and len(prior.portfolio) == 5
    if prior.space.assignments(MAX_TABLE) is not None:
        return  # of a table, the weights choose
    _, first = AskTell(prior.space, seed=0, prior=prior).ask()
    assert first == pytest.approx(prior.space.to_configuration(prior.favourites[0]))


@pytest.mark.parametrize("name", names())
def test_every_other_name_that_is_shown_is_understood(name):
    """`dre priors show` lists what else a parameter may be called, beside the others."""
    prior = Prior.load(name)
    domains = prior.space.domains
    for parameter, others in other_names(domains).items():
        for other in others:
            study = {other if n == parameter else n: domains[n] for n in domains}
            links = prior.align(SearchSpace(study)).links
            assert parameter in {link.target for link in links if link.source == other}, other


def test_a_shipped_prior_knows_the_names_of_other_interfaces():
    prior = Prior.load("xgboost")
    renamed = {"eta": "learning_rate", "nrounds": "n_estimators", "lambda": "reg_lambda"}
    kept = ("max_depth", "subsample", "min_child_weight")
    space = SearchSpace(
        {
            **{new: prior.space.domains[old] for old, new in renamed.items()},
            **{name: prior.space.domains[name] for name in kept},
        }
    )
    links = {link.source: link.target for link in prior.align(space).links}
    assert {links[new]: new for new in renamed.values()} == renamed
    suggestion = Recommender(space, seed=0, prior=prior).suggest((), index=0)[0]
    assert suggestion.source == "prior" and set(suggestion.configuration) == set(space.domains)


# ---- those of beliefs

SPACE = SearchSpace(
    {
        "kind": Categorical(("a", "b")),
        "x": Float(0.0, 1.0),
        "rate": Float(1e-4, 1.0, "log"),
        "depth": Integer(1, 9),
    },
    [Condition("depth", "kind", ("b",))],
)


def test_what_is_near_the_favoured_is_better() -> None:
    (task,) = metadata_of_beliefs(SPACE, [{"x": 0.25, "rate": 0.01}])
    distance = np.abs(task.units[:, 1] - 0.25) + np.abs(task.units[:, 2] - 0.5)
    assert np.corrcoef(distance, task.values)[0, 1] < -0.99
    assert task.values.max() == 0.0
    # Nothing is said of the others.
    assert set(task.units[task.values > -0.2, 0]) == {0.25, 0.75}


def test_the_nearest_of_several_counts() -> None:
    (task,) = metadata_of_beliefs(SPACE, [{"x": 0.0}, {"x": 1.0}])
    middle = np.abs(task.units[:, 1] - 0.5) < 0.05
    assert task.values[middle].max() < task.values[~middle].max() == 0.0


def test_a_study_begins_where_good_values_are_expected() -> None:
    prior = Prior.of_beliefs(SPACE, [{"kind": "b", "x": 0.9, "rate": 0.5}])
    first = [AskTell(SPACE, seed=seed, prior=prior).ask()[1] for seed in range(3)]
    assert all(c["kind"] == "b" and abs(c["x"] - 0.9) < 0.1 and c["rate"] > 0.2 for c in first)
    domains = {"x": Float(0.0, 1.0)}
    _, found = AskTell(domains, seed=0, prior=Prior.of_beliefs(domains, [{"x": 0.3}])).ask()
    assert abs(found["x"] - 0.3) < 0.1


def test_a_wrong_belief_is_given_up() -> None:
    prior = Prior.of_beliefs({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}, [{"x": 0.0, "y": 0.0}])
    study = AskTell(prior.space, direction="maximize", seed=0, prior=prior)
    assert told(study, 25, lambda c: c["x"] + c["y"]).best.value > 1.9


@pytest.mark.parametrize(
    ("configurations", "match"),
    [
        ([], "configurations must be at least one"),
        ({"x": 0.5}, "configurations must be at least one"),
        ([{"z": 1.0}], r"configurations must be made of"),
        ([{"x": 2.0}], "x must be in"),
        ([{"x": 0.5}, {}], r"configurations must be of at least one of \['kind', 'x', .*got {}"),
    ],
)
def test_beliefs_must_be_in_the_space(configurations, match) -> None:
    with pytest.raises(ValueError, match=match):
        Prior.of_beliefs(SPACE, configurations)
