"""The priors that ship: small, free, and good on tasks that they have never seen."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from dre_plugins import Prior, Recommender
from dre_plugins.benchmarks.tasks import load_extract
from dre_plugins.engine import PRESETS
from dre_plugins.recommend.ensemble.mixture import Mixture, Part
from dre_plugins.space import SearchSpace
from dre_plugins.transfer.prior import CATALOGUE, names

SCENARIOS = {"xgboost": "rbv2_xgboost", "decision-tree": "rbv2_rpart"}


def test_these_priors_ship():
    assert names() == sorted(SCENARIOS)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_shipped_prior_is_small_and_tells_where_it_is_from(name):
    assert (CATALOGUE / f"{name}.safetensors").stat().st_size < 1_000_000
    card = Prior.load(name).card
    assert card.licence == "Apache-2.0"
    assert "YAHPO" in card.source and "dre_plugins.benchmarks.priors" in card.rebuild
    assert card.n_evaluations > 100_000 and card.created


def samples_of(name: str):
    return [
        sample
        for sample in load_extract("data/yahpo_extract.npz")
        if sample.scenario == SCENARIOS[name]
    ]


def configurations_of(sample) -> list[dict]:
    rows = []
    for row in sample.values.tolist():
        known = {
            p: value for p, value in zip(sample.parameters, row, strict=True) if value == value
        }
        rows.append(
            {p: sample.choices[p][int(v)] if p in sample.choices else v for p, v in known.items()}
        )
    return rows


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_shipped_prior_has_not_seen_the_test_tasks(name):
    assert not {str(sample.task) for sample in samples_of(name)} & set(Prior.load(name).card.tasks)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_shipped_prior_ranks_configurations_of_new_tasks(name):
    prior = Prior.load(name)
    part = Part(prior.ensemble, prior.space.features, PRESETS["default"].from_prior)
    agreements, places = [], []
    for sample in samples_of(name):
        units = prior.space.to_units(configurations_of(sample))
        ranks = Mixture([part], units).ranks(units).mean(0).numpy()
        accuracy = sample.outputs["acc"]
        agreements.append(spearmanr(-ranks, accuracy).statistic)
        places.append((accuracy > accuracy[ranks.argmin()]).mean())
    assert np.mean(agreements) > 0.4
    assert np.mean(np.array(places) < 0.5) >= 0.75
    assert np.median(places) < 0.1


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
