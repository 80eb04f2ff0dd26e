"""A study in which nothing improves looks at what is far from all trials."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from small_spaces import ProgressOf

from dre_plugins.recommend.recommender import Recommender
from dre_plugins.recommend.schedule import (
    EXPLORATION_EVERY as EVERY,
    EXPLORATION_PATIENCE as PATIENCE,
    is_exploration_due,
)
from dre_plugins.recommend.search import BLOCK, N_SOBOL, CandidateSearch, far_half
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space import Categorical, Float, SearchSpace
from dre_plugins.space.rules import Rule

SPACE = SearchSpace({"x": Float(0.0, 1.0), "branch": Categorical(("a", "b", "c"))})


@pytest.mark.parametrize(
    ("n_since", "index", "due"),
    [
        (PATIENCE, EVERY - 1, True),
        (PATIENCE - 1, EVERY - 1, False),  # not long enough
        (PATIENCE, EVERY, False),  # not its turn
        (100, 2 * EVERY - 1, True),
    ],
)
def test_when_an_exploration_is_due(n_since: int, index: int, due: bool) -> None:
    progress = ProgressOf(n_ended=200, n_since_incumbent=n_since)
    assert is_exploration_due(index, progress) is due
    for other in (
        {"n_objectives": 2},
        {"violated_constraints": True},
        {"n_since_incumbent": None},
    ):
        assert not is_exploration_due(index, replace(progress, **other))


def test_far_is_what_half_of_the_space_is() -> None:
    spread = torch.linspace(0.0, 1.0, 101)[:, None]
    observed = torch.tensor([[0.0], [0.1]])
    candidates = torch.tensor([[0.05], [0.3], [0.7], [1.0]])
    far = far_half(torch.cat([spread, candidates]), len(spread), observed)
    # The median distance of the spread points is .4: to the right of .5 all are as far.
    assert far.tolist() == [x > 0.5 for x in spread[:, 0]] + [False, False, True, True]
    # Something is always far.
    corners = torch.tensor([[1.0], [1.0], [0.0]])
    assert far_half(corners, 2, torch.zeros(1, 1)).tolist() == [True, True, False]


def test_far_from_many_trials_is_far_from_the_nearest() -> None:
    spread = torch.linspace(0.0, 1.0, 101)[:, None]
    observed = torch.cat([torch.full((3 * BLOCK + 1, 1), 0.9), torch.tensor([[0.0]])])
    far = far_half(spread, len(spread), observed)
    # A distance of .2 is the median.
    assert far[21:70].all() and not far[:20].any() and not far[71:].any()


def test_only_spread_points_say_what_is_far_if_a_rule_refuses_many() -> None:
    space, best = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}), np.full((1, 2), 0.1)
    search = CandidateSearch(Rule(space, lambda c: c["x"] + c["y"] < 1.2), None, seed=0)
    far = search.far(best, best, np.random.default_rng(0))
    spread = search.rule.spread(N_SOBOL, np.random.default_rng(0), np.full(2, np.nan))
    limit = np.median(np.linalg.norm(spread - best, axis=1))
    assert np.linalg.norm(far - best, axis=1).min() > limit - 1e-6


def settled(n: int) -> list[Trial]:
    """Return trials of one branch, the first of which is the best."""
    xs = np.linspace(0.1, 0.9, n)
    return [
        Trial({"x": float(x), "branch": "a"}, TrialState.COMPLETE, -float(row))
        for row, x in enumerate(xs)
    ]


def suggestions(history: list[Trial], indices, space=SPACE, n_startup_trials=5, **given) -> list:
    settings = RecommenderSettings(n_startup_trials=n_startup_trials)
    recommender = Recommender(space, settings, seed=0, prior=None)
    return [recommender.suggest(history, index=index, **given)[0] for index in indices]


def test_a_settled_study_tries_the_branch_that_it_forgot() -> None:
    made = suggestions(settled(12), range(6))
    explores = [suggestion.source == "exploration" for suggestion in made]
    assert explores == [index % EVERY == EVERY - 1 for index in range(6)]
    for suggestion in made:
        if suggestion.source == "exploration":
            assert suggestion.configuration["branch"] in "bc"
            assert suggestion.explanation.predicted_rank is not None


def test_what_still_runs_is_no_stagnation() -> None:
    history = [
        replace(trial, state=TrialState.RUNNING, value=None) if row >= 4 else trial
        for row, trial in enumerate(settled(12))
    ]
    (suggestion,) = suggestions(history, [EVERY - 1], n_startup_trials=3)
    assert suggestion.source == "model"


def test_finite_spaces_and_given_values_leave_no_room_to_explore() -> None:
    table = SearchSpace({"branch": Categorical(tuple("abcdefghijklmnopqrst"))})
    history = [
        Trial({"branch": name}, TrialState.COMPLETE, -float(row))
        for row, name in enumerate("abcdefghijklmn")
    ]
    made = suggestions(history, range(EVERY), table)
    assert {suggestion.source for suggestion in made} == {"model"}
    (given,) = suggestions(settled(12), [EVERY - 1], fixed={"branch": "a"})
    assert given.source == "model" and given.configuration["branch"] == "a"
