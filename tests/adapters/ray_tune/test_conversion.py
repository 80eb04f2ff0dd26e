"""Parameter spaces of Ray Tune: what is searched, and what trials are given."""

import copy
import math
from typing import Any

import numpy as np
import pytest
from marks import label_of
from ray import cloudpickle, tune
from ray.tune.search.sample import Float as RayFloat
from ray.tune.utils import flatten_dict

from dre_plugins.adapters.ray_tune.conversion import ParamSpace, domain_of
from dre_plugins.space import (
    Categorical,
    Constant,
    Domain,
    Float,
    Integer,
    Normal,
    Ordinal,
    SearchSpace,
    UnsupportedDomainError,
)
from dre_plugins.space.conditions import Condition


def configs(param_space: dict[str, Any], n: int = 300) -> list[dict[str, Any]]:
    """Return configurations as trials are given them, drawn evenly."""
    converted = ParamSpace.of(param_space)
    space = converted.space
    units = space.canonical(np.random.default_rng(0).random((n, space.n_parameters)))
    return [converted.to_config(space.to_configuration(row)) for row in units]


# ---- every domain by itself

NUMBERS: list[tuple[Any, Domain, float | None]] = [  # domain of Ray, ours, step
    (tune.uniform(0.5, 2), Float(0.5, 2.0), None),
    (tune.loguniform(1e-4, 1), Float(1e-4, 1.0, "log"), None),
    (tune.quniform(0, 1, 0.25), Float(0.0, 1.0, step=0.25), 0.25),
    (tune.quniform(0.1, 0.9, 0.1), Float(0.1, 0.9, step=0.1), 0.1),
    (tune.quniform(1, 2.5, 0.1), Float(1.0, 2.5, step=0.1), 0.1),  # once a bug of HEBO
    (tune.qloguniform(0.5, 8, 0.5), Float(0.5, 8.0, "log", 0.5), 0.5),
    (tune.randint(1, 4), Integer(1, 3), None),
    (tune.randint(1, 1e1), Integer(1, 9), None),
    (tune.lograndint(1, 1000), Integer(1, 999, "log"), None),
    (tune.qrandint(4, 12, 4), Integer(4, 12, step=4), 4),
    (tune.qrandint(3, 13, 4), Integer(4, 12, step=4), 4),  # between multiples
    (tune.qrandint(1, 10**11, 10**10), Integer(10**10, 10**11, step=10**10), 10**10),
    (tune.qrandint(1, 4, 1), Integer(1, 3), None),
    (tune.qlograndint(4, 64, 4), Integer(4, 64, "log", 4), 4),
    (tune.randn(1, 2), Normal(1.0, 2.0), None),
    (tune.qrandn(1, 2, 0.5), Normal(1.0, 2.0, 0.5), 0.5),
]


@pytest.mark.parametrize(("domain", "expected", "step"), NUMBERS, ids=label_of)
def test_numbers_have_their_domain_their_type_and_their_grid(domain, expected, step) -> None:
    converted = domain_of("x", domain)
    assert type(converted) is type(expected) and converted.n_values == expected.n_values
    if isinstance(expected, Float):  # 9 * 0.1 is not quite 0.9
        assert converted.scale == expected.scale
        assert converted.from_unit(0.0) == pytest.approx(expected.from_unit(0.0))
        assert converted.from_unit(1.0) == pytest.approx(expected.from_unit(1.0))
    else:
        assert converted == expected
    for value in [config["x"] for config in configs({"x": domain})]:
        assert type(value) is (int if isinstance(expected, Integer) else float)
        assert converted.from_unit(0.0) <= value <= converted.from_unit(1.0)
        # On a grid it is the decimal that the user would write.
        assert step is None or value == round(round(value / step) * step, 10)
        assert converted.contains(value) and domain.is_valid(value)
    for value in domain.sample(size=50, random_state=0):
        assert converted.contains(domain.cast(value)), value  # before 2.44 integers were floats


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (tune.choice(["b", None, (1, 2)]), Categorical(("b", None, (1, 2)))),
        (tune.grid_search(["a", "b"]), Categorical(("a", "b"))),
        (tune.choice(["a", "a", "b"]), Categorical(("a", "b"))),
        (7, Constant(7)),
    ],
    ids=label_of,
)
def test_other_domains(entry: Any, expected: Domain) -> None:
    assert domain_of("x", entry) == expected


