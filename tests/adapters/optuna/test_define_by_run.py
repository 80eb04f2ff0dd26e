"""What trials show by the parameters that they did not ask for."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from dre_plugins.adapters.optuna.define_by_run import Absences, absences_of
from dre_plugins.recommend.trials import TrialState

NAN = float("nan")
C, P, F, R = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAILED, TrialState.RUNNING)


def evidence(rows: Sequence[Sequence[float]], states: Sequence[TrialState]) -> Absences:
    return absences_of(np.array(rows, dtype=np.float64), states)


def whole(rows: Sequence[Sequence[float]], states: Sequence[TrialState]) -> list[int]:
    return np.flatnonzero(evidence(rows, states).is_whole).tolist()


def test_trials_that_part_at_a_shared_parameter_stand_for_all_that_agrees_with_them() -> None:
    rows = [[0.1, NAN, 0.4], [0.9, 0.5, NAN], [0.1, NAN, 0.6], [0.9, 0.7, NAN]]
    found = evidence(rows, [C, P, C, C])
    assert found.is_whole.all() and found.shows_absence.all()
    assert found.since.tolist() == [0, 0, 0]


def test_nothing_and_no_parameters() -> None:
    nothing = absences_of(np.empty((0, 2)), [])
    assert not len(nothing.is_whole) and nothing.since.tolist() == [0, 0]
    assert absences_of(np.empty((2, 0)), [C, F]).is_whole.tolist() == [True, True]


@pytest.mark.parametrize("state", [P, F, R])
def test_what_stopped_before_it_asked_for_more_shows_nothing(state: TrialState) -> None:
    rows = [[0.1, NAN], [0.1, 0.5], [0.9, 0.5]]
    for order in ([0, 1, 2], [2, 1, 0]):  # whether or not others asked for more before
        states = [state if row == 0 else C for row in order]
        found = evidence([rows[row] for row in order], states)
        assert found.shows_absence.tolist() == [row != 0 for row in order]
        assert not found.since.any()


@pytest.mark.parametrize(
    ("rows", "states", "expected"),
    [
        # Pruned where all others go on.
        ([[0.1, NAN], [0.9, 0.5]], [P, C], [0, 1]),
        # A second failure of a kind confirms the first, unless it was an accident.
        ([[0.1, NAN], [0.9, 0.5]], [F, C], [1]),
        ([[0.1, NAN], [0.9, 0.5], [0.3, NAN]], [F, C, F], [0, 1, 2]),
        ([[0.1, NAN], [0.9, 0.5], [0.3, NAN], [0.3, 0.2]], [F, C, F, C], [1, 3]),
        # A failure that asked for as much as any.
        ([[0.1, 0.5, NAN], [0.9, NAN, 0.5]], [F, C], [0, 1]),
        # A running trial counts while none asked for more.
        ([[0.1, 0.5], [0.2, 0.5]], [C, R], [0, 1]),
        ([[0.1, 0.5], [0.2, NAN]], [C, R], [0]),
        # The last of several changes counts.
        ([[0.1, NAN, NAN], [0.1, 0.5, NAN], [0.1, 0.5, 0.9], [0.1, 0.6, 0.9]], [C] * 4, [2, 3]),
    ],
)
def test_which_trials_are_whole(rows: Any, states: list[TrialState], expected: list[int]) -> None:
    assert whole(rows, states) == expected


def test_trials_before_a_larger_space_stand_for_nothing_else() -> None:
    rows = [[0.1, NAN], [0.5, NAN], [0.9, NAN], [0.5, 0.3], [0.1, 0.4]]
    found = evidence(rows, [C, C, C, C, C])
    assert found.is_whole.tolist() == [False, False, False, True, True]
    assert found.shows_absence.all()
    assert found.since.tolist() == [0, 3]


def test_one_parameter_in_place_of_another() -> None:
    rows = [[0.1, 0.2, NAN], [0.9, 0.2, NAN], [0.1, NAN, 0.7], [0.3, NAN, 0.7]]
    found = evidence(rows, [C, C, C, C])
    assert np.flatnonzero(found.is_whole).tolist() == [2, 3]
    assert found.since.tolist() == [0, 2, 2]


def test_an_objective_that_asks_at_random_shows_little() -> None:
    rng = np.random.default_rng(0)
    rows = [[0.5, rng.choice([NAN, 0.1, 0.9])] for _ in range(200)]
    assert len(whole(rows, [C] * 200)) < 10


def test_agreement_is_found_whatever_the_rough_comparison_says() -> None:
    """Against all pairs, one by one."""
    rng = np.random.default_rng(1)
    for _ in range(100):
        units = rng.choice([0.0, 0.01, 0.02, 1.0, NAN, NAN], size=(12, 3))
        states = [(C, P, F)[place] for place in rng.integers(3, size=12)]
        assert evidence(units.tolist(), states).shows_absence.tolist() == expected(units, states)


def expected(units: np.ndarray, states: Sequence[TrialState]) -> list[bool]:
    asked = [frozenset(np.flatnonzero(~np.isnan(row))) for row in units]

    def stopped(t: int) -> bool:
        return any(
            asked[t] < asked[s] and all(units[t, j] == units[s, j] for j in asked[t])
            for s in range(len(units))
        )

    short = [state is not C and stopped(t) for t, state in enumerate(states)]
    shown = []
    for t, state in enumerate(states):
        if state is F:
            alike = sum(
                asked[s] == asked[t] and states[s] is F and not short[s] for s in range(len(units))
            )
            is_largest = not any(other > asked[t] for other in asked)
            shown.append(not short[t] and (alike > 1 or is_largest))
        else:
            shown.append(not short[t])
    return shown
