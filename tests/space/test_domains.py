"""Every domain, and numbers: membership, grid, Python type, equal bins, round trips, features."""

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from dre_plugins.space import Categorical, Constant, Domain, Float, Integer, Normal, Ordinal

units = st.floats(0.0, 1.0)
# Bounds as people write them: a few significant digits.
decimals = st.builds(lambda n, e: float(f"{n}e{e}"), st.integers(-9999, 9999), st.integers(-6, 3))
positive = st.builds(lambda n, e: float(f"{n}e{e}"), st.integers(1, 9999), st.integers(-6, 3))


@st.composite
def floats(draw: st.DrawFn) -> Float:
    scale = draw(st.sampled_from(["linear", "log", "reverse-log"]))
    shares = st.integers(0, 999).map(lambda n: n / 1000)
    bound = {"linear": decimals, "log": positive, "reverse-log": shares}[scale]
    low, high = sorted([draw(bound), draw(bound)])
    steps = st.none() if scale == "reverse-log" else st.none() | positive
    return Float(low, high, scale=scale, step=draw(steps))


@st.composite
def integers(draw: st.DrawFn) -> Integer:
    scale = draw(st.sampled_from(["linear", "log"]))
    ends = st.integers(1 if scale == "log" else -(10**6), 10**6)
    low, high = sorted([draw(ends), draw(ends)])
    return Integer(low, high, scale=scale, step=draw(st.integers(1, 100)))


normals = st.builds(Normal, decimals, positive, st.none())
step_normals = st.builds(
    lambda mean, sd, share: Normal(mean, sd, float(f"{sd * share:.3g}")),
    decimals,
    positive,
    st.floats(0.01, 20.0),
)
choices = st.sampled_from(
    [
        ["a"],
        ["a", "b", "c"],
        [True, 1, 1.0],
        [None, "x", (1, 2), [3], {"k": [1]}, math.nan],
        range(50),
    ]
)
listed = choices.map(Categorical) | st.sampled_from(
    [
        Ordinal(["low", "mid", "high"]),
        Ordinal([16, 32, 128], "linear"),
        Ordinal([0.1, 1, 100], "log"),
        Ordinal([5]),
        Constant({"any": "thing"}),
    ]
)
Numeric = Float | Integer | Normal
domains = floats() | integers() | normals | step_normals | listed


class TestEveryDomain:
    @given(domains, units)
    def test_decoded_values_belong(self, domain: Domain, unit: float) -> None:
        for place in (unit, -3.0, 4.0):  # what is outside is clipped
            assert domain.contains(domain.from_unit(place))

    @given(domains, units)
    def test_decoding_snaps(self, domain: Domain, unit: float) -> None:
        snapped, value = domain.snap(np.array([unit]))[0], domain.from_unit(unit)
        found = domain.to_unit(value)
        tolerance = 1e-12
        if domain.n_values is None:  # a unit is known no better than its value
            neighbours = domain.to_units([math.nextafter(value, end) for end in (-9e9, 9e9)])
            tolerance += 4 * abs(neighbours[1] - neighbours[0])
        assert found == pytest.approx(snapped, rel=0, abs=tolerance)

    @given(domains, st.lists(units, min_size=1, max_size=5))
    def test_snap_is_idempotent(self, domain: Domain, some: list[float]) -> None:
        once = domain.snap(np.array(some))
        np.testing.assert_array_equal(domain.snap(once), once)
        assert ((once >= 0) & (once <= 1)).all()

    @given(domains, units)
    def test_decoded_values_round_trip_exactly(self, domain: Domain, unit: float) -> None:
        value = domain.from_unit(unit)
        again = domain.from_unit(domain.to_unit(value))
        if domain.n_values is None:
            assert again == pytest.approx(value, rel=1e-12, abs=1e-12 * abs(value))
        assert again == value or again != again

    @pytest.mark.parametrize("scale", ["linear", "log", "reverse-log"])
    def test_values_of_narrow_ranges_round_trip_exactly(self, scale: str) -> None:
        rng = np.random.default_rng(0)
        for width in 10.0 ** -rng.uniform(0, 14, size=300):
            low = rng.random() if scale == "reverse-log" else 10.0 ** rng.uniform(-20, 10)
            high = low + 0.9 * (1 - low) * width if scale == "reverse-log" else low * (1 + width)
            domain = Float(low, high, scale)
            for unit in rng.random(5).tolist():
                value = domain.from_unit(unit)
                assert domain.from_unit(domain.to_unit(value)) == value, (domain, unit)

    @given(domains, st.lists(units | st.just(math.nan), max_size=5))
    def test_features_have_their_shape_and_range(self, domain: Domain, some: list[float]) -> None:
        features = domain.features(domain.snap(np.array(some, dtype=float)))
        assert features.shape == (len(some), domain.n_features)
        assert np.isfinite(features).all()
        assert (np.abs(features) <= 1).all()

    @given(domains)
    def test_copies_are_equal(self, domain: Domain) -> None:
        for twin in (copy.deepcopy(domain), pickle.loads(pickle.dumps(domain))):
            assert twin == domain
            assert twin.to_unit(domain.from_unit(0.3)) == domain.to_unit(domain.from_unit(0.3))

    @given(domains)
    def test_nan_has_no_value(self, domain: Domain) -> None:
        assert np.isnan(domain.snap(np.array([np.nan]))).all()
        with pytest.raises(ValueError, match="NaN"):
            domain.from_unit(math.nan)

    @settings(max_examples=30)
    @given(domains)
    def test_no_bin_is_more_likely_than_another(self, domain: Domain) -> None:
        """Equal widths in the domain's own scale: bins tile the unit interval without gaps."""
        n = domain.n_values
        if n is None or not 1 < n <= 200:
            return
        index = np.arange(n, dtype=float)
        np.testing.assert_array_equal(domain.index(domain.centres(index)), index)
        if isinstance(domain, Normal) or getattr(domain, "scale", "linear") != "linear":
            return  # bins of other widths
        edges = np.arange(1, n) / n
        np.testing.assert_array_equal(domain.index(edges - 1e-9), index[:-1])
        np.testing.assert_array_equal(domain.index(edges + 1e-9), index[1:])


