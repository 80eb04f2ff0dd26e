"""Configurations of one search space in another one: matching, conditions, the report."""

import time

import numpy as np
import pytest
from alignments import DEFAULTS, XGBOOST, aligned, changed
from small_spaces import drawn

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
)
from dre_plugins.transfer.spaces.alignment import align, try_align


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
        assert all(link.note() == "" for link in alignment.links)

    def test_thousands_of_candidates_take_milliseconds(self) -> None:
        target = changed(XGBOOST, **VARIANTS["linear for log"], **VARIANTS["steps"])
        alignment, units = aligned(XGBOOST, target), drawn(XGBOOST, 4000)
        seconds = []
        for _ in range(10):
            start = time.process_time()
            alignment.convert(units)
            seconds.append(time.process_time() - start)
        assert min(seconds) < 0.05  # 3 ms on a desktop; room for slow machines


def names_linked(source: list[str], target: list[str]) -> dict[str, tuple[str, str]]:
    spaces = [SearchSpace({name: Float(0.1, 1) for name in names}) for names in (source, target)]
    alignment = try_align(*spaces)
    links = () if alignment is None else alignment.links
    return {link.source: (link.target, link.how) for link in links}


class TestMatching:
    @pytest.mark.parametrize(
        ("source", "target", "how"),
        [
            ("max_depth", "max_depth", "name"),
            ("max-depth", "Max_Depth", "name"),
            ("min.samples", "min_samples", "name"),
            ("ownName", "model.own_name", "name"),
            ("ownName", "ownname", "name"),
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

    def test_nothing_but_constants_in_common_is_an_error_that_names_both_spaces(self) -> None:
        source = SearchSpace({"x": Float(0, 1), "seed": Constant(1)})
        target = SearchSpace({"q": Float(0, 1), "seed": Integer(0, 9)})
        message = (
            r"no parameter in common: \['x', .* study, \['q', .* past.*mapping=.*Prior.load.*"
            r"PastTasks"
        )
        for other in (target, SearchSpace({"q": Float(0, 1)})):
            assert try_align(source, other) is None
        with pytest.raises(ValueError, match=message):
            align(source, target)

    def test_equal_names_without_a_common_value_need_no_mapping(self) -> None:
        source = SearchSpace({"x": Float(0, 1), "max_features": Float(0.1, 1)})
        target = SearchSpace({"max_features": Integer(1, 20)})
        with pytest.raises(ValueError, match=r"'max_features' is Float.*, Integer\(.*past\.$"):
            align(source, target)

    def test_a_mapping_of_what_has_no_value_in_common(self) -> None:
        space = SearchSpace({"x": Float(0, 1), "k": Categorical(["a", "b"])})
        with pytest.raises(ValueError, match=r"joins 'x' to 'k', but no value of .* remove it"):
            align(space, space, mapping={"x": "k"})

    def test_a_wrong_shape(self) -> None:
        space = SearchSpace({"x": Float(0, 1)})
        with pytest.raises(ValueError, match=r"one column for each of \['x'\], .*\(3, 2\)"):
            aligned(space, space).convert(np.zeros((3, 2)))


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
    assert alignment.report().split()[-6:] == ["eta", "–", "default", "set", "to", "0.3"]


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
        "in the past    in this study  by       remark",
        "learning_rate  eta            alias    float 0.0001 … 0.1 in the past, "
        "float 1e-06 … 1, log in this study",
        "max_depth      Max-Depth      name     float 2 … 20 in the past, "
        "integer 1 … 15 in this study",
        "tree           tree           name     categorical hist, gpu in the past, "
        "categorical exact, hist, approx in this study",
        "step           step           name     float 0 … 1, step 0.25 in the past, "
        "float 0 … 1, step 0.1 in this study",
        "gamma          –              default  set to 1e-05; nearest to the default 0.0",
        "lambda         –              default  set to 1.0",
        "new            –              –        left missing",
        "ignored, only in this study: seed, own",
    ]
    assert alignment.summary().endswith("; not: own")  # there is nothing to know of a constant
