"""The priors that ship: small, free, and with a card."""

import pytest

from dre_plugins import AskTell, Prior, Recommender
from dre_plugins.recommend.search import MAX_TABLE
from dre_plugins.space import SearchSpace
from dre_plugins.transfer.learners import LEARNERS
from dre_plugins.transfer.prior_file import CATALOGUE, names
from dre_plugins.transfer.spaces.aliases import other_names

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
