"""`AskTell` takes a prior by its name or path, as the adapters do."""

import pickle
from typing import Any

import numpy as np
import pytest
from presets import FAST, TINY

from dre_plugins.recommend.settings import Settings
from dre_plugins.space import Categorical, Constant, Domain, Float, Integer, Ordinal
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.study.ask_tell import AskTell
from dre_plugins.transfer.prior import Prior, PriorError
from dre_plugins.transfer.prior_file import CATALOGUE
from dre_plugins.transfer.recognition import AutoPrior

BOOSTING: dict[str, Domain] = {
    "num_leaves": Integer(4, 128, "log"),
    "learning_rate": Float(1e-3, 0.3, "log"),
    "min_child_samples": Integer(1, 100, "log"),
}


def study_with(prior: object, space: dict[str, Domain] = BOOSTING) -> AskTell:
    return AskTell(space, seed=0, prior=prior, settings=FAST)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "loaded"),
    [
        ("auto", AutoPrior()),
        ("lightgbm", Prior.load("lightgbm")),
        (CATALOGUE / "lightgbm.safetensors", Prior.load("lightgbm")),
    ],
)
def test_a_name_stands_for_the_prior(given: object, loaded: object) -> None:
    study = study_with(given)
    number, configuration = study.ask()
    assert study.explain(number).source == "prior"
    assert configuration == study_with(loaded).ask()[1]
    assert pickle.loads(pickle.dumps(study_with(given))).ask()[1] == configuration


def test_what_is_found_by_names_keeps_from_the_ends_of_ranges_but_not_of_choices() -> None:
    trees = {
        "et_n_jobs": Constant(2),  # constants have no coordinates
        "et_max_features": Float(0.05, 0.75, "log"),
        "et_min_samples_leaf": Integer(1, 50, "log"),
        "et_criterion": Categorical((*"abcdefghijklmnopqr", "gini", "entropy")),
    }
    space = SearchSpace(trees)
    named = Prior.load("extra-trees").first_trials(space)
    found = AutoPrior().portfolio_on(space)
    assert found is not None
    numbers = [space.names.index(name) for name in space.names[:-1]]
    choice = space.names.index("et_criterion")
    assert named[:, numbers].max() > 0.9 >= found.units[:, numbers].max()
    inside = space.canonical(named.clip(0.1, 0.9))[:, numbers]
    np.testing.assert_array_equal(found.units[:, numbers], inside)
    np.testing.assert_array_equal(found.units[:, choice], named[:, choice])


def test_members_between_listed_values_are_tried_once() -> None:
    space = {"learning_rate_init": Float(1e-4, 0.1, "log"), "batch_size": Ordinal([32, 64, 128])}
    study = study_with("auto", {**space, "alpha": Float(1e-6, 1.0, "log")})
    for value in range(3):
        number, _ = study.ask()
        assert study.explain(number).source == "prior"
        study.tell(number, value)


def test_members_are_of_the_kernel_that_their_prior_was_evaluated_with() -> None:
    kernels = Categorical(("linear", "poly", "rbf"))
    space = {"svc__C": Float(0.01, 100.0, "log"), "svc__gamma": Float(1e-4, 1.0, "log")}
    for prior, n_members in (("auto", 3), ("svm", 1)):
        study = study_with(prior, {"svc__kernel": kernels, **space})
        assert [study.ask()[1]["svc__kernel"] for _ in range(n_members)] == ["rbf"] * n_members


def test_a_list_may_have_names_and_none() -> None:
    arguments: Any = {"prior": ["lightgbm", None], "settings": Settings(preset=TINY)}
    study = AskTell(BOOSTING, direction=["minimize", "minimize"], seed=0, **arguments)
    assert study.explain(study.ask()[0]).source == "prior"


def test_an_unknown_name_and_what_is_no_prior_are_refused() -> None:
    with pytest.raises(PriorError, match=r"must be one of .*'xgboost'.*got 'xgbost'"):
        study_with("xgbost")
    for refusing in (study_with, Prior.load):
        with pytest.raises(PriorError, match=r"the path of a file, got 3; .*a Prior, and a list"):
            refusing(3)
