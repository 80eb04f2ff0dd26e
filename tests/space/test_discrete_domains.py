"""Choices, ordinals, constants, domains of one value, and what is refused."""

import math
from collections import deque
from typing import Any

import numpy as np
import pytest

from dre_plugins.space import (
    Categorical,
    Constant,
    Domain,
    Float,
    Integer,
    Normal,
    Ordinal,
    UnsupportedDomainError,
    ordered_choices,
)
from dre_plugins.space.discrete import MAX_ONE_HOT


class TestCategorical:
    def test_values_match_by_type_and_value_and_the_choice_itself_is_returned(self) -> None:
        domain = Categorical([True, 1, 1.0, "1", None, math.nan, [1], {"a": 1}, (1,), (True,)])
        found = [domain.from_unit(domain.to_unit(choice)) for choice in domain.choices]
        for choice, again in zip(domain.choices, found, strict=True):
            assert again is choice
        assert Categorical([1, 2]).contains(np.int64(2))
        assert not Categorical([1, 2]).contains(np.float64(2))
        assert Categorical([np.int64(1), 2]).contains(1)
        assert not Categorical([1, 0]).contains(np.bool_(True))
        choices = [print, {"a": [1]}, object]
        for choice, unit in zip(choices, (0.1, 0.5, 0.9), strict=True):
            assert Categorical(choices).from_unit(unit) is choice

    def test_an_unhashable_object_is_matched_by_equality(self) -> None:
        class Thing:
            __hash__ = None  # type: ignore[assignment]

            def __init__(self, name: str) -> None:
                self.name = name

            def __eq__(self, other: object) -> bool:
                return isinstance(other, Thing) and other.name == self.name

        domain = Categorical([Thing("a"), Thing("b")])
        assert domain.to_unit(Thing("b")) == 0.75

    def test_arrays_of_any_shapes_and_other_containers_are_told_apart(self) -> None:
        choices, same = ([np.zeros(1), np.zeros(2), np.ones(2), deque([1, [2]])] for _ in "ab")
        domain = Categorical(choices)
        assert domain.to_units(same).tolist() == [0.125, 0.375, 0.625, 0.875]
        assert not Categorical([deque([1, "a"])]).contains(deque(["1", "a"]))
        assert not domain.contains(np.zeros(4))

    def test_equality_is_by_type_and_value_and_an_unknown_value_is_named(self) -> None:
        with pytest.raises(ValueError, match=r"'c' is not one of \['a', 'b'\]"):
            Categorical(["a", "b"]).to_unit("c")
        assert Categorical([1, 2]) != Categorical([True, 2])
        assert Categorical([math.nan]) == Categorical([math.nan])
        assert len({Categorical([1, [2]]), Categorical([1, [2]])}) == 1

    def test_one_hot(self) -> None:
        domain = Categorical(["a", "b", "c"])
        features = domain.features(np.array([0.5, np.nan, 0.99]))
        assert features.tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 1]]

    def test_many_categories_share_their_columns(self) -> None:
        small, large = Categorical(range(100)), Categorical(range(1000))
        assert small.n_features == large.n_features == MAX_ONE_HOT
        codes = large.features(large.centres(np.arange(1000.0)))
        np.testing.assert_allclose((codes**2).sum(axis=1), 1)
        assert len(np.unique(codes, axis=0)) == 1000
        np.testing.assert_array_equal(small.features(small.centres(np.arange(100.0))), codes[:100])


class TestOrdinal:
    @pytest.mark.parametrize(
        ("spacing", "middle"), [("equal", 0.5), ("linear", 9 / 999), ("log", 1 / 3)]
    )
    def test_spacing(self, spacing: str, middle: float) -> None:
        domain = Ordinal([1, 10, 1000], spacing)
        features = domain.features(np.append(domain.to_units([1, 10, 1000]), np.nan))
        assert features[:, 0] == pytest.approx([0, middle, 1, 0.5])

    @pytest.mark.parametrize(
        ("values", "kind"),
        [
            ([16, 32, 64], Ordinal),
            ([0.1, 1], Ordinal),
            ([1, 2.5, np.int64(3)], Ordinal),
            ([3], Categorical),
            ([64, 32, 16], Categorical),
            ([1, 3, 2], Categorical),
            ([False, True], Categorical),
            ([1, 2, "3"], Categorical),
            ([1, math.nan], Categorical),
            ([1, 2, None], Categorical),
            ([1, 10**400], Categorical),
        ],
    )
    def test_ordered_choices(self, values: list[Any], kind: type) -> None:
        assert type(ordered_choices(values)) is kind

    @pytest.mark.parametrize(
        ("name", "values", "kind"),
        [
            ("target_transforms_idx", range(7), Categorical),
            ("model/estimatorIndex", [0, 1, 2], Categorical),
            ("lags_idx", [0, 2, 4], Ordinal),
            ("refractive_index", [1, 2, 3], Ordinal),
            ("n_layers", [0, 1, 2], Ordinal),
        ],
    )
    def test_positions_in_a_list_have_no_order(self, name: str, values: Any, kind: type) -> None:
        assert type(ordered_choices(values, name)) is kind


