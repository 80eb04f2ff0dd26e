"""Which configurations of past tasks are tried first."""

import numpy as np
import pytest

from dre_plugins.recommend.prior import AlignedPrior
from dre_plugins.recommend.proposers.past_best import PastBest
from dre_plugins.space import Categorical, Float, SearchSpace
from dre_plugins.space.rules import Rule
from dre_plugins.space.seen import Seen
from dre_plugins.transfer.metadata import Task
from dre_plugins.transfer.portfolio import expected_regrets, greedy_order

SPACE = SearchSpace({"x": Float(0.0, 1.0), "kind": Categorical(("a", "b"))})


def task_with_best_at(best: float, name: str = "x", low: float = 0.0) -> Task:
    space = SearchSpace({name: Float(low, 1.0)})
    units = np.linspace(0.0, 1.0, 15)[:, None]
    values = -np.abs(low + (1.0 - low) * units[:, 0] - best)
    return Task("task", space, units, values, np.zeros(15, dtype=np.bool_))


def test_the_first_is_good_everywhere_and_the_next_where_that_is_not():
    regrets = np.array([[0.0, 0.9, 0.3, 0.2], [0.9, 0.0, 0.3, 0.9], [0.9, 0.9, 0.4, 0.8]])
    assert greedy_order(regrets, 3).tolist() == [2, 0, 1]
    assert greedy_order(regrets, 0).tolist() == []


def test_regrets_are_expected_in_the_past_tasks_own_space():
    tasks = [task_with_best_at(0.2), task_with_best_at(0.8, low=0.4)]
    units = np.array([[0.2, 0.25], [0.8, 0.75]])
    regrets = expected_regrets(tasks, SPACE, units)
    assert regrets.shape == (2, 2)
    assert regrets[0, 0] < 0.2 < regrets[0, 1] and regrets[1, 1] < 0.2 < regrets[1, 0]


@pytest.mark.parametrize(("given", "expected"), [(np.nan, 0.9), (0.25, 0.3), (0.75, 0.9)])
def test_what_agrees_with_given_values_comes_first_and_medians_fill_gaps(given, expected):
    favourites = np.array([[0.9, 0.75], [0.3, 0.25], [np.nan, 0.25]])
    prior = AlignedPrior(None, None, favourites, n_first=3)  # no network is asked
    best = PastBest(Rule(SPACE, None), [None, prior])
    fixed = np.array([np.nan, given])
    left = best.untried(Seen(), fixed)
    assert left[0, 0] == expected and 0.6 in left[:, 0].round(9)
    seen = Seen()
    seen.include(left[:1])
    assert best.untried(seen, fixed)[0, 0] != expected
