"""Past tasks that call a parameter differently teach the same parameter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dre_plugins import MetaDataset, Prior
from dre_plugins.space import Categorical, Float, Integer, SearchSpace
from dre_plugins.space.conditions import Condition
from dre_plugins.transfer.metadata import Task
from dre_plugins.transfer.spaces.merging import with_common_names

RATE = Float(1e-4, 1.0, "log")
BOOSTER = Categorical(("tree", "linear"))


def names_of(*spaces: SearchSpace) -> list[tuple[str, ...]]:
    return [tuple(space.domains) for space in with_common_names(spaces)]


def space(*names: str) -> SearchSpace:
    return SearchSpace({name: RATE for name in names})


def test_aliases_and_spellings_get_one_name() -> None:
    found = names_of(space("lr", "depth"), space("Eta", "depth"), space("learning-rate", "depth"))
    assert found == [("Eta", "depth")] * 3


def test_it_does_not_depend_on_the_order() -> None:
    spaces = [space("eta", "max_depth"), space("maxdepth", "lr"), space("subsample", "lr")]
    assert names_of(*spaces) == names_of(*spaces[::-1])[::-1]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("lr", "x"), ("log10_lr", "x")),  # numbers that mean something else
        (("eta", "gamma", "nrounds"), ("C", "gamma", "kernel")),  # a word of several meanings
        (("x0", "x1"), ("x2", "x3")),
    ],
)
def test_what_is_not_the_same_keeps_its_name(first, second) -> None:
    assert names_of(space(*first), space(*second)) == [first, second]


def test_conditions_and_optional_parameters_are_renamed() -> None:
    domains = {"booster": BOOSTER, "max_depth": Integer(1, 9), "learning_rate": RATE}
    condition = Condition("max_depth", "booster", ("tree",))
    conditional = SearchSpace(domains, [condition], ["learning_rate"])
    _, renamed = with_common_names([space("booster", "eta", "maxdepth"), conditional])
    assert renamed.names == ("booster", "maxdepth", "eta")
    assert renamed.conditions == (replace(condition, child="maxdepth"),)
    assert renamed.optional == {"eta"}


def test_a_prior_learns_from_all_of_them() -> None:
    """One half of the tasks calls the rate something else; it is one column of the prior."""
    rng = np.random.default_rng(0)
    tasks = []
    for number in range(6):
        units = rng.random((30, 1))
        values = -np.abs(units[:, 0] - 0.7)
        named = space("lr" if number % 2 else "eta")
        tasks.append(Task(f"task {number}", named, units, values, np.zeros(30, np.bool_)))
    prior = Prior.of_few(MetaDataset(tuple(tasks)))
    assert prior.space.names == ("eta",)
    points = np.linspace(0, 1, 101)[:, None]
    best = float(points[prior.scores(space("learning_rate"), points).argmax(), 0])
    assert best == pytest.approx(0.7, abs=0.1)
