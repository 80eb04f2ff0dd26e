"""The priors that ship: small, free, and with a card."""

import pytest

from dre_plugins import Prior, Recommender
from dre_plugins.space import SearchSpace
from dre_plugins.transfer.prior_file import CATALOGUE, names

NAMES = ("decision-tree", "xgboost")


def test_these_priors_ship():
    assert names() == [*NAMES]


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_prior_is_small_and_tells_where_it_is_from(name):
    assert (CATALOGUE / f"{name}.safetensors").stat().st_size < 1_000_000
    card = Prior.load(name).card
    assert card.licence == "Apache-2.0"
    assert "YAHPO" in card.source and "dre_bench.priors" in card.rebuild
    assert card.n_evaluations > 100_000 and card.created


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