class TestDegenerate:
    @pytest.mark.parametrize(
        "domain",
        [
            Float(3, 3),
            Float(3, 3, "log"),
            Float(0.1, 0.1, "log"),
            Float(0.9, 0.9, "reverse-log"),
            Float(1, 1.2, "log", step=0.5),
            Integer(4, 4),
            Integer(4, 4, "log"),
            Categorical(["a"]),
            Ordinal([7]),
            Constant(7),
        ],
    )
    def test_one_value_sits_in_the_middle(self, domain: Domain) -> None:
        assert domain.n_values == 1
        assert domain.to_unit(domain.from_unit(0.9)) == 0.5
        assert domain.snap(np.array([0.0, 0.3, 1.0])).tolist() == [0.5] * 3
        columns = domain.features(np.array([0.5, 0.5]))
        np.testing.assert_array_equal(columns[0], columns[1])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Float(0, math.inf), "high must be a finite number, got inf"),
        (lambda: Float(math.nan, 1), "low must be a finite number, got nan"),
        (lambda: Float("0", 1), "low must be a finite number, got '0'"),
        (lambda: Float(False, 1), "low must be a finite number, got False"),
        (lambda: Float(2, 1), r"low=2\.0, high=1\.0; swap"),
        (lambda: Float(0, 1, "log"), "needs low > 0, got low=0.0"),
        (lambda: Float(0, 1, "reverse-log"), "0 <= low <= high < 1"),
        (lambda: Float(0, 0.5, "reverse-log", step=0.1), "leave the step out"),
        (lambda: Float(0, 1, "cubic"), "scale must be one of .* got 'cubic'"),
        (lambda: Float(0, 1, step=0), "step must be a positive number, got 0"),
        (lambda: Float(-1.7e308, 1.7e308), "too wide"),
        (lambda: Integer(0, 1.5), "high must be an int, got 1.5"),
        (lambda: Integer(True, 2), "low must be an int, got True"),
        (lambda: Integer(0, 10**400), "high must be a finite number"),
        (lambda: Integer(5, 1), "low=5, high=1"),
        (lambda: Integer(0, 5, "log"), "needs low > 0"),
        (lambda: Integer(0, 5, "reverse-log"), "scale must be one of"),
        (lambda: Integer(0, 5, step=0), "step must be a positive number"),
        (lambda: Normal(0, 0), "sd must be a positive number"),
        (lambda: Normal(math.inf, 1), "mean must be a finite number"),
        (lambda: Normal(0, 1, step=-1), "step must be a positive number"),
        (lambda: Categorical([]), "at least one"),
        (lambda: Categorical(["a", "b", "a"]), "'a' is listed twice"),
        (lambda: Categorical([math.nan, math.nan]), "nan is listed twice"),
        (lambda: Categorical("abc"), "must be a list of values, got 'abc'"),
        (lambda: Categorical(3), "must be a list of values, got 3"),
        (lambda: Ordinal([1, 1]), "1 is listed twice"),
        (lambda: Ordinal([1, 2], "cubic"), "spacing must be"),
        (lambda: Ordinal([2, 1], "linear"), "increasing order"),
        (lambda: Ordinal(["a", "b"], "linear"), "finite numbers"),
        (lambda: Ordinal([0, 1], "log"), "needs positive values, got 0"),
        (lambda: Ordinal([-1.7e308, 1.7e308], "linear"), "too wide or too narrow for floats"),
        (lambda: Ordinal([2**53, 2**53 + 1], "log"), "too wide or too narrow for floats"),
    ],
)
def test_invalid_domains_say_why(build: Any, message: str) -> None:
    with pytest.raises(UnsupportedDomainError, match=message):
        build()
