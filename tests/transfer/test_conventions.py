"""Names, prefixes and conventions of parameters: matched, and converted by value."""

import numpy as np
import pytest

from dre_plugins.space import Categorical, Domain, Float, Integer, Ordinal, SearchSpace
from dre_plugins.transfer.spaces import prefixes
from dre_plugins.transfer.spaces.alignment import align
from dre_plugins.transfer.spaces.prefixes import CONVENTIONS

RATE, COST = Float(1e-5, 1.0, "log"), Float(1e-3, 1e3, "log")
NETWORK: dict[str, Domain] = {"lr": RATE, "batch_size": Integer(8, 256, "log")}
MACHINE: dict[str, Domain] = {"C": COST, "gamma": COST}
LINEAR: dict[str, Domain] = {"C": COST, "penalty": Categorical(("l1", "l2"))}
LAYERS: dict[str, Domain] = {
    "learning_rate_init": RATE,
    "n_layers": Integer(1, 4),
    "width": Integer(8, 256, "log"),
}
LISTS = Categorical(("(50,)", "64, 64", "[200, 100, 60]"))
BOOSTING: dict[str, Domain] = {"learning_rate": RATE, "num_leaves": Integer(2, 256)}


def carried(ours: dict[str, Domain], theirs: dict[str, Domain], values: dict[str, object]) -> dict:
    source, target = SearchSpace(ours), SearchSpace(theirs)
    alignment = align(source, target)
    assert alignment is not None
    units = alignment.convert(source.to_units([values]))[0]
    linked = [link.target for link in alignment.links]
    return {
        name: target.domains[name].from_unit(float(unit))
        for name, unit in zip(target.names, units, strict=True)
        if name in linked and not np.isnan(unit)
    }


@pytest.mark.parametrize(
    ("ours", "theirs", "values", "expected"),
    [
        ({"log10_lr": Float(-4.0, -1.0)}, NETWORK, {"log10_lr": -2.0}, {"lr": 0.01}),
        ({"lr_log10": Float(-4.0, -1.0)}, NETWORK, {"lr_log10": -3.0}, {"lr": 0.001}),
        ({"log2_batch_size": Integer(4, 7)}, NETWORK, {"log2_batch_size": 5}, {"batch_size": 32}),
        ({"log10_lr": Ordinal((-4, -3))}, NETWORK, {"log10_lr": -3}, {"lr": 0.001}),
        ({"svm_c": COST, "svm_gamma": COST}, MACHINE, {"svm_c": 10.0, "svm_gamma": 2.0},
         {"C": 10.0, "gamma": 2.0}),
        ({"clf__C": COST, "clf__log10_gamma": Float(-3.0, 1.0)}, MACHINE,
         {"clf__C": 1.0, "clf__log10_gamma": -1.0}, {"C": 1.0, "gamma": 0.1}),
        ({"alpha": COST, "penalty": Categorical(("l1", "l2"))}, LINEAR,
         {"alpha": 0.1, "penalty": "l1"}, {"C": 10.0, "penalty": "l1"}),
        (LINEAR, {"alpha": COST, "penalty": Categorical(("l1", "l2"))},
         {"C": 100.0, "penalty": "l2"}, {"alpha": 0.01, "penalty": "l2"}),
        ({"inv_C": COST, "kernel": Categorical(("rbf",))}, MACHINE,
         {"inv_C": 4.0, "kernel": "rbf"}, {"C": 0.25}),
        ({"lgbm-lr": RATE, "lgbm-num-leaves": Integer(2, 64)}, BOOSTING,
         {"lgbm-lr": 0.1, "lgbm-num-leaves": 31}, {"learning_rate": 0.1, "num_leaves": 31}),
        ({"model.lr": RATE}, NETWORK, {"model.lr": 0.1}, {"lr": 0.1}),
        *[({"max_depth": ours}, {"max_depth": theirs}, {"max_depth": value},
           {"max_depth": expected})
          for ours, theirs, value, expected in [
              (Integer(-1, 9), Integer(1, 16), 0, 16), (Integer(-1, 9), Integer(1, 16), 1, 1),
              (Categorical((None, 5)), Integer(1, 16), None, 16),
              (Categorical((None, 5)), Ordinal((-1, 3, 5)), None, -1),
              (Ordinal((-1, 5)), Categorical(("none", 5)), -1, "none"),
              (Integer(-1, 9), Categorical((None, 5)), -1, None),
              (Integer(-1, 9), Integer(0, 16), -1, 0), (Integer(-1, 9), Integer(0, 16), 7, 7),
          ]],
        ({"max_depth": Categorical(("low", 5))}, {"max_depth": Integer(1, 16)},
         {"max_depth": "low"}, {}),
        ({"mlp__hidden_layer_sizes": LISTS}, LAYERS,
         {"mlp__hidden_layer_sizes": "[200, 100, 60]"}, {"n_layers": 3, "width": 120}),
        (LAYERS, {"hidden_layer_sizes": Categorical(("64", "64_32", "128_64"))},
         {"n_layers": 2, "width": 96}, {"hidden_layer_sizes": "128_64"}),
        (LAYERS, {"hidden_layer_sizes": LISTS}, {"n_layers": 2, "width": 200},
         {"hidden_layer_sizes": "64, 64"}),
        (LAYERS, {"hidden_layer_sizes": LISTS, "lr": RATE}, {"n_layers": 1, "width": 90,
         "learning_rate_init": 0.1}, {"hidden_layer_sizes": "(50,)", "lr": 0.1}),
        ({"hidden_layer_sizes": Ordinal((50, 100))}, LAYERS, {"hidden_layer_sizes": 100},
         {"width": 100}),
        ({"hidden_layer_sizes": LISTS}, {"hidden_layer_sizes": LISTS},
         {"hidden_layer_sizes": "64, 64"}, {"hidden_layer_sizes": "64, 64"}),
        ({"hidden_layer_sizes": Categorical(("64", "64_32"))},
         {"hidden_layer_sizes": Categorical(("64", "64_32", "auto"))},
         {"hidden_layer_sizes": "64_32"}, {"hidden_layer_sizes": "64_32"}),
    ],
)  # fmt: skip
def test_values_are_carried_over(ours, theirs, values, expected) -> None:
    found = carried(ours, theirs, values)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == (pytest.approx(value) if isinstance(value, float) else value)


@pytest.mark.parametrize("word", CONVENTIONS)
def test_a_convention_can_be_taken_back(word: str) -> None:
    values = np.array([0.01, 0.5, 30.0])
    to_value, from_value = CONVENTIONS[word]
    np.testing.assert_allclose(to_value(from_value(values)), values)
    assert np.isnan(from_value(np.array([0.0]))).all()


def test_the_same_convention_on_both_sides_changes_nothing() -> None:
    assert prefixes.change_of("log10_lr", "log10_learning_rate") is None
    assert prefixes.change_of("svc__C", "svm_c") is None


def test_names_of_other_parameters_and_logarithms_of_no_base_are_no_prefixes() -> None:
    for name in ("reg_alpha", "cat_smooth", "lr_decay", "model", "svm", "max_depth", "log_lr"):
        assert prefixes.without_learner(name) == name and prefixes.learner_of_prefix(name) is None
