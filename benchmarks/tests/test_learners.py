"""Small real problems: what they return is what scikit-learn says."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import shuffle

from dre_bench.learners import LEARNERS
from dre_bench.runs import Sources
from dre_bench.scenarios import scenario_of


def test_support_vectors_score_as_scikit_learn_says() -> None:
    scenario = scenario_of(Sources(), "svm-digits")
    chosen = {"kernel": "rbf", "C": 10.0, "gamma": 0.01}
    inputs, labels = shuffle(*load_digits(return_X_y=True), n_samples=400, random_state=10)
    machine = make_pipeline(StandardScaler(), SVC(C=10.0, gamma=0.01))
    expected = cross_val_score(machine, inputs, labels, cv=3).mean()
    assert scenario.value(10, chosen) == pytest.approx(expected, abs=1e-12)
    assert expected > 0.9 > scenario.value(10, {**chosen, "gamma": 10.0})


@pytest.mark.parametrize("name", LEARNERS)
def test_each_task_has_its_own_values_and_keeps_them(name: str) -> None:
    scenario = scenario_of(Sources(), name)
    sample = scenario.random_configurations(4, np.random.default_rng(1))
    first = scenario.evaluate_many(0, sample)[scenario.metric]
    assert np.isfinite(first).all() and len(set(first.tolist())) > 1
    assert np.array_equal(first, scenario.evaluate_many(0, sample)[scenario.metric])
    assert not np.array_equal(first, scenario.evaluate_many(10, sample)[scenario.metric])
    with pytest.raises(ValueError, match="no task 20"):
        scenario.value(20, sample[0])
