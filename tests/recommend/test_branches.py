"""No branch of a conditional space is dropped before it was beaten."""

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from dre_plugins.recommend import choices
from dre_plugins.recommend.branches import branch_to_try, is_within
from dre_plugins.recommend.recommender import Recommender
from dre_plugins.recommend.schedule import Request, is_branch_turn
from dre_plugins.recommend.search import CandidatePool, CandidateSearch
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space import Categorical, Condition, Float, SearchSpace
from dre_plugins.space.rules import Rule
from dre_plugins.space.seen import Seen

SPACE = SearchSpace(
    {
        "x": Float(0.0, 1.0),
        "model": Categorical(("svm", "forest", "net")),
        "C": Float(0.0, 1.0),
        "solver": Categorical(("sgd", "adam")),
        "momentum": Float(0.0, 1.0),
    },
    [
        Condition("C", "model", ("svm",)),
        Condition("solver", "model", ("net",)),
        Condition("momentum", "solver", ("sgd",)),
    ],
)
FLAT = SearchSpace(
    {"x": Float(0.0, 1.0), "model": SPACE.domains["model"], "C": Float(0.0, 1.0)},
    [Condition("C", "model", ("svm",))],
)
PLAIN = SearchSpace({"x": Float(0.0, 1.0), "kind": Categorical(("a", "b"))})
# Suggestions of these numbers may be led into a branch, those of the others may not.
LED, FREE = 22, 20


def ended(model: str, value: float, **others) -> Trial:
    configuration = {"x": 0.5, "model": model, **others}
    return Trial(configuration, TrialState.COMPLETE, value)


def svm(value: float) -> Trial:
    return ended("svm", value, C=0.5)


def net(value: float, solver: str = "adam") -> Trial:
    return ended("net", value, solver=solver, **({"momentum": 0.5} if solver == "sgd" else {}))


def chosen(history: list[Trial], space: SearchSpace = FLAT) -> dict[str, object]:
    """Return the values that lead into the branch that is chosen, by name."""
    units = space.to_units([trial.configuration for trial in history])
    branch = branch_to_try(space, history, units, Rule(space, None).may_hold)
    if branch is None:
        return {}
    return {
        name: space.domains[name].from_unit(unit)
        for name, unit in zip(space.names, branch, strict=True)
        if not np.isnan(unit)
    }


def test_a_branch_without_trials_comes_first_if_there_are_branches() -> None:
    history = [svm(1.0), svm(2.0), ended("forest", 0.0)]
    assert chosen(history) == {"model": "net"}
    assert chosen([Trial({"x": 0.5, "kind": "a"}, TrialState.COMPLETE, 1.0)] * 9, PLAIN) == {}


def test_half_of_the_suggestions_are_free(monkeypatch) -> None:
    assert not any(is_branch_turn(number) for number in range(10))
    assert [is_branch_turn(number) for number in range(12, 20)] == [False, False, True, True] * 2
    history = [ended("svm", float(value), C=float(value)) for value in np.linspace(0.0, 1.0, 12)]
    monkeypatch.setattr(choices, "branch_to_try", lambda *_: pytest.fail("led"))
    (free,) = Recommender(SPACE, seed=0).suggest(history, index=FREE)
    assert free.source == "model"


def test_a_branch_is_beaten_when_its_last_trials_did_not_improve_it() -> None:
    leading = [svm(10.0)] * 10
    beaten = [ended("forest", 1.0)] * 6  # of 22 trials, five that do not improve it are enough
    assert chosen([*leading, *beaten, *[net(2.0)] * 6]) == {}
    improving = [ended("forest", float(value)) for value in range(6)]
    assert chosen([*leading, *improving, *[net(2.0)] * 6]) == {"model": "forest"}
    as_good = [*[svm(1.0)] * 12, *[ended("forest", 1.0)] * 6, *[net(0.0)] * 6]
    assert chosen(as_good) == {"model": "forest"}
    unknown = [replace(trial, constraints={"limit": np.nan}) for trial in as_good]
    assert chosen(unknown) == {"model": "forest"}
    unknown[0] = replace(as_good[0], constraints={"limit": 0.0})  # the only one that may be best
    assert chosen(unknown) == {}


def test_the_beaten_are_tried_again_ever_more_rarely() -> None:
    others = [*[ended("forest", 1.0)] * 6, *[net(2.0)] * 6]
    due = [bool(chosen([*[svm(10.0)] * n, *others])) for n in (12, 60)]
    assert due == [False, True]


def test_running_trials_count_as_trials_and_not_as_failures_to_improve() -> None:
    running = Trial({"x": 0.1, "model": "forest"}, TrialState.RUNNING)
    history = [*[svm(10.0)] * 6, ended("forest", 1.0), *[net(2.0)] * 2, *[running] * 4]
    assert chosen(history) == {"model": "net"}
    assert chosen([*history, *[net(1.0)] * 6]) == {"model": "forest"}


def test_a_branch_that_fails_is_beaten_in_the_end() -> None:
    failed = Trial({"x": 0.1, "model": "forest"}, TrialState.FAILED)
    history = [*[svm(10.0)] * 10, *[net(2.0)] * 6]
    assert chosen([*history, *[failed] * 4]) == {"model": "forest"}
    assert chosen([*history, *[failed] * 6]) == {}


def test_a_branch_within_a_branch_is_led_to_by_all_its_parents() -> None:
    history = [*[svm(1.0)] * 3, *[ended("forest", 1.0)] * 3, *[net(9.0)] * 9]
    assert chosen(history, space=SPACE) == {"model": "net", "solver": "sgd"}
    # Nothing leads into a branch whose parent is beaten.
    beaten = [*[svm(10.0)] * 9, *[ended("forest", 1.0)] * 6, *[net(1.0)] * 6]
    assert chosen(beaten, space=SPACE) == {}


def test_what_lies_within_a_branch() -> None:
    units = SPACE.to_units([t.configuration for t in (svm(0.0), net(0.0), net(0.0, "sgd"))])
    branch = SPACE.leading_to(SPACE.names.index("solver"), units[2, 3], units)
    assert is_within(units, branch).tolist() == [False, False, True]


@pytest.mark.parametrize("count", [1, 4])
def test_suggestions_go_where_they_are_led(count: int) -> None:
    rng = np.random.default_rng(0)
    history = [svm(float(value)) for value in rng.random(11)] + [net(-1.0)]
    suggested = Recommender(SPACE, seed=0).suggest(history, count, index=LED)
    models = [each.configuration["model"] for each in suggested]
    assert models[0] == "forest"
    assert count == 1 or models[1] == "net", "what is pending counts"


@pytest.mark.parametrize(
    ("is_led", "others", "expected"), [(False, [0.7], 0.51), (True, [0.7], 0.7), (True, [], 0.51)]
)
def test_a_branch_that_is_behind_is_explored_and_not_refined(is_led, others, expected) -> None:
    space = SearchSpace({"x": Float(0.0, 1.0)})
    search, seen, free = CandidateSearch(Rule(space, None), None, 0), Seen(), np.full(1, np.nan)
    seen.include(np.array([[0.5]]))
    units = np.array([[0.5], [0.51], *([other] for other in others)])
    acquisition = -torch.arange(len(units)).double()  # best next to the trial at .5
    request = Request(LED, "model", seen, free, free if is_led else None)
    pool = CandidatePool(units, acquisition[None])
    best, _, is_new = search.best(pool, Mock(), lambda rows: rows[0], request, Mock())
    assert (best.tolist(), is_new) == ([expected], True)
