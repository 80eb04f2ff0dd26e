"""Spaces of tutorials: what they are recognised as, and what their parameters are taken for."""

from __future__ import annotations

import math

import pytest

from dre_bench.learner_evaluations.spaces import space_of
from dre_bench.learner_priors.tasks import search_space
from dre_bench.learner_priors.user_spaces import SPACES
from dre_plugins.space import Float, SearchSpace
from dre_plugins.transfer.learners import LEARNERS
from dre_plugins.transfer.prior import Prior
from dre_plugins.transfer.recognition import recognised, scores_of
from dre_plugins.transfer.spaces.alignment import align

# What the prior of networks calls the parameters of scikit-learn's perceptron.
OF_NETWORKS = {
    "learning_rate_init": "learning_rate",
    "alpha": "weight_decay",
    "n_layers": "num_layers",
    "width": "max_units",
}


@pytest.mark.parametrize("title", SPACES)
def test_what_a_space_is_recognised_as(title: str) -> None:
    space = SPACES[title]
    assert recognised(space.domains) == space.key, scores_of(space.domains)


@pytest.mark.parametrize("title", SPACES)
def test_what_its_parameters_are_taken_for(title: str) -> None:
    space = SPACES[title]
    theirs = search_space(space_of(space.learner, space.tasks[0]))
    names = dict(space.names)
    if space.key == "network":
        theirs = Prior.load("network").space
        names = {name: OF_NETWORKS.get(other, other) for name, other in names.items()}
    found = align(SearchSpace(space.domains), theirs)
    assert {link.source: link.target for link in found.links} == names


def test_numbers_of_another_scale_are_the_same_values() -> None:
    space = SPACES["svm, by logarithms"]
    found = space.configuration({"log10_C": 2.0, "log10_gamma": -3.0})
    assert found["C"] == pytest.approx(100.0) and found["gamma"] == pytest.approx(1e-3)
    flags = SPACES["random forest, scikit-learn"].configuration({"bootstrap": True})
    assert flags == {"n_estimators": 100, "bootstrap": "true"}


def test_each_learner_has_three_spaces_and_some_have_what_no_prior_knows() -> None:
    keys = [space.key for space in SPACES.values()]
    few = {key for key in LEARNERS if keys.count(key) < 3}
    assert few == {"network"} and keys.count("network") == 2
    unknown = [t for t, space in SPACES.items() if {*space.names} != {*space.domains}]
    assert len(unknown) >= 10
    for space in SPACES.values():
        for domain in space.domains.values():
            assert not isinstance(domain, Float) or math.isfinite(domain.low)