ANYTHING: list[Any] = [None, True, 1, 1.0, "1", (1, 2), [1, 2], {"k": 1}, len, math.nan, {3}]


def test_choices_may_be_anything_and_come_back_as_they_were() -> None:
    found = [config["x"] for config in configs({"x": tune.choice(ANYTHING)})]
    kinds = {(type(value), repr(value)) for value in found}
    assert kinds == {(type(value), repr(value)) for value in ANYTHING}
    converted = ParamSpace.of({"x": tune.choice(ANYTHING)})
    for choice in ANYTHING:
        assert converted.to_configuration({"x": choice})["x"] is choice


def test_numpy_choices_come_back_as_they_were() -> None:
    found = [config["x"] for config in configs({"x": tune.choice([np.int64(1), np.int64(2)])})]
    assert {type(value) for value in found} == {np.int64}


def test_choices_of_ascending_numbers_are_ordered_unless_told_otherwise() -> None:
    space = {"x": tune.choice([16, 32, 64]), "y": tune.choice([3, 1, 2])}
    space["idx"] = tune.choice([0, 1, 2])
    assert ParamSpace.of(space).space.domains["x"] == Ordinal((16, 32, 64))
    assert ParamSpace.of(space).space.domains["y"] == Categorical((3, 1, 2))
    assert ParamSpace.of(space).space.domains["idx"] == Categorical((0, 1, 2))
    plain = ParamSpace.of(space, ordered=False)
    assert plain.space.domains["x"] == Categorical((16, 32, 64))


# ---- containers


def test_dictionaries_and_constants() -> None:
    space = {"m": {"lr": tune.uniform(0, 1), "d": {"n": tune.randint(1, 9), "k": 3}}, "s": {}}
    converted = ParamSpace.of(space)
    assert converted.space == SearchSpace(
        {"m/lr": Float(0.0, 1.0), "m/d/n": Integer(1, 8), "m/d/k": Constant(3), "s": Constant({})}
    )
    assert converted.space == ParamSpace.of_results(space).space
    config = converted.to_config({"m/lr": 0.5, "m/d/n": 2})
    assert config == {"m": {"lr": 0.5, "d": {"n": 2, "k": 3}}, "s": {}}
    assert list(config["m"]["d"]) == ["n", "k"]


def test_lists_and_tuples_keep_their_type_and_their_constants() -> None:
    space = {"layers": [tune.randint(1, 9), 64, ("a", tune.choice(["b", "c"]))], "l": [1, {}]}
    converted = ParamSpace.of(space)
    assert list(converted.space.names) == ["layers/0", "layers/2/1"]
    for config in configs(space, 20):
        first, second, third = config["layers"]
        assert type(config["layers"]) is list and type(third) is tuple
        assert 1 <= first < 9 and second == 64 and third in {("a", "b"), ("a", "c")}
        assert config["l"] == [1, {}]


def test_keys_need_not_be_strings() -> None:
    for config in configs({1: tune.uniform(0, 1), "d": {2.5: tune.uniform(0, 1)}}, 3):
        assert list(config) == [1, "d"] and list(config["d"]) == [2.5]


# ---- choices with domains inside

OPTIMIZERS = [
    {"name": "sgd", "lr": tune.loguniform(1e-4, 1), "momentum": tune.uniform(0, 1), "c": 5},
    {"name": "adam", "lr": tune.loguniform(1e-4, 1)},
    {"name": "lbfgs", "lr": tune.uniform(0, 2)},
]