class TestManyNumbers:
    """`numbers` and `number_units` are `from_unit` and `to_units` for arrays."""

    @given(floats() | integers() | normals | step_normals, st.lists(units, max_size=5))
    def test_they_agree_with_the_exact_way(self, domain: Numeric, some: list[float]) -> None:
        snapped = domain.snap(np.array(some, dtype=float))
        values = [domain.from_unit(unit) for unit in snapped.tolist()]
        width = domain.from_unit(1.0) - domain.from_unit(0.0)
        found = domain.numbers(snapped)
        np.testing.assert_allclose(found, values, rtol=1e-9, atol=1e-9 * width)
        exact = domain.to_units(values)
        given = np.array(values, dtype=float)
        np.testing.assert_allclose(domain.number_units(given), exact, rtol=0, atol=1e-9)

    @given(
        st.sampled_from(
            [
                Float(-1, 3),
                Float(1e-4, 1.0, "log"),
                Float(0.5, 0.99, "reverse-log"),
                Float(0, 1, step=0.1),
                Integer(5, 50),
                Integer(5, 50, "log"),
            ]
        ),
        st.floats(-1, 2),
    )
    def test_values_out_of_range_or_off_a_grid_are_found_again(
        self, domain: Numeric, unit: float
    ) -> None:
        found = domain.number_units(domain.numbers(np.array([unit])))
        assert found[0] == pytest.approx(unit, abs=1e-7)

    @pytest.mark.parametrize("scale", ["linear", "log"])
    def test_values_between_those_of_a_grid_keep_their_places(self, scale: str) -> None:
        domain, values = Float(0.5, 2.0, scale, step=0.5), [0.9, 1.0, 1.0 + 1e-9, 1.2]
        found = domain.to_units(values)
        assert found[0] < found[1] == found[2] == domain.snap(found)[1] < found[3]
        np.testing.assert_array_equal(domain.number_units(np.array(values)), found)

    @example(Float(0.0, 0.5, step=1e-14))
    @given(floats() | integers() | normals | step_normals)
    def test_nothing_overflows_and_nan_passes(self, domain: Numeric) -> None:
        numbers = domain.numbers(np.array([np.nan, -1.0, 2.0]))
        assert np.isnan(numbers).tolist() == [True, False, False]
        assert np.isfinite(numbers[1:]).all() and numbers[1] <= numbers[2]
        found = domain.number_units(np.array([np.nan, -1.7e308, 0.0, 1.7e308]))
        assert np.isnan(found).tolist() == [True, False, False, False]
        assert (np.diff(found[1:]) >= 0).all() and (np.abs(found[1:]) <= 10).all()
        assert domain.to_units([-1.7e308, 0.0, 1.7e308]) == pytest.approx(found[1:])

    @pytest.mark.parametrize(
        "domain",
        [
            Float(-1e307, 1e307),
            Float(1e-300, 1e300, "log"),
            Float(0.0, 0.999, "reverse-log"),
            Integer(0, 10**299),
            Integer(0, 2**60),
        ],
    )
    def test_the_widest_ranges(self, domain: Numeric) -> None:
        some = np.array([-1.0, 0.0, 0.5, 1.0, 2.0])
        numbers = domain.numbers(some)
        assert np.isfinite(numbers).all() and (np.diff(numbers) > 0).all()
        np.testing.assert_allclose(domain.number_units(numbers)[1:4], some[1:4], atol=1e-9)


