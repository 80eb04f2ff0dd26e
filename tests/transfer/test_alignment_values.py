"""Values of one search space in another one: numbers, categories, constants, defaults."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from alignments import DEFAULTS, XGBOOST, aligned, changed
from hypothesis import given, strategies as st
from small_spaces import drawn

from dre_plugins.space import Categorical, Constant, Domain, Float, Integer, Ordinal, SearchSpace


def converted(
    source: Mapping[str, Domain], target: Mapping[str, Domain], *rows: dict[str, Any]
) -> np.ndarray:
    """Convert configurations between two spaces without conditions."""
    here, there = SearchSpace(source), SearchSpace(target)
    return aligned(here, there).convert(here.to_units(rows))


class TestNumbers:
    @given(st.floats(0, 1), st.floats(-3, 3), st.floats(0.1, 5))
    def test_inside_the_range_nothing_is_lost(self, unit: float, low: float, width: float) -> None:
        source, target = Float(low, low + width), Float(low - 1, low + width + 1)
        there = converted({"x": source}, {"x": target}, {"x": source.from_unit(unit)})
        assert target.from_unit(there[0, 0]) == pytest.approx(source.from_unit(unit), abs=1e-9)

    def test_beyond_the_range_values_extrapolate(self) -> None:
        source, target = {"x": Float(-100, 100)}, {"x": Float(0, 1)}
        rows = [{"x": x} for x in (-100.0, -0.5, 0.5, 1.5, 100.0)]
        assert converted(source, target, *rows)[:, 0] == pytest.approx([-9, -0.5, 0.5, 1.5, 10])

    def test_what_is_not_positive_is_at_the_end_of_a_log_scale(self) -> None:
        found = converted({"x": Float(-1, 1)}, {"x": Float(1e-3, 1, "log")}, {"x": 0.0})
        assert found[0, 0] == -9

    @pytest.mark.parametrize(
        ("target", "place"),
        [
            (Ordinal([16, 32, 64]), 1.5),
            (Ordinal([16, 32, 64], "linear"), 1.5),
            (Ordinal([16, 32, 64], "log"), 1 + math.log2(1.5)),
            (Ordinal([64, 32, 16]), 0.5),
        ],
    )
    def test_numbers_between_those_of_an_ordinal(self, target: Ordinal, place: float) -> None:
        found = converted({"x": Integer(1, 512)}, {"x": target}, {"x": 48}, {"x": 32}, {"x": 512})
        assert found[0, 0] == pytest.approx((place + 0.5) / 3)
        assert found[1, 0] == 0.5
        assert not 0 <= found[2, 0] <= 1

    def test_an_ordinal_among_numbers(self) -> None:
        target = Float(8, 128, "log")
        found = converted({"x": Ordinal([16, 32, 64])}, {"x": target}, {"x": 64}, {"x": 16})
        assert found[:, 0] == pytest.approx(target.to_units([64, 16]))
        found = converted({"x": Ordinal([16, 32])}, {"x": Ordinal([8, 16, 64])}, {"x": 32})
        assert found[0, 0] == pytest.approx((1 + 1 / 3 + 0.5) / 3)

    def test_categories_that_are_numbers(self) -> None:
        numbers, choices = {"x": Float(0, 1)}, {"x": Categorical([0.5, "auto", 0.1])}
        found = converted(choices, numbers, {"x": 0.1}, {"x": "auto"}, {"x": 0.5})[:, 0]
        np.testing.assert_allclose(found, [0.1, np.nan, 0.5])
        found = converted(numbers, choices, {"x": 0.1}, {"x": 0.5}, {"x": 0.3})[:, 0]
        np.testing.assert_allclose(found, [5 / 6, 1 / 6, np.nan])
        small = {"x": Categorical([0.0, 1e-12, 1e-10, "auto"])}
        found = converted(numbers, small, *({"x": x} for x in (1e-10, 1e-12, 0.0, 1e-11)))[:, 0]
        np.testing.assert_allclose(found, [5 / 8, 3 / 8, 1 / 8, np.nan])


class TestCategories:
    @pytest.mark.parametrize(
        ("source", "target", "index"),
        [
            ([True, 1, 1.0], [1.0, True, 1], [1, 2, 0]),
            (["1", "2"], [2, 1], [1, 0]),
            ([1.0, 2.0], [1, 2], [0, 1]),
            (["True", "False"], [False, True], [1, 0]),
            (["Adam", "SGD"], ["sgd", "adam", "lion"], [1, 0]),
            ([None, "x"], ["x", "None"], [1, 0]),
            ([(1, 2), [3]], [[1, 2], (3,)], [0, 1]),
            (["a", "A"], ["A", "b"], [None, 0]),
            (["A", "c"], ["a", " A", "c"], [None, 2]),
            ([{"k": [1]}, "y"], ["y", {"k": [1]}], [1, 0]),
        ],
    )
    def test_by_value_never_by_index(
        self, source: list[Any], target: list[Any], index: list[int | None]
    ) -> None:
        rows = [{"k": value} for value in source]
        found = converted({"k": Categorical(source)}, {"k": Categorical(target)}, *rows)[:, 0]
        expected = [math.nan if i is None else (i + 0.5) / len(target) for i in index]
        np.testing.assert_allclose(found, expected)

    @pytest.mark.parametrize(
        ("other", "default"), [(Categorical(["sqrt", "log2"]), "sqrt"), (Integer(1, 9), 3)]
    )
    def test_shares_are_neither_words_nor_counts(self, other: Domain, default: object) -> None:
        source = SearchSpace({"x": Float(0, 1), "max_features": Float(0.1, 1)})
        target = SearchSpace({"x": Float(0, 1), "max_features": other})
        alignment = aligned(source, target, defaults={"max_features": default})
        assert (alignment.missing, alignment.ignored) == (("max_features",), ("max_features",))
        assert alignment.imputed == {}  # a default would hide that it had another value
        assert "no value in common" in alignment.report()
        assert np.isnan(alignment.convert(drawn(source))[:, 1]).all()

    def test_costs_are_numbers_of_one_kind(self) -> None:
        source, target = (SearchSpace({"C": part}) for part in (Float(0.1, 1), Integer(1, 9)))
        assert [link.target for link in aligned(source, target).links] == ["C"]


class TestConstants:
    def test_a_constant_of_the_source_is_its_value_everywhere(self) -> None:
        fixed = changed(XGBOOST, booster=Constant("gbtree"), eta=Constant(0.1))
        found = aligned(fixed, XGBOOST).convert(drawn(fixed))
        assert (found[:, 0] == 0.5).all()
        assert found[:, 2] == pytest.approx(XGBOOST.domains["eta"].to_unit(0.1))
        assert np.isnan(found[:, 11:13]).all() and not np.isnan(found[:, :11]).any()

    def test_a_constant_that_the_target_does_not_list_is_missing(self) -> None:
        source = SearchSpace({"x": Float(0, 1), "k": Constant("z")})
        target = SearchSpace({"x": Float(0, 1), "k": Categorical(["a", "b"])})
        assert aligned(source, target, defaults={"k": "a"}).missing == ("k",)

    def test_a_constant_of_the_target_needs_nothing(self) -> None:
        source = SearchSpace({"x": Float(0, 1), "batch": Integer(1, 64)})
        target = SearchSpace({"batch": Constant(32), "x": Float(0, 1), "seed": Constant(1)})
        alignment = aligned(source, target)
        assert (alignment.missing, alignment.ignored) == ((), ())
        assert alignment.links[0].note() == "constant 32 in the past, integer 1 … 64 in this study"
        assert alignment.convert(drawn(source)).shape == (200, 1)


class TestDefaults:
    def test_only_given_defaults_are_used(self) -> None:
        small = SearchSpace({"eta": Float(1e-3, 1, "log"), "max_depth": Integer(1, 15)})
        bare = aligned(small, XGBOOST)
        assert set(bare.missing) == set(XGBOOST.names) - {"eta", "max_depth"}
        full = aligned(small, XGBOOST, defaults=DEFAULTS)
        assert full.missing == ("imputation",)
        assert full.imputed["booster"] == "gbtree"
        assert full.imputed["gamma"] == 1e-5  # the lowest value is nearest to the default 0
        assert full.remarks["gamma"] == "nearest to the default 0.0"
        units = small.to_units([{"eta": 0.1, "max_depth": 5}])
        found = XGBOOST.to_configuration(full.convert(units)[0])
        assert found == pytest.approx(
            {
                "booster": "gbtree",
                "nrounds": 100,
                "eta": 0.1,
                "gamma": 1e-5,
                "lambda": 1.0,
                "alpha": 1e-3,
                "subsample": 1.0,
                "max_depth": 5,
                "min_child_weight": 2.7,
                "colsample_bytree": 1.0,
                "colsample_bylevel": 1.0,
            }
        )

    def test_defaults_may_go_by_another_known_name(self) -> None:
        source = SearchSpace({"max_depth": Integer(1, 9)})
        target = SearchSpace({"learning_rate": Float(0.01, 1), "max_depth": Integer(1, 9)})
        alignment = aligned(source, target, defaults=DEFAULTS)
        assert alignment.imputed == {"learning_rate": pytest.approx(0.3)}

    def test_none_is_a_value_and_what_is_no_value_is_not_used(self) -> None:
        source = SearchSpace({"x": Float(0, 1)})
        target = SearchSpace({"x": Float(0, 1), "k": Categorical(["a", None])})
        alignment = aligned(source, target, defaults={"k": None})
        assert alignment.imputed == {"k": None}
        assert (alignment.convert(drawn(source))[:, 1] == 0.75).all()
        alignment = aligned(source, target, defaults={"k": "c"})
        assert alignment.missing == ("k",)
        assert "left missing; the default 'c' is none of its values" in alignment.report()
