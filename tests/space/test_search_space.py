"""Search spaces: units, activity, features, counting, membership, JSON."""

import copy
import json
import math
import pickle
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

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
from dre_plugins.space.candidates import sobol

SPACE = SearchSpace(
    {
        "units_2": Integer(4, 64, "log"),
        "layers": Integer(1, 3),
        "model": Categorical(["svm", "net"]),
        "C": Float(1e-3, 1e3, "log"),
        "seed": Constant(7),
        "batch": ordered_choices([16, 32, 64]),
        "dropout": Float(0, 0.5, step=0.1),
    },
    [
        RangeCondition("units_2", "layers", low=2),
        Condition("layers", "model", ("net",)),
        Condition("C", "model", ("svm",)),
    ],
    optional=["dropout"],
)
SVM = {"model": "svm", "C": 1.0, "seed": 7, "batch": 32, "dropout": 0.3}
NET = {"units_2": 8, "layers": 2, "model": "net", "seed": 7, "batch": 16, "dropout": 0.0}

coordinates = st.lists(st.floats(0, 1), min_size=6, max_size=6).map(np.array)


class TestUnits:
    def test_names(self) -> None:
        assert SPACE.names == ("units_2", "layers", "model", "C", "batch", "dropout")
        assert SPACE.constants == {"seed": 7}
        assert (SPACE.n_parameters, SPACE.n_features) == (6, 11)
        (model,) = SPACE.category_features
        assert [*range(11)[model]] == SPACE.feature_columns(["model"])

    @pytest.mark.parametrize("configuration", [SVM, NET])
    def test_round_trip(self, configuration: dict[str, Any]) -> None:
        (units,) = SPACE.to_units([configuration])
        decoded = SPACE.to_configuration(units)
        assert decoded == pytest.approx(configuration)
        assert list(decoded) == [name for name in SPACE.domains if name in configuration]

    def test_inactive_and_absent_parameters_are_nan(self) -> None:
        svm, net, partial, noise = SPACE.to_units(
            [SVM, NET, {"model": "net"}, {**SVM, "layers": "no number", "other": 1}]
        )
        assert np.isnan(svm).tolist() == [True, True, False, False, False, False]
        assert np.isnan(net).tolist() == [False, False, False, True, False, False]
        assert np.isnan(partial).tolist() == [True, True, False, True, True, True]
        np.testing.assert_array_equal(noise, svm)

    @given(coordinates)
    def test_canonical_units_are_those_of_the_configuration(self, units: np.ndarray) -> None:
        (canonical,) = SPACE.canonical(units[None])
        (again,) = SPACE.to_units([SPACE.to_configuration(units)])
        np.testing.assert_allclose(again, canonical, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(SPACE.canonical(canonical[None])[0], canonical)
        assert SPACE.contains(SPACE.to_configuration(units))

    @given(coordinates)
    def test_activity_does_not_need_canonical_units(self, units: np.ndarray) -> None:
        active = SPACE.active(units[None])
        np.testing.assert_array_equal(active, SPACE.active(SPACE.canonical(units[None])))
        np.testing.assert_array_equal(active, ~np.isnan(SPACE.canonical(units[None])))

    def test_missing_stays_missing(self) -> None:
        units = np.array([[0.5, 0.5, np.nan, 0.5, np.nan, 0.5]])
        assert np.isnan(SPACE.canonical(units)).tolist() == [[True, True, True, True, True, False]]
        assert SPACE.to_configuration(units[0]) == {"seed": 7, "dropout": 0.3}

    def test_inactive_parameters_can_be_decoded(self) -> None:
        units = np.array([0.5, 0.5, 0.1, 0.5, 0.5, np.nan])
        full = SPACE.to_configuration(units, include_inactive=True)
        assert full.keys() == SPACE.domains.keys() - {"dropout"}
        assert (full["model"], full["layers"]) == ("svm", 2)

    def test_values_out_of_range_extrapolate(self) -> None:
        (units,) = SPACE.to_units([{**NET, "layers": 5}])
        assert units[1] > 1
        assert not math.isnan(units[0])  # five layers have a second one
        assert SPACE.features(units[None])[0, 2] > 1

    def test_errors_name_the_parameter(self) -> None:
        with pytest.raises(ValueError, match=r"parameter 'model': 'tree' is not one of"):
            SPACE.to_units([{"model": "tree"}])
        with pytest.raises(ValueError, match=r"parameter 'dropout': None is not a finite number"):
            SPACE.to_units([{"dropout": None}])

    def test_nothing_in_nothing_out(self) -> None:
        assert SPACE.to_units([]).shape == (0, 6)
        assert SPACE.features(np.empty((0, 6))).shape == (0, 11)
        empty = SearchSpace({"seed": Constant(1)})
        assert empty.to_units([{}, {}]).shape == (2, 0)
        assert empty.canonical(np.empty((2, 0))).shape == (2, 0)
        assert empty.features(np.empty((2, 0))).shape == (2, 0)
        assert empty.to_configuration(np.empty(0)) == {"seed": 1}
        assert empty.n_configurations == 1


class TestConditions:
    def test_all_conditions_of_a_child_must_hold(self) -> None:
        space = SearchSpace(
            {"a": Categorical([0, 1]), "b": Categorical([0, 1]), "c": Float(0, 1)},
            [Condition("c", "a", (1,)), Condition("c", "b", (1,))],
        )
        rows = space.to_units([{"a": a, "b": b, "c": 0.5} for a in (0, 1) for b in (0, 1)])
        assert (~np.isnan(rows[:, 2])).tolist() == [False, False, False, True]

    @pytest.mark.parametrize(
        ("condition", "active"),
        [
            (RangeCondition("x", "n", low=2), {2, 3, 4}),
            (RangeCondition("x", "n", low=1.5), {2, 3, 4}),
            (RangeCondition("x", "n", low=2.1), {3, 4}),
            (RangeCondition("x", "n", low=4), {4}),
            (RangeCondition("x", "n", low=4.5), set()),
            (RangeCondition("x", "n", low=0), {1, 2, 3, 4}),
            (RangeCondition("x", "n", high=2), {1, 2}),
            (RangeCondition("x", "n", high=2.9), {1, 2}),
            (RangeCondition("x", "n", high=0), set()),
            (RangeCondition("x", "n", low=2, high=3), {2, 3}),
            (Condition("x", "n", (1, 4)), {1, 4}),
        ],
    )
    @pytest.mark.parametrize("scale", ["linear", "log"])
    def test_ranges_of_whole_numbers(self, condition: Any, active: set[int], scale: str) -> None:
        space = SearchSpace({"x": Float(0, 1), "n": Integer(1, 4, scale)}, [condition])
        units = space.to_units([{"x": 0.5, "n": n} for n in range(1, 5)])
        assert {n for n in range(1, 5) if not np.isnan(units[n - 1, 0])} == active

    def test_ranges_of_other_parents(self) -> None:
        parents = {"f": Float(0.01, 1, "log"), "o": Ordinal(["low", "mid", "high"])}
        space = SearchSpace(
            {**parents, "x": Float(0, 1), "y": Float(0, 1)},
            [RangeCondition("x", "f", low=0.1), RangeCondition("y", "o", high="mid")],
        )
        rows = [{"f": f, "o": o, "x": 0, "y": 0} for f in (0.09, 0.1) for o in ("mid", "high")]
        missing = np.isnan(space.to_units(rows))
        assert missing[:, 2].tolist() == [True, True, False, False]
        assert missing[:, 3].tolist() == [False, True, False, True]

    def test_a_constant_parent_decides_once(self) -> None:
        domains = {"k": Constant("a"), "x": Float(0, 1), "y": Float(0, 1), "n": Constant(3)}
        conditions = [Condition("x", "k", ("a",)), Condition("y", "k", ("b",))]
        space = SearchSpace(domains, [*conditions, RangeCondition("x", "n", low=2)])
        assert space.active(np.full((1, 2), 0.5)).tolist() == [[True, False]]
        assert space.to_configuration(np.array([0.5, 0.5])) == {"k": "a", "x": 0.5, "n": 3}

    @pytest.mark.parametrize(
        ("conditions", "message"),
        [
            ([Condition("x", "nope", (1,))], "names 'nope', which is none of"),
            ([Condition("nope", "x", (1,))], "names 'nope', which is none of"),
            ([Condition("k", "k", ("a",))], r"\['k', 'm'\]|\['k'\] form a cycle"),
            (
                [Condition("k", "m", ("a",)), Condition("m", "k", ("a",))],
                r"\['k', 'm'\] form a cycle",
            ),
            ([Condition("x", "k", ("z",))], "'z' is not one of"),
            ([Condition("k", "x", (0.5,))], "use a RangeCondition"),
            ([RangeCondition("x", "k", low="a")], "list the values instead"),
            ([RangeCondition("k", "x", low="a")], "'a' is not a finite number"),
            ([RangeCondition("k", "c", low="a")], "parent 'c': .* not supported between"),
            ([Condition("c", "k", ("a",))], "Categorical with one choice"),
        ],
    )
    def test_impossible_conditions_say_why(self, conditions: list[Any], message: str) -> None:
        kind = Categorical(["a", "b"])
        domains = {"x": Float(0, 1), "k": kind, "m": kind, "c": Constant(1)}
        with pytest.raises(ValueError, match=message):
            SearchSpace(domains, conditions)

    def test_other_invalid_arguments(self) -> None:
        with pytest.raises(ValueError, match=r"optional names \['y'\]"):
            SearchSpace({"x": Float(0, 1)}, optional=["y"])
        with pytest.raises(ValueError, match="parameter 'x' must be a Domain"):
            SearchSpace({"x": (0, 1)})  # type: ignore[dict-item]


class TestFeatures:
    def test_values(self) -> None:
        features = SPACE.features(SPACE.to_units([SVM, {**NET, "layers": 1}, {}]))
        assert features.dtype == np.float32
        expected = [
            [0.5, 0, 0.5, 0, 1, 0, 0.5, 1, 0.5, 0.6, 1],
            [0.5, 0, 0.0, 1, 0, 1, 0.5, 0, 0.0, 0.0, 1],
            [0.5, 0, 0.5, 0, 0, 0, 0.5, 0, 0.5, 0.5, 0],
        ]
        np.testing.assert_allclose(features, expected, atol=1e-6)


class TestCounting:
    @pytest.mark.parametrize(
        ("space", "count"),
        [
            (SearchSpace({}), 1),
            (SearchSpace({"a": Integer(1, 3), "b": Categorical(["x", "y"])}), 6),
            (SearchSpace({"a": Float(0, 1)}), None),
            (SearchSpace({"a": Float(0, 1, step=0.25)}), 5),
            (SearchSpace({"a": Integer(0, 10**20)}), None),
            (SearchSpace({f"p{i}": Integer(1, 10) for i in range(15)}), 10**15),
            (SearchSpace({f"p{i}": Integer(1, 10) for i in range(400)}), None),
            (
                SearchSpace(
                    {"a": Categorical(["x", "y", "z"]), "b": Integer(1, 10), "c": Integer(1, 4)},
                    [Condition("b", "a", ("x",)), RangeCondition("c", "b", low=9)],
                ),
                2 + 8 + 2 * 4,
            ),
        ],
    )
    def test_distinct_configurations(self, space: SearchSpace, count: int | None) -> None:
        assert space.n_configurations == count


class TestMembership:
    def test_good_ones(self) -> None:
        for configuration in (SVM, NET, {**SVM, "layers": 99}, {**SVM, "other": 1}):
            assert SPACE.contains(configuration)
        assert SPACE.contains({k: v for k, v in SVM.items() if k not in ("seed", "dropout")})

    @pytest.mark.parametrize(
        "change", [{"batch": 17}, {"dropout": 0.25}, {"C": 1e4}, {"seed": 8}, {"model": "net"}]
    )
    def test_bad_ones(self, change: dict[str, Any]) -> None:
        assert not SPACE.contains({**SVM, **change})


class TestIdentity:
    def test_copies_are_equal(self) -> None:
        assert copy.deepcopy(SPACE) == SPACE == pickle.loads(pickle.dumps(SPACE))
        assert SearchSpace(SPACE.domains, SPACE.conditions) != SPACE
        assert SearchSpace({"a": Float(0, 1), "b": Float(0, 1)}) != SearchSpace(
            {"b": Float(0, 1), "a": Float(0, 1)}
        )

    def test_json_round_trip(self) -> None:
        domains = {
            **SPACE.domains,
            "normal": Normal(0, 1, step=0.5),
            "level": Ordinal([1, 2, 4], "log"),
            "mixed": Categorical([None, True, 1, 1.0, "x", [1, 2], {"a": 1}]),
            "reverse": Float(0, 0.9, "reverse-log"),
        }
        space = SearchSpace(domains, SPACE.conditions, SPACE.optional)
        assert SearchSpace.from_dict(json.loads(json.dumps(space.to_dict()))) == space

    @pytest.mark.parametrize("part", ["domains", "conditions"])
    def test_unknown_kinds_are_refused(self, part: str) -> None:
        state = json.loads(json.dumps(SPACE.to_dict()))
        entries = state[part].values() if part == "domains" else state[part]
        next(iter(entries))["kind"] = "Quantum"
        with pytest.raises(ValueError, match="unknown kind 'Quantum'"):
            SearchSpace.from_dict(state)

    def test_repr_rebuilds_what_it_shows(self) -> None:
        assert eval(repr(SPACE)) == SPACE


def test_a_pool_is_encoded_fast() -> None:
    """About 1.3 ms measured; the bound only catches a loop over candidates."""
    domains = {f"p{i}": Integer(1, 1000, "log") for i in range(10)} | {
        f"c{i}": Categorical(["x", "y", "z"]) for i in range(4)
    }
    conditions = [Condition(f"p{i}", "c0", ("x",)) for i in range(4)]
    space = SearchSpace(domains, conditions)
    pool = sobol(14, 4096, np.random.default_rng(0))
    start = time.process_time()
    space.features(space.canonical(pool))
    assert time.process_time() - start < 0.1