def test_branches_become_conditional_parameters() -> None:
    space = ParamSpace.of({"opt": tune.choice(OPTIMIZERS)}).space
    assert space == SearchSpace(
        {
            "opt/name": Categorical(("sgd", "adam", "lbfgs")),
            "opt/lr": Float(1e-4, 1.0, "log"),
            "opt/momentum": Float(0.0, 1.0),
            "opt[2]/lr": Float(0.0, 2.0),
        },
        [
            Condition("opt/lr", "opt/name", ("sgd", "adam")),
            Condition("opt/momentum", "opt/name", ("sgd",)),
            Condition("opt[2]/lr", "opt/name", ("lbfgs",)),
        ],
    )


def test_a_trial_is_given_one_branch_and_its_constants() -> None:
    shapes = set()
    for config in configs({"opt": tune.choice(OPTIMIZERS)}):
        shapes.add((config["opt"]["name"], *list(config["opt"])[1:], config["opt"].get("c")))
    assert shapes == {
        ("sgd", "lr", "momentum", "c", 5),
        ("adam", "lr", None),
        ("lbfgs", "lr", None),
    }


def test_what_all_branches_have_is_always_active() -> None:
    rate = tune.uniform(0, 1)
    space = ParamSpace.of({"o": tune.choice([{"k": 1, "r": rate}, {"k": 2, "r": rate}])}).space
    assert space.conditions == ()


def test_branches_that_nothing_tells_apart_and_branches_of_any_kind() -> None:
    choice = tune.choice(
        [None, {"p": tune.uniform(0, 1)}, tune.uniform(5, 6), [tune.randint(0, 3)]]
    )
    converted = ParamSpace.of({"x": choice})
    assert converted.space.domains["x"] == Categorical((None, "choice 1", "choice 2", "choice 3"))
    assert set(converted.space.names) == {"x", "x/p", "x[2]", "x/0"}
    found = [config["x"] for config in configs({"x": choice})]
    assert {type(value) for value in found} == {type(None), dict, float, list}
    assert all(5 <= value <= 6 for value in found if isinstance(value, float))


def test_choices_in_choices() -> None:
    inner = tune.choice([{"kind": "a", "p": tune.uniform(0, 1)}, {"kind": "b"}])
    space = {"x": tune.choice([{"name": "one", "in": inner}, {"name": "two"}])}
    converted = ParamSpace.of(space)
    assert set(converted.space.names) == {"x/name", "x/in/kind", "x/in/p"}
    for config in configs(space, 100):
        if config["x"]["name"] == "two":
            assert config["x"] == {"name": "two"}
        else:
            assert ("p" in config["x"]["in"]) == (config["x"]["in"]["kind"] == "a")
        back = converted.to_configuration(config)
        assert converted.to_config(back) == config


def test_equal_choices_in_two_branches_are_parameters_of_their_own() -> None:
    def inner(high: float) -> Any:
        return tune.choice([{"p": tune.uniform(0, high)}, None])

    branches = [{"k": 1, "in": inner(1)}, {"k": 2, "in": inner(2)}]
    converted = ParamSpace.of({"x": tune.choice(branches)})
    assert set(converted.space.names) == {"x/k", "x/in", "x/in/p", "x[1]/in", "x[1]/in/p"}
    highest = {1: 0.0, 2: 0.0}
    for config in configs({"x": tune.choice(branches)}):
        if config["x"]["in"]:
            highest[config["x"]["k"]] = max(highest[config["x"]["k"]], config["x"]["in"]["p"])
        assert converted.to_config(converted.to_configuration(config)) == config
    assert 0.9 < highest[1] <= 1 and 1.8 < highest[2] <= 2


# ---- the other way round

EVERYTHING: dict[str, Any] = {
    "uniform": NUMBERS[0][0],
    **{f"number {place}": domain for place, (domain, *_) in enumerate(NUMBERS)},
    "opt": tune.choice(OPTIMIZERS),
    "any": tune.choice([None, (1, 2), [3], len]),
    "n": {"z": tune.randint(0, 5), "c": {"d": (1, 2)}},
    "layers": [tune.randint(1, 9), 64],
    "const": 7,
}


