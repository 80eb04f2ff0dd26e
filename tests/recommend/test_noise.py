import math

import numpy as np
import pytest

from dre_plugins.recommend import Trial, TrialState
from dre_plugins.recommend.lists import repetition_keys, without_noise


def complete(value: float) -> Trial:
    return Trial({}, TrialState.COMPLETE, value)


def values(pairs: list[tuple[bytes, float]]) -> list[float | None]:
    history = [complete(value) for _, value in pairs]
    return [trial.value for trial in without_noise(history, [key for key, _ in pairs])]


def test_repetitions_get_their_mean_and_near_ties_are_ties() -> None:
    pairs = [(b"a", 1.0), (b"a", 3.0), (b"b", 5.0), (b"b", 7.0), (b"c", 9.0), (b"c", 11.0)]
    # The noise is sqrt(2), so that means must differ by sqrt(2): all of these do.
    assert values(pairs) == [2.0, 2.0, 6.0, 6.0, 10.0, 10.0]
    # A single trial next to a mean of two needs more.
    assert values([*pairs, (b"d", 7.5)]) == [2.0, 2.0, 6.0, 6.0, 10.0, 10.0, 6.0]
    assert values([*pairs, (b"d", 7.8)]) == [2.0, 2.0, 6.0, 6.0, 10.0, 10.0, 7.8]


@pytest.mark.parametrize("scale", [2.0**1000, 2.0**-1000])
def test_noise_of_any_size(scale: float) -> None:
    pairs = [(b"a", 1.0), (b"a", 3.0), (b"b", 5.0), (b"b", 7.0), (b"c", 9.0), (b"c", 11.0)]
    scaled = [(key, scale * value) for key, value in [*pairs, (b"d", 7.5)]]
    assert values(scaled) == [scale * value for value in [2.0, 2.0, 6.0, 6.0, 10.0, 10.0, 6.0]]


def test_repetitions_at_both_ends_of_the_floats_are_all_noise() -> None:
    pairs = [(b"a", 1.7e308), (b"a", -1.7e308)] * 2 + [(b"b", 1.0), (b"c", -1.0)]
    assert len(set(values(pairs))) == 1


@pytest.mark.parametrize("repeated", [[1.0] * 4, [0.0], [0.0, 1.0], [0.0, 1.0, 2.0]])
def test_exact_and_few_repetitions_change_nothing(repeated: list[float]) -> None:
    pairs = [*((b"a", value) for value in repeated), (b"b", 1.0 + 1e-9), (b"c", 9.0)]
    assert values(pairs) == [value for _, value in pairs]


def test_what_has_no_finite_value_is_left_alone() -> None:
    history = [
        *[complete(value) for value in (1.0, 2.0, 3.0, 4.0, math.inf, math.nan)],
        Trial({}, TrialState.RUNNING),
        Trial({}, TrialState.FAILED),
    ]
    kept = without_noise(history, [b"a"] * 8)
    assert [trial.value for trial in kept[:4]] == [2.5] * 4
    assert kept[4:5] == history[4:5] and kept[6:] == history[6:]
    assert math.isnan(kept[5].value)


def test_what_is_clipped_far_outside_repeats_nothing() -> None:
    units = np.array([[2.0], [2.0], [0.5], [0.5], [-1.0], [np.nan]])
    keys = repetition_keys(units)
    assert keys[2] == keys[3]
    assert len(set(keys)) == 5
