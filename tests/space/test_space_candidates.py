"""Sobol points, mutation, enumeration and de-duplication."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from dre_plugins.space import (
    Categorical,
    Condition,
    Constant,
    Float,
    Integer,
    Normal,
    Ordinal,
    RangeCondition,
    SearchSpace,
    ordered_choices,
)
from dre_plugins.space.candidates import (
    is_around_zero,
    is_mostly_around_zero,
    mutate,
    recombine,
    sobol,
    sobol_point,
    start_up_point,
)
from dre_plugins.space.rules import Rule
from dre_plugins.space.seen import Seen, distinct, distinct_rows, first_new, groups


def seen_of(units: np.ndarray) -> Seen:
    seen = Seen()
    seen.include(units)
    return seen


SPACE = SearchSpace(
    {
        "x": Float(0, 1),
        "n": Integer(1, 1000, "log"),
        "k": Categorical(["a", "b", "c"]),
        "y": Float(0.1, 1, "log"),
        "batch": ordered_choices([16, 32, 64]),
        "one": Integer(3, 3),
        "z": Normal(0, 1, step=0.5),
        "seed": Constant(1),
    },
    [Condition("y", "k", ("a",)), RangeCondition("z", "batch", low=32)],
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


class TestSobol:
    @pytest.mark.parametrize("n", [0, 1, 5, 64, 100])
    def test_shape_and_range(self, n: int) -> None:
        points = sobol(3, n, rng())
        assert points.shape == (n, 3)
        assert ((points >= 0) & (points < 1)).all()

    def test_fills_evenly(self) -> None:
        points = sobol(5, 256, rng())
        for column in points.T:
            assert np.bincount((column * 16).astype(int)).tolist() == [16] * 16

    def test_draws_from_its_generator_only(self) -> None:
        np.testing.assert_array_equal(sobol(4, 9, rng(1)), sobol(4, 9, rng(1)))
        assert not np.array_equal(sobol(4, 9, rng(1)), sobol(4, 9, rng(2)))

    def test_more_parameters_than_the_sequence_has(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("dre_plugins.space.candidates._MAX_SOBOL", 3)
        points = sobol(5, 64, rng())
        assert points.shape == (64, 5)
        assert points.mean(axis=0) == pytest.approx(0.5, abs=0.15)
        assert sobol(0, 2, rng()).shape == (2, 0)


class TestSobolPoint:
    def test_coordinates_do_not_depend_on_how_many_there_are(self) -> None:
        for index in (0, 3, 300):
            full = sobol_point(100, index, seed=4)
            for n in (0, 1, 63, 64, 65, 99):
                np.testing.assert_array_equal(sobol_point(n, index, seed=4), full[:n])

    def test_is_the_same_in_any_order_and_differs_by_seed(self) -> None:
        forward = [sobol_point(3, i, seed=4) for i in range(600)]
        for i in (599, 256, 255, 0):
            np.testing.assert_array_equal(sobol_point(3, i, seed=4), forward[i])
        assert not np.array_equal(sobol_point(3, 0, seed=5), forward[0])

    def test_first_points_are_nearer_to_the_middle_of_ranges_around_0(self) -> None:
        numbers = {f"x{i}": Float(-1, 3) for i in range(14)} | {"k": Integer(-9, 9)}
        numbers["listed"] = Ordinal((-2.0, 0.5, 7.0), "linear")  # as `finrange` of Syne Tune
        assert not is_around_zero(Ordinal((-1, 0, 1)))  # a choice
        rate, never = Float(-1, 0.9, step=1), [RangeCondition("t", "rate", low=0.5)]  # -1 or 0
        for n, share in ((1, 0.8), (16, 0.5)):  # as near as with four parameters
            domains = {"rate": rate, "t": Float(-1, 1), **dict([*numbers.items()][-n:])}
            space = SearchSpace(domains, never)
            for index, expected in enumerate((0.0, share, share, share, 1.0)):
                point = sobol_point(n + 2, index, seed=1)
                point[1:] = 0.5 + expected * (point[1:] - 0.5)
                np.testing.assert_allclose(start_up_point(space, index, 1), point, rtol=1e-15)

    def test_points_after_the_first_are_nearer_to_the_middle_of_a_range_that_most_share(
        self,
    ) -> None:
        other = {"k": Integer(1, 9), "choice": Categorical(("a", "b"))}
        for n, share in ((3, 0.8), (16, 0.5)):
            space = SearchSpace({f"w{i}": Float(0.01, 10, "log") for i in range(n)} | other)
            for index, expected in enumerate((1.0, 0.0, share, share, 1.0)):
                point = sobol_point(n + 2, index, seed=1)
                point[:n] = 0.5 + expected * (point[:n] - 0.5)
                np.testing.assert_allclose(start_up_point(space, index, 1), point, rtol=1e-15)

    def test_a_range_that_few_share_is_one_like_others(self) -> None:
        rate, share = Float(1e-4, 1, "log"), Float(0, 1)
        for domains in ((share, share), (share, share, share, rate, rate), (Integer(1, 9),) * 3):
            space = SearchSpace({f"x{i}": domain for i, domain in enumerate(domains)})
            point = sobol_point(len(domains), 1, seed=1)
            np.testing.assert_array_equal(start_up_point(space, 1, 1), point)

    def test_ranges_of_numbers_decide_whether_a_space_is_around_0(self) -> None:
        around, other, choice = Float(-5, 5), Float(0, 1), Categorical(("a", "b"))
        for domains, expected in (
            ((around,), True),
            ((around, other, choice, choice), True),
            ((around, other, other), False),
            ((choice,), False),
        ):
            space = SearchSpace({f"x{i}": domain for i, domain in enumerate(domains)})
            assert is_mostly_around_zero(space) is expected

    def test_fills_evenly_across_blocks(self) -> None:
        points = np.array([sobol_point(2, i, seed=0) for i in range(512)])
        for column in points.T:
            assert np.bincount((column * 32).astype(int)).tolist() == [16] * 32


class TestMutate:
    @settings(max_examples=25)
    @given(st.integers(0, 10**6), st.booleans())
    def test_every_child_is_a_new_configuration(self, seed: int, canonical: bool) -> None:
        parents = sobol(SPACE.n_parameters, 4, rng(seed))
        if canonical:
            parents = SPACE.canonical(parents)
        children = mutate(SPACE, parents, 64, rng(seed))
        assert children.shape == (64, SPACE.n_parameters)
        assert ((children >= 0) & (children <= 1)).all()
        both = groups(SPACE.canonical(np.concatenate([parents, children])))
        assert {*both[:4]}.isdisjoint(both[4:])

    def test_one_parent_and_one_discrete_parameter(self) -> None:
        domains = [Categorical(["a", "b"]), Integer(1, 2), Integer(1, 100, "log"), Float(0, 1)]
        for domain, unit in itertools.product(domains, (0.0, 1.0)):
            space = SearchSpace({"p": domain})
            units = space.to_units([{"p": domain.from_unit(unit)}])
            children = space.canonical(mutate(space, units, 200, rng()))
            assert (children != units).all()

    def test_categories_are_drawn_evenly_among_the_others(self) -> None:
        space = SearchSpace({"k": Categorical(["a", "b", "c", "d"])})
        children = mutate(space, space.to_units([{"k": "b"}]), 9000, rng())
        counts = np.bincount(space.domains["k"].index(children[:, 0]).astype(int), minlength=4)
        assert counts[1] == 0
        assert counts[[0, 2, 3]] == pytest.approx(3000, rel=0.08)

    def test_bounds_are_reached_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("dre_plugins.space.candidates._SCALES", (0.01,))
        space = SearchSpace({f"p{i}": Float(0, 1) for i in range(2)})
        children = mutate(space, np.full((1, 2), 0.5), 4000, rng())
        moved = children[children != 0.5]
        assert (moved == 0).mean() == pytest.approx(0.075, abs=0.02)
        assert (moved == 1).mean() == pytest.approx(0.075, abs=0.02)
        assert (abs(moved - 0.5) < 0.05).mean() == pytest.approx(0.75 + 0.01, abs=0.03)

    def test_few_coordinates_change(self) -> None:
        space = SearchSpace({f"p{i}": Float(0, 1) for i in range(10)})
        changes = (mutate(space, np.full((3, 10), 0.5), 4000, rng()) != 0.5).sum(axis=1)
        assert changes.min() >= 1
        assert changes.mean() == pytest.approx(1.35, abs=0.1)  # 10 * 0.1, and 0.9**10 get one

    def test_inactive_parameters_are_drawn_uniformly(self) -> None:
        parents = SPACE.canonical(
            SPACE.to_units([{"x": 0.5, "n": 9, "k": "b", "batch": 16, "one": 3}])
        )
        assert np.isnan(parents[0, [3, 6]]).all()
        drawn = mutate(SPACE, parents, 4000, rng())[:, [3, 6]]
        assert drawn.mean(axis=0) == pytest.approx(0.5, abs=0.03)
        assert drawn.std(axis=0) == pytest.approx(12**-0.5, abs=0.02)

    def test_parents_from_outside_the_range_come_back(self) -> None:
        space = SearchSpace({"x": Float(0, 1), "y": Float(0, 1)})
        children = mutate(space, space.to_units([{"x": -9.0, "y": 9.0}]), 50, rng())
        assert ((children >= 0) & (children <= 1)).all()

    def test_a_space_that_cannot_move(self) -> None:
        space = SearchSpace({"one": Integer(3, 3)})
        assert mutate(space, np.array([[0.5]]), 5, rng()).tolist() == [[0.5]] * 5
        assert mutate(SearchSpace({}), np.empty((1, 0)), 5, rng()).shape == (5, 0)

    def test_is_fast(self) -> None:
        """About 0.7 ms measured; the bound only catches a loop over children."""
        parents = sobol(SPACE.n_parameters, 20, rng())
        start = time.process_time()
        mutate(SPACE, parents, 512, rng())
        assert time.process_time() - start < 0.1


class TestEnumerate:
    SMALL = SearchSpace(
        {
            "y": Float(0, 1, step=0.5),
            "n": Integer(1, 3, "log"),
            "k": Categorical(["a", "b", "c"]),
            "m": Integer(1, 2),
            "seed": Constant(1),
        },
        [Condition("n", "k", ("a", "b")), RangeCondition("y", "n", low=2)],
    )

    def test_every_configuration_once(self) -> None:
        units = self.SMALL.assignments(100)
        assert units is not None
        found = [tuple(self.SMALL.to_configuration(row).items()) for row in units]
        expected = set()
        for y, n, k, m in itertools.product((0.0, 0.5, 1.0), (1, 2, 3), "abc", (1, 2)):
            full = {"y": y, "n": n, "k": k, "m": m, "seed": 1}
            if k == "c":
                del full["n"], full["y"]
            elif n < 2:
                del full["y"]
            expected.add(tuple(full.items()))
        assert set(found) == expected
        assert len(found) == len(expected) == self.SMALL.n_configurations
        np.testing.assert_allclose(self.SMALL.canonical(units), units)

    def test_the_limit(self) -> None:
        n = self.SMALL.n_configurations
        assert n is not None
        assert self.SMALL.assignments(n) is not None
        assert self.SMALL.assignments(n - 1) is None
        assert SearchSpace({"x": Float(0, 1)}).assignments(10**9) is None
        assert SearchSpace({"x": Integer(0, 10**20)}).assignments(10**9) is None

    @pytest.mark.parametrize("never", [Integer(0, 10**20), Float(0, 1)])
    def test_what_is_never_active_is_not_counted(self, never: Integer | Float) -> None:
        space = SearchSpace(
            {"k": Constant("a"), "n": Integer(1, 3), "x": never}, [Condition("x", "k", ("b",))]
        )
        units = space.assignments(10)
        assert units is not None and len(units) == 3
        assert SearchSpace({"seed": Constant(1)}).assignments(10).shape == (1, 0)


# Half-way between two numbers of nine decimals: errors of rounding decide to which one it goes.
BOUNDARIES = st.integers(0, 10**9 - 1).map(lambda n: (n + 0.5) * 1e-9)
FLOATS = SearchSpace({name: Float(0, 1) for name in "abc"})


class TestKeys:
    def test_zeros_of_either_sign_and_rows_of_nothing(self) -> None:
        assert len({*groups(np.array([[0.0], [-0.0], [-1e-12]]))}) == 1
        assert groups(np.empty((2, 0))) == [b"", b""]

    def test_decoded_configurations_have_the_key_of_their_candidate(self) -> None:
        canonical = SPACE.canonical(sobol(SPACE.n_parameters, 256, rng()))
        decoded = SPACE.to_units([SPACE.to_configuration(row) for row in canonical])
        both = groups(np.concatenate([decoded, canonical]))
        assert both[:256] == both[256:]

    def test_distinct(self) -> None:
        units = np.array([[0.1], [0.2], [0.1], [0.3], [np.nan], [np.nan]])
        assert distinct(units).tolist() == [True, True, False, True, True, False]
        seen = seen_of(np.array([[0.3]]))
        assert distinct(units, seen).tolist() == [True, True, False, False, True, False]
        assert seen.has(units).tolist() == [False, False, False, True, False, False]

    @given(
        arrays(np.float64, (6, 3), elements=st.floats(0, 1) | BOUNDARIES | st.just(np.nan)),
        arrays(np.float64, (6, 3), elements=st.floats(-1e-11, 1e-11)),
    )
    def test_rows_that_differ_by_rounding_are_the_same(self, units, errors) -> None:
        nearly = units + errors
        assert seen_of(units).has(nearly).all()
        assert distinct(nearly, seen_of(units)).sum() == 0
        assert first_new(FLOATS, np.nan_to_num(nearly), seen_of(np.nan_to_num(units))) is None
        both = groups(np.concatenate([units, nearly]))
        assert both[:6] == both[6:]

    def test_the_first_new_row_of_many_that_are_seen(self) -> None:
        units = SPACE.canonical(sobol(SPACE.n_parameters, 600, rng()))
        every = groups(units)
        assert first_new(SPACE, units, Seen()) == 0
        assert first_new(SPACE, units, seen_of(units[:500])) == next(
            row for row, key in enumerate(every) if key not in every[:500]
        )
        assert first_new(SPACE, units, seen_of(units)) is None

    def test_what_is_near_is_passed_over(self) -> None:
        space = SearchSpace({"x": Float(0, 1), "k": Categorical(["a", "b"])})
        seen = seen_of(space.to_units([{"x": 0.5, "k": "a"}]))
        near = [{"x": 0.5004, "k": "a"}, {"x": 0.5004, "k": "b"}, {"x": 0.502, "k": "a"}]
        units = space.to_units(near)
        assert seen.has(units, 1e-3).tolist() == [True, False, False]
        assert first_new(space, units, seen, 1e-3) == 1
        assert first_new(space, units, seen) == 0
        assert not Seen().has(units, 1e-3).any()

    def test_a_parameter_that_only_one_has_makes_two_differ(self) -> None:
        units = np.array([[0.5, np.nan], [0.5, 0.0], [0.5001, np.nan]])
        assert seen_of(units[:1]).has(units, 1e-3).tolist() == [True, False, True]


def test_recombined_children_are_parents_with_a_fifth_of_a_donor():
    parents, donors = np.zeros((3, 40)), np.ones((2, 40)) * [[1.0], [2.0]]
    children = recombine(parents, donors, 500, rng())
    assert set(np.unique(children)) == {0.0, 1.0, 2.0}
    assert all(len(set(child) - {0.0}) <= 1 for child in children)  # of one donor each
    assert abs((children > 0).mean() - 0.2) < 0.02


# --- parts of configurations -------------------------------------------------------------------


def test_a_trial_without_an_optional_parameter_stands_for_all_its_values() -> None:
    space = SearchSpace({"k": Categorical(["a", "b"]), "x": Float(0, 1)}, optional=["x"])
    tried = space.to_units([{"k": "a"}, {"k": "b", "x": 0.5}])
    seen = Seen.of(space, tried, np.array([True, True]))
    units = space.to_units([{"k": "a", "x": 0.2}, {"k": "b", "x": 0.2}, {"k": "b", "x": 0.5}])
    assert distinct(units, seen).tolist() == [False, True, False]
    assert first_new(space, units, seen) == 1
    # Of a trial that may have asked for less nothing follows.
    partly = Seen.of(space, tried, np.array([False, True]))
    assert distinct(units, partly).tolist() == [True, True, False]


def test_what_conditions_explain_is_no_part() -> None:
    space = SearchSpace(
        {"k": Categorical(["a", "b"]), "x": Float(0, 1)}, [Condition("x", "k", ("b",))]
    )
    seen = Seen.of(space, space.to_units([{"k": "a"}]), np.array([True]))
    asked = space.to_units([{"k": "a"}, {"k": "b", "x": 0.3}])
    assert seen.has(asked).tolist() == [True, False]


def test_the_rest_of_a_finite_space_is_what_no_part_covers() -> None:
    space = SearchSpace({"k": Categorical(["a", "b"]), "n": Integer(1, 3)}, optional=["n"])
    tried = space.to_units([{"k": "a"}, {"k": "b", "n": 1}])
    seen = Seen.of(space, tried, np.array([True, True]))
    free = np.full(2, np.nan)
    left = Rule(space, None).unseen(free, seen, np.random.default_rng(0), 9)
    found = [space.to_configuration(row) for row in left]
    assert sorted(configuration["n"] for configuration in found) == [2, 3] and {
        configuration["k"] for configuration in found
    } == {"b"}


@given(arrays(np.bool_, st.tuples(st.integers(1, 9), st.integers(0, 4))))
def test_distinct_rows_of_masks(masks):
    rows, row_of = distinct_rows(masks)
    assert np.array_equal(rows[row_of], masks)
    assert [tuple(row) for row in rows.tolist()] == sorted({tuple(row) for row in masks.tolist()})
