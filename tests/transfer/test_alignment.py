"""Configurations of one search space in another one: matching, values, conditions, errors."""

from __future__ import annotations

import math
import pickle
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dre_plugins.space import (
    Categorical,
    Condition,
    Constant,
    Domain,
    Float,
    Integer,
    Normal,
    Ordinal,
    RangeCondition,
    SearchSpace,
)
from dre_plugins.transfer.prior import Prior
from dre_plugins.transfer.spaces.alignment import Alignment, align, aligned_if_any

TREES = ("gbtree", "dart")
DEFAULTS = Prior.load("xgboost").card.defaults
XGBOOST = SearchSpace(
    {
        "booster": Categorical(["gblinear", "gbtree", "dart"]),
        "nrounds": Integer(7, 2981, "log"),
        "eta": Float(1e-3, 1.0, "log"),
        "gamma": Float(1e-5, 7.0, "log"),
        "lambda": Float(1e-3, 1e3, "log"),
        "alpha": Float(1e-3, 1e3, "log"),
        "subsample": Float(0.1, 1.0),
        "max_depth": Integer(1, 15),
        "min_child_weight": Float(2.7, 150.0, "log"),
        "colsample_bytree": Float(0.01, 1.0),
        "colsample_bylevel": Float(0.01, 1.0),
        "rate_drop": Float(0.0, 1.0),
        "skip_drop": Float(0.0, 1.0),
        "imputation": Categorical(["mean", "median", "hist"]),
    },
    [
        *(
            Condition(child, "booster", TREES)
            for child in (
                "eta",
                "gamma",
                "subsample",
                "max_depth",
                "min_child_weight",
                "colsample_bytree",
                "colsample_bylevel",
            )
        ),
        Condition("rate_drop", "booster", ("dart",)),
        Condition("skip_drop", "booster", ("dart",)),
    ],
)


def changed(space: SearchSpace, **domains: Domain | None) -> SearchSpace:
    """Return the space with some domains replaced or added; None removes a parameter."""
    merged = {name: d for name, d in {**space.domains, **domains}.items() if d is not None}
    searched = {name for name, domain in merged.items() if not isinstance(domain, Constant)}
    kept = [c for c in space.conditions if c.child in searched and c.parent in merged]
    return SearchSpace(merged, kept, space.optional & merged.keys())