def test_nested_and_flat_configurations_are_read_back() -> None:
    converted = ParamSpace.of(EVERYTHING)
    for config in configs(EVERYTHING, 50):
        configuration = converted.to_configuration(config)
        assert converted.to_config(configuration) == config
        assert converted.space.contains(configuration)
        assert converted.to_configuration(flatten_dict(config, "/")) == configuration
        mixed = {**config, "n": {"c": {"d": [1, 2]}}, "n/z": config["n"]["z"]}
        assert converted.to_configuration(mixed) == configuration


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ({}, {}),
        ({"n": {"z": 2}}, {"n/z": 2}),
        ({"n/z": 2, "const": 7, "n": {"c": {"d": (1, 2)}}}, {"n/z": 2}),
        ({"layers": [3, 64]}, {"layers/0": 3}),
        ({"layers": {"0": 3}}, {"layers/0": 3}),
        ({"layers/0": 3}, {"layers/0": 3}),
        ({"opt": {"name": "adam"}}, {"opt/name": "adam"}),
        ({"opt": {"lr": 0.1}}, {"opt/name": "sgd", "opt/lr": 0.1}),
        ({"opt": {"lr": 1.5}}, {"opt/name": "lbfgs", "opt[2]/lr": 1.5}),
        ({"opt": {"lr": 9.5}}, {"opt/name": "sgd", "opt/lr": 9.5}),
        ({"opt/momentum": 0.5}, {"opt/name": "sgd", "opt/momentum": 0.5}),
        ({"any": [1, 2]}, {"any": (1, 2)}),  # a file of Ray has lists only
        ({"uniform": 7.0}, {"uniform": 7.0}),  # out of range, but a number
        ({"uniform": np.float64(1.5)}, {"uniform": 1.5}),
        ({"__trial_index__": 3}, {}),  # what Ray's Repeater adds
    ],
    ids=label_of,
)
def test_points_may_be_nested_flat_and_partial(point, expected) -> None:
    before = copy.deepcopy(point)
    assert ParamSpace.of(EVERYTHING).to_configuration(point) == expected
    assert point == before


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ({"y": 1}, r"no parameter 'y'; there are \['uniform', .*'const'\]"),
        ({"n": {"y": 1}}, r"no parameter 'n/y'; there are \['n/z', 'n/c'\]"),
        ({"n/y": 1}, r"no parameter 'n/y'"),
        ({"n": 3}, r"'n' must be a dict, got 3"),
        ({"const": 8}, r"'const' is the constant 7, got 8"),
        ({"layers": [1]}, r"'layers' needs 2 items, got \[1\]"),
        ({"layers": [1, 65]}, r"'layers/1' is the constant 64"),
        ({"uniform": "big"}, r"'uniform'.*'big'"),
        ({"uniform": math.nan}, r"'uniform'.*nan"),
        ({"uniform": 10**400}, r"'uniform'.*10000"),
        ({"layers/0": 10**400}, r"'layers/0'.*10000"),
        ({"any": (1, 3)}, r"'any'.*\(1, 3\)"),
        ({"opt": {"name": "rprop"}}, r"no choice of 'opt'.*'sgd'"),
        ({"opt": {"name": "adam", "momentum": 0.5}}, r"no choice of 'opt'.*'opt/momentum'"),
    ],
    ids=label_of,
)
def test_unknown_names_and_values_are_refused_by_name(point: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ParamSpace.of(EVERYTHING).to_configuration(point)


def test_what_a_placeholder_of_a_tuner_stands_for_is_not_known() -> None:
    space = {"f": ("__fn_ph", "0a1b"), "r": ("__ref_ph", "2c3d"), "x": tune.uniform(0, 1)}
    converted = ParamSpace.of(space)
    assert list(converted.space.domains) == ["x"]
    assert converted.to_config({"x": 0.5}) == {**space, "x": 0.5}
    assert converted.to_configuration({"f": 3.5, "r": len, "x": 0.5}) == {"x": 0.5}


def test_a_branch_of_constants_may_be_given_in_part() -> None:
    constants = {"n": "b", "k": 3, "deep": {"p": 1, "q": (2, 3)}, "f": ("__ref_ph", "2c3d")}
    branches = [{"n": "a", "lr": tune.uniform(0, 1)}, constants]
    converted = ParamSpace.of({"o": tune.choice(branches)})
    for part in ({"n": "b"}, {"n": "b", "deep": {"q": [2, 3]}}, {"k": 3}, {"n": "b", "f": len}):
        assert converted.to_configuration({"o": part}) == {"o/n": "b"}
    for part in ({"n": "b", "k": 4}, {"n": "b", "z": 1}, {"n": "b", "deep": {"q": [2]}}):
        with pytest.raises(ValueError, match="no choice of 'o'"):
            converted.to_configuration({"o": part})
    # What is the whole of a branch is not a part of another one.
    alike = ParamSpace.of({"o": tune.choice([{"a": 1, "b": 2}, {"a": 1}, tune.uniform(0, 1)])})
    assert alike.to_configuration({"o": {"a": 1}}) == {"o": {"a": 1}}
    assert alike.to_configuration({"o": {"b": 2}}) == {"o": {"a": 1, "b": 2}}


# ---- what is refused


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (tune.grid_search([1, 2]), r"grid_search.*tune.choice\(\[1, 2\]\)"),
        ([tune.grid_search([1, 2])], r"'m/x/0'.*grid_search"),
        (tune.choice([{"g": tune.grid_search([1])}]), r"'m/x/g'.*grid_search"),
        (tune.sample_from(lambda config: 1), r"sample_from.*param_space of the Tuner"),
        (tune.choice([tune.sample_from(lambda: 1)]), "sample_from"),
        (tune.uniform(2, 1), r"low=2.0, high=1.0; swap"),
        (tune.quniform(2, 1, 0.5), r"low=2.0, high=1.0; swap"),
        (tune.randint(5, 3), r"low=5, high=3; swap"),
        (tune.randint(3, 3), r"at least 3 and below 3"),
        (tune.randint(1.5, 3), r"low must be an int, got 1.5"),
        (tune.randint(0, math.inf), "inf"),
        (tune.qrandint(5, 7, 4), "no multiple of 4 from 5 to 7"),
        (tune.qrandint(1, 9, 2.5), "2.5"),
        (RayFloat(0, None), "inf"),
        (tune.choice([]), "no values"),
        ({"a/b": tune.uniform(0, 1)}, r"'m/x/a/b' has a '/'"),
        ({1: tune.uniform(0, 1), "1": tune.uniform(0, 1)}, "'m/x/1' is there twice"),
    ],
    ids=label_of,
)
def test_what_cannot_be_searched_is_refused_by_name(entry: Any, message: str) -> None:
    with pytest.raises(UnsupportedDomainError, match=rf"'m/x.*{message}|{message}") as caught:
        ParamSpace.of({"m": {"x": entry}})
    assert "'m/x" in str(caught.value)


# ---- as a value


def test_a_parameter_space_survives_pickling_and_tells_others() -> None:
    converted = ParamSpace.of(EVERYTHING)
    again = cloudpickle.loads(cloudpickle.dumps(converted))
    for config in configs(EVERYTHING, 5):
        assert again.to_config(converted.to_configuration(config)) == config
    for other in (converted, ParamSpace.of({**EVERYTHING, "const": 8})):
        assert again.joined(other).space == again.space
    with pytest.raises(ValueError, match="other domains"):
        again.joined(ParamSpace.of({**EVERYTHING, "const": tune.randint(0, 3)}))


def test_constants_of_a_second_space_are_known() -> None:
    space = ParamSpace.of({"m": {"x": tune.uniform(0, 1)}, "c": 1})
    both = space.joined(ParamSpace.of({"m": {"x": 3, "k": 5}, "c": 2, "d": 6}))
    assert both.to_configuration({"m": {"x": 0.5, "k": 5}, "c": 1, "d": 6}) == {"m/x": 0.5}
    with pytest.raises(ValueError, match="constant 5"):
        both.to_configuration({"m": {"k": 4}})