class TestFloat:
    @given(floats())
    def test_bounds_are_reached_exactly(self, domain: Float) -> None:
        assert domain.from_unit(domain.to_unit(domain.low)) == domain.low
        if domain.step is None:
            assert domain.from_unit(domain.to_unit(domain.high)) == domain.high
        if domain.n_values is None:
            assert (domain.to_unit(domain.low), domain.to_unit(domain.high)) == (0.0, 1.0)

    @given(floats(), units)
    def test_values_are_floats_in_the_range_without_noise(
        self, domain: Float, unit: float
    ) -> None:
        value = domain.from_unit(unit)
        assert type(value) is float and domain.low <= value <= domain.high
        if domain.step is None:
            return
        digits = max(len(f"{x:.12f}".rstrip("0").split(".")[1]) for x in (domain.low, domain.step))
        assert value == round(value, digits)

    def test_written_values(self) -> None:
        assert Float(0, 1, step=0.1).all_values() == [k / 10 for k in range(11)]
        assert Float(1, 2.5, step=0.5).all_values() == [1.0, 1.5, 2.0, 2.5]
        assert Float(0, 1, step=0.3).all_values() == [0.0, 0.3, 0.6, 0.9]  # as Optuna does
        assert Float(0, 1, step=5).all_values() == [0.0]

    def test_observed_float_noise_is_on_the_grid(self) -> None:
        domain = Float(0, 1, step=0.1)
        assert domain.contains(0.1 + 0.2)
        assert not domain.contains(0.25)
        assert domain.from_unit(domain.to_unit(0.1 + 0.2)) == 0.3

    @pytest.mark.parametrize(
        ("domain", "unit", "value"),
        [
            (Float(-1, 3), 0.25, 0.0),
            (Float(1e-4, 1.0, "log"), 0.5, 1e-2),
            (Float(0.9, 0.999, "reverse-log"), 0.5, 0.99),
            (Float(0, 1e-300), 0.5, 5e-301),
            (Float(-1e300, 1e300), 0.5, 0.0),
        ],
    )
    def test_scales(self, domain: Float, unit: float, value: float) -> None:
        assert domain.from_unit(unit) == pytest.approx(value, rel=1e-12, abs=0)
        assert domain.to_unit(value) == pytest.approx(unit, abs=1e-12)

    @given(floats(), st.floats(0, 1))
    def test_values_in_range_round_trip_closely(self, domain: Float, share: float) -> None:
        value = domain.low + share * (domain.high - domain.low)
        if domain.step is not None or not domain.contains(value):
            return
        again = domain.from_unit(domain.to_unit(value))
        tolerance = 1e-12 * (domain.high - domain.low)
        assert again == pytest.approx(value, rel=1e-12, abs=tolerance)

    @pytest.mark.parametrize("value", [True, "1", None, math.nan, math.inf, [1], 10**400])
    def test_other_types_do_not_belong(self, value: Any) -> None:
        assert not Float(-1, 1).contains(value)
        with pytest.raises(ValueError, match="finite number"):
            Float(-1, 1).to_unit(value)

    def test_numpy_numbers_and_ints_belong(self) -> None:
        for value in (1, np.float32(0.5), np.float64(0.5), np.int64(1)):
            assert Float(0, 1).contains(value)

    def test_values_out_of_range_keep_their_order(self) -> None:
        domain = Float(0, 1)
        assert [domain.to_unit(v) for v in (-99, -0.5, 0.5, 1.5, 99)] == [-9, -0.5, 0.5, 1.5, 10]
        assert domain.features(np.array([-0.5, 1.5]))[:, 0].tolist() == [-0.5, 1.5]
        assert Float(0.1, 1, "log").to_unit(-5) == -9
        assert Float(0.1, 0.9, "reverse-log").to_unit(5) == 10