def drawn(space: SearchSpace, n: int = 200, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return space.canonical(rng.random((n, space.n_parameters)))


def aligned(source: SearchSpace, target: SearchSpace, **options: Any) -> Alignment:
    alignment = align(source, target, **options)
    assert alignment is not None
    return alignment


def converted(
    source: Mapping[str, Domain], target: Mapping[str, Domain], *rows: dict[str, Any]
) -> np.ndarray:
    """Convert configurations between two spaces without conditions."""
    here, there = SearchSpace(source), SearchSpace(target)
    return aligned(here, there).convert(here.to_units(rows))


def exactly(source: SearchSpace, target: SearchSpace, units: np.ndarray) -> np.ndarray:
    """Convert by way of configurations, leaving out categories that the target lacks."""
    configurations = []
    for row in units:
        configuration = source.to_configuration(row)
        for name, value in list(configuration.items()):
            domain = target.domains.get(name)
            if isinstance(domain, (Categorical, Ordinal)) and not domain.contains(value):
                del configuration[name]
        configurations.append(configuration)
    return target.to_units(configurations)


VARIANTS = {
    "the same space": {},
    "a missing parameter": {"alpha": None},
    "an extra parameter": {"max_bin": Integer(16, 512)},
    "a wider range": {"eta": Float(1e-4, 10.0, "log"), "subsample": Float(0.01, 10.0)},
    "a narrower range": {"nrounds": Integer(50, 500, "log"), "subsample": Float(0.4, 0.8)},
    "reordered categories": {"booster": Categorical(["dart", "gblinear", "gbtree"])},
    "extra categories": {"imputation": Categorical(["new", "hist", "newer", "mean"])},
    "int for float": {"max_depth": Float(1.0, 20.0), "min_child_weight": Integer(3, 99, "log")},
    "log for linear": {"subsample": Float(0.1, 1.0, "log"), "nrounds": Integer(7, 2981)},
    "linear for log": {"eta": Float(1e-3, 1.0), "lambda": Float(1e-3, 1e3)},
    "steps": {"colsample_bytree": Float(0.0, 1.0, step=0.1), "max_depth": Integer(1, 15, step=2)},
    "other scales": {"subsample": Normal(0.5, 0.2), "rate_drop": Float(0.0, 0.9, "reverse-log")},
    "no parent": {"booster": Constant("dart")},
}


class TestRealSpace:
    @pytest.mark.parametrize("variant", VARIANTS)
    @pytest.mark.parametrize("forth", [True, False])
    def test_the_fast_way_is_the_exact_one(self, variant: str, forth: bool) -> None:
        other = changed(XGBOOST, **VARIANTS[variant])
        source, target = (XGBOOST, other) if forth else (other, XGBOOST)
        units = drawn(source)
        found = aligned(source, target).convert(units)
        np.testing.assert_allclose(found, exactly(source, target, units), rtol=0, atol=1e-9)

    def test_an_equal_space_changes_nothing(self) -> None:
        alignment = aligned(XGBOOST, changed(XGBOOST))
        units = drawn(XGBOOST)
        units[:, 1] += 0.7  # observed beyond a range that was narrowed since
        np.testing.assert_array_equal(alignment.convert(units), units)
        assert all(link.note == "" for link in alignment.links)

    def test_reordered_categories_change_no_bit(self) -> None:
        shuffled = changed(XGBOOST, booster=Categorical(["dart", "gblinear", "gbtree"]))
        rows = [XGBOOST.to_configuration(row) for row in drawn(XGBOOST)]
        found = aligned(shuffled, XGBOOST).convert(shuffled.to_units(rows))
        np.testing.assert_array_equal(found, XGBOOST.to_units(rows))

    def test_thousands_of_candidates_take_milliseconds(self) -> None:
        target = changed(XGBOOST, **VARIANTS["linear for log"], **VARIANTS["steps"])
        alignment, units = aligned(XGBOOST, target), drawn(XGBOOST, 4000)
        seconds = []
        for _ in range(10):
            start = time.perf_counter()
            alignment.convert(units)
            seconds.append(time.perf_counter() - start)
        assert min(seconds) < 0.05  # 3 ms on a desktop; room for slow machines

    def test_an_alignment_can_be_pickled(self) -> None:
        alignment = aligned(XGBOOST, changed(XGBOOST, max_depth=Float(1, 9)))
        again = pickle.loads(pickle.dumps(alignment))
        np.testing.assert_array_equal(
            again.convert(drawn(XGBOOST)), alignment.convert(drawn(XGBOOST))
        )


def names_linked(source: list[str], target: list[str]) -> dict[str, tuple[str, str]]:
    spaces = [SearchSpace({name: Float(0.1, 1) for name in names}) for names in (source, target)]
    alignment = aligned_if_any(*spaces)
    links = () if alignment is None else alignment.links
    return {link.source: (link.target, link.how) for link in links}


class TestMatching:
    @pytest.mark.parametrize(
        ("source", "target", "how"),
        [
            ("max_depth", "max_depth", "name"),
            ("max-depth", "Max_Depth", "name"),
            ("min.samples", "min_samples", "name"),
            ("max_depth", "model__max_depth", "name"),
            ("params/max_depth", "classifier:tree:max_depth", "name"),
            ("optimizer.width", "width", "name"),
            ("eta", "learning_rate", "alias"),
            ("nrounds", "clf__n_estimators", "alias"),
            ("config/lr", "eta", "alias"),
        ],
    )
    def test_names_that_match(self, source: str, target: str, how: str) -> None:
        assert names_linked([source], [target]) == {source: (target, how)}

    @pytest.mark.parametrize(
        ("source", "target"),
        [
            (["alpha"], ["a__alpha", "b__alpha"]),
            (["eta", "lr"], ["learning_rate"]),
            (["max_depth"], ["depth_max"]),
            (["x__width", "width"], ["y__width"]),
            (["α"], ["β"]),
            (["!"], ["?"]),
        ],
    )
    def test_what_is_ambiguous_or_unknown_is_not_linked(
        self, source: list[str], target: list[str]
    ) -> None:
        assert names_linked(source, target) == {}

    def test_equal_names_come_first(self) -> None:
        assert names_linked(["lr", "width"], ["width", "model__width", "lr"]) == {
            "width": ("width", "name"),
            "lr": ("lr", "name"),
        }

    def test_a_mapping_overrules_names(self) -> None:
        source = SearchSpace({"x": Float(0, 1), "y": Float(0, 1), "z": Float(0, 1)})
        target = SearchSpace({"x": Float(0, 1), "y": Float(0, 1)})
        alignment = aligned(source, target, mapping={"x": "y"})
        assert [(k.source, k.target, k.how) for k in alignment.links] == [("x", "y", "mapping")]
        assert (alignment.missing, alignment.ignored) == (("x",), ("y", "z"))

    def test_nothing_in_common_is_an_error_that_names_both_spaces(self) -> None:
        source, target = SearchSpace({"x": Float(0, 1)}), SearchSpace({"q": Float(0, 1)})
        message = r"\['x'\] in the source, \['q'\] in the target.*mapping=.*Prior.load"
        with pytest.raises(ValueError, match=message):
            align(source, target)
        assert aligned_if_any(source, target) is None

    def test_constants_alone_are_nothing_in_common(self) -> None:
        source = SearchSpace({"x": Float(0, 1), "seed": Constant(1)})
        target = SearchSpace({"q": Float(0, 1), "seed": Integer(0, 9)})
        with pytest.raises(ValueError, match="no parameter in common"):
            align(source, target)

    @pytest.mark.parametrize(
        ("mapping", "message"),
        [
            ({"y": "x"}, r"'y', which the source does not have; it has \['x', 'k'\]"),
            ({"x": "y"}, r"'y', which the target does not have; it has \['x', 'k'\]"),
            ({"x": "x", "k": "x"}, r"'x' of the target twice; join it to one"),
            ({"x": "k"}, r"joins 'x' to 'k', but no value of .* remove it"),
        ],
    )
    def test_wrong_mappings(self, mapping: dict[str, str], message: str) -> None:
        space = SearchSpace({"x": Float(0, 1), "k": Categorical(["a", "b"])})
        with pytest.raises(ValueError, match=message):
            align(space, space, mapping=mapping)

    def test_a_wrong_shape(self) -> None:
        space = SearchSpace({"x": Float(0, 1)})
        with pytest.raises(ValueError, match=r"one column for each of \['x'\], .*\(3, 2\)"):
            aligned(space, space).convert(np.zeros((3, 2)))


class TestNumbers:
    @given(st.floats(0, 1), st.floats(-3, 3), st.floats(0.1, 5))
    def test_inside_the_range_nothing_is_lost(self, unit: float, low: float, width: float) -> None:
        source, target = Float(low, low + width), Float(low - 1, low + width + 1)
        there = converted({"x": source}, {"x": target}, {"x": source.from_unit(unit)})
        assert target.from_unit(there[0, 0]) == pytest.approx(source.from_unit(unit), abs=1e-9)

    def test_beyond_the_range_values_extrapolate(self) -> None:
        source, target = {"x": Float(-100, 100)}, {"x": Float(0, 1)}
        rows = [{"x": x} for x in (-100.0, -0.5, 0.5, 1.5, 100.0)]
        assert converted(source, target, *rows)[:, 0] == pytest.approx([-1, -0.5, 0.5, 1.5, 2])

    def test_what_is_not_positive_is_at_the_end_of_a_log_scale(self) -> None:
        found = converted({"x": Float(-1, 1)}, {"x": Float(1e-3, 1, "log")}, {"x": 0.0})
        assert found[0, 0] == -1

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

    def test_unknown_categories_are_missing(self) -> None:
        source = SearchSpace({"k": Categorical(["a", "b", "c"]), "x": Float(0, 4)})
        target = SearchSpace({"k": Categorical(["c", "z"]), "x": Float(0, 1)})
        units = source.to_units([{"k": k, "x": x} for k, x in zip("aabc", range(4), strict=True)])
        found = aligned(source, target).convert(units)[:, 0]
        assert np.isnan(found).tolist() == [True, True, True, False]

    def test_numbers_are_not_words(self) -> None:
        source = SearchSpace({"x": Float(0, 1), "max_features": Float(0.1, 1)})
        target = SearchSpace({"x": Float(0, 1), "max_features": Categorical(["sqrt", "log2"])})
        alignment = aligned(source, target, defaults={"max_features": "sqrt"})
        assert (alignment.missing, alignment.ignored) == (("max_features",), ("max_features",))
        assert alignment.imputed == {}  # a default would hide that it had another value
        assert "no value in common" in alignment.report()
        assert np.isnan(alignment.convert(drawn(source))[:, 1]).all()


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
        assert alignment.links[0].note == "fixed at 32 in the target"
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

    def test_none_is_a_value(self) -> None:
        source = SearchSpace({"x": Float(0, 1)})
        target = SearchSpace({"x": Float(0, 1), "k": Categorical(["a", None])})
        alignment = aligned(source, target, defaults={"k": None})
        assert alignment.imputed == {"k": None}
        assert (alignment.convert(drawn(source))[:, 1] == 0.75).all()

    def test_a_default_that_is_no_value_is_not_used(self) -> None:
        source = SearchSpace({"x": Float(0, 1)})
        target = SearchSpace({"x": Float(0, 1), "k": Categorical(["a", "b"])})
        alignment = aligned(source, target, defaults={"k": "c"})
        assert alignment.missing == ("k",)
        assert "left missing; the default 'c' is none of its values" in alignment.report()


class TestConditions:
    SOURCE = SearchSpace(
        {"model": Categorical(["svm", "net"]), "C": Float(0.1, 9), "lr": Float(0.1, 1)},
        [Condition("C", "model", ("svm",)), Condition("lr", "model", ("net",))],
    )

    def test_inactive_is_missing_where_there_is_no_condition(self) -> None:
        target = SearchSpace({"C": Float(0.1, 9), "lr": Float(0.1, 1)})
        alignment = aligned(self.SOURCE, target, defaults={"C": 1.0})
        units = self.SOURCE.to_units([{"model": "svm", "C": 1.0}, {"model": "net", "lr": 0.5}])
        assert np.isnan(alignment.convert(units)).tolist() == [[False, True], [True, False]]
        assert alignment.imputed == {}

    def test_an_imputed_parent_decides(self) -> None:
        source = SearchSpace({"C": Float(0.1, 9), "lr": Float(0.1, 1)})
        alignment = aligned(source, self.SOURCE, defaults={"model": "net"})
        assert np.isnan(alignment.convert(drawn(source, 1))).tolist() == [[False, True, False]]

    def test_a_parent_of_which_nothing_is_known_decides_nothing(self) -> None:
        source = SearchSpace({"C": Float(0.1, 9), "lr": Float(0.1, 1)})
        alignment = aligned(source, self.SOURCE)
        assert alignment.missing == ("model",)
        assert np.isnan(alignment.convert(drawn(source, 1))).tolist() == [[True, False, False]]

    def test_conditions_of_the_target_hold(self) -> None:
        source = SearchSpace({"n": Integer(1, 9), "width": Integer(4, 64)})
        target = SearchSpace(
            {"n": Integer(1, 4), "width": Integer(4, 64)}, [RangeCondition("width", "n", low=3)]
        )
        units = source.to_units([{"n": n, "width": 8} for n in (2, 3, 9)])
        found = aligned(source, target).convert(units)
        assert np.isnan(found[:, 1]).tolist() == [True, False, False]


def test_a_default_is_shown_without_the_digits_of_rounding() -> None:
    source = SearchSpace({"x": Float(0.0, 1.0), "eta": Float(1e-4, 1.0, scale="log")})
    alignment = align(SearchSpace({"x": Float(0.0, 1.0)}), source, defaults={"eta": 0.3})
    assert alignment is not None
    assert ("eta", "–", "default", "set to 0.3") in alignment.rows()


def test_the_report_says_it_all() -> None:
    source = SearchSpace(
        {
            "eta": Float(1e-6, 1, "log"),
            "Max-Depth": Integer(1, 15),
            "tree": Categorical(["exact", "hist", "approx"]),
            "step": Float(0, 1, step=0.1),
            "seed": Constant(1),
            "own": Float(0, 1),
        }
    )
    target = SearchSpace(
        {
            "learning_rate": Float(1e-4, 0.1),
            "max_depth": Float(2, 20),
            "tree": Categorical(["hist", "gpu"]),
            "step": Float(0, 1, step=0.25),
            "gamma": Float(1e-5, 7),
            "new": Float(0, 1),
            "lambda": Float(0, 1),
        }
    )
    alignment = aligned(source, target, defaults=DEFAULTS)
    assert alignment.report().splitlines() == [
        "parameter      in the source  by       remark",
        "learning_rate  eta            alias    linear scale in the target, log in the source; "
        "wider in the source: 1e-06…1 against 0.0001…0.1",
        "max_depth      Max-Depth      name     float in the target, int in the source; "
        "another range in the source: 1…15 against 2…20",
        "tree           tree           name     only in the source: ['exact', 'approx']; "
        "only in the target: ['gpu']",
        "step           step           name     step 0.25 in the target, 0.1 in the source",
        "gamma          –              default  set to 1e-05; nearest to the default 0.0",
        "lambda         –              default  set to 1.0",
        "new            –              –        left missing",
        "ignored, only in the source: seed, own",
    ]
