import numpy as np
import pytest
from small_spaces import told

from dre_plugins.space import Categorical, Condition, Float, Integer, SearchSpace
from dre_plugins.study import AskTell
from dre_plugins.transfer.prior import Prior
from dre_plugins.transfer.training import metadata_of_beliefs

SPACE = SearchSpace(
    {
        "kind": Categorical(("a", "b")),
        "x": Float(0.0, 1.0),
        "rate": Float(1e-4, 1.0, "log"),
        "depth": Integer(1, 9),
    },
    [Condition("depth", "kind", ("b",))],
)


def test_what_is_near_the_favoured_is_better() -> None:
    (task,) = metadata_of_beliefs(SPACE, [{"x": 0.25, "rate": 0.01}])
    distance = np.abs(task.units[:, 1] - 0.25) + np.abs(task.units[:, 2] - 0.5)
    assert np.corrcoef(distance, task.values)[0, 1] < -0.99
    assert task.values.max() == 0.0
    # Nothing is said of the others.
    assert set(task.units[task.values > -0.2, 0]) == {0.25, 0.75}


def test_the_nearest_of_several_counts() -> None:
    (task,) = metadata_of_beliefs(SPACE, [{"x": 0.0}, {"x": 1.0}])
    middle = np.abs(task.units[:, 1] - 0.5) < 0.05
    assert task.values[middle].max() < task.values[~middle].max() == 0.0


def test_a_study_begins_where_good_values_are_expected() -> None:
    prior = Prior.of_beliefs(SPACE, [{"kind": "b", "x": 0.9, "rate": 0.5}])
    first = [AskTell(SPACE, seed=seed, prior=prior).ask()[1] for seed in range(3)]
    assert all(c["kind"] == "b" and abs(c["x"] - 0.9) < 0.1 and c["rate"] > 0.2 for c in first)
    domains = {"x": Float(0.0, 1.0)}
    _, found = AskTell(domains, seed=0, prior=Prior.of_beliefs(domains, [{"x": 0.3}])).ask()
    assert abs(found["x"] - 0.3) < 0.1


def test_a_wrong_belief_is_given_up() -> None:
    prior = Prior.of_beliefs({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}, [{"x": 0.0, "y": 0.0}])
    study = AskTell(prior.space, direction="maximize", seed=0, prior=prior)
    assert told(study, 25, lambda c: c["x"] + c["y"]).best.value > 1.9


@pytest.mark.parametrize(
    ("configurations", "match"),
    [
        ([], "configurations must be at least one"),
        ({"x": 0.5}, "configurations must be at least one"),
        ([{"z": 1.0}], r"configurations must be made of"),
        ([{"x": 2.0}], "x must be in"),
        ([{"x": 0.5}, {}], r"configurations must be of at least one of \['kind', 'x', .*got {}"),
    ],
)
def test_beliefs_must_be_in_the_space(configurations, match) -> None:
    with pytest.raises(ValueError, match=match):
        Prior.of_beliefs(SPACE, configurations)