class TestInteger:
    @given(integers())
    def test_every_kth_value_round_trips(self, domain: Integer) -> None:
        last = domain.n_values - 1
        for k in {0, 1, last // 3, last // 2, last - 1, last} & set(range(last + 1)):
            value = domain.low + k * domain.step
            assert domain.from_unit(domain.to_unit(value)) == value
            assert domain.contains(value)

    @pytest.mark.parametrize(
        "domain",
        [
            Integer(0, 10**20),
            Integer(-(10**18), 10**18, step=7),
            Integer(1, 10**20, "log"),
            Integer(10**18, 10**18 + 100),
            Integer(0, 2**50),
        ],
    )
    @given(unit=units)
    def test_huge_ranges_do_not_overflow(self, domain: Integer, unit: float) -> None:
        value = domain.from_unit(unit)
        assert type(value) is int and domain.contains(value)
        assert domain.from_unit(domain.to_unit(value)) == value
        snapped = domain.snap(np.array([unit]))[0]
        assert domain.to_unit(value) == pytest.approx(snapped, rel=0, abs=1e-12)

    @pytest.mark.parametrize("value", [True, 3.0, "3", None, np.bool_(True), 11, -1])
    def test_other_values_do_not_belong(self, value: Any) -> None:
        assert not Integer(0, 10).contains(value)

    def test_numpy_integers_belong(self) -> None:
        assert Integer(0, 10).contains(np.int32(3))
        assert Integer(0, 10).to_unit(np.int64(3)) == Integer(0, 10).to_unit(3)

    def test_log_bins_are_optunas(self) -> None:
        """Optuna draws log-uniformly from [low - 0.5, high + 0.5] and rounds."""
        domain, u = Integer(1, 10, "log"), np.linspace(0, 1, 999)
        drawn = np.exp(math.log(0.5) + u * (math.log(10.5) - math.log(0.5)))
        expected = np.clip(np.round(drawn), 1, 10)
        np.testing.assert_array_equal(domain.index(u) + 1, expected)

    def test_log_with_a_step(self) -> None:
        assert Integer(8, 64, "log", step=8).all_values() == list(range(8, 65, 8))
        assert Integer(1, 21, "log", step=10).all_values() == [1, 11, 21]

    def test_values_out_of_range_keep_their_order(self) -> None:
        for domain in (Integer(5, 10), Integer(5, 10, "log"), Integer(5 * 10**19, 10**20)):
            scale = domain.low // 5
            found = [domain.to_unit(v * scale) for v in (2, 4, 5, 7, 10, 11, 12)]
            assert found == sorted(set(found)) and found[1] < 0.0 <= found[2]
            assert found[4] <= 1.0 < found[5]
        assert Integer(5, 10, "log").to_unit(-5) == -9


class TestNormal:
    def test_units_are_quantiles(self) -> None:
        domain = Normal(10, 2)
        assert domain.from_unit(0.5) == pytest.approx(10)
        assert domain.from_unit(0.8413447) == pytest.approx(12, abs=1e-3)
        assert (domain.from_unit(0), domain.from_unit(1)) == (2.0, 18.0)
        assert domain.n_values is None

    def test_a_step_means_multiples_of_it(self) -> None:
        values = Normal(0.35, 0.1, step=0.2).all_values()
        assert values == [0.0, 0.2, 0.4, 0.6, 0.8]
        assert Normal(0.3, 0.1, step=5).n_values == 1

    def test_bins_follow_the_distribution(self) -> None:
        rng = np.random.default_rng(0)
        domain = Normal(0, 1, step=1)
        drawn = domain.index(rng.random(100_000)) - 4
        rounded = np.clip(np.round(rng.normal(size=100_000)), -4, 4)
        for value in range(-2, 3):
            share = (drawn == value).mean()
            assert share == pytest.approx((rounded == value).mean(), abs=0.01)
