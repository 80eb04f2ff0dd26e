"""Small studies and a small surrogate, and figures that are closed again."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import pytest
from presets import NARROW, of_fits

from dre_plugins.recommend import RecommenderSettings

# Each extra of the package can be tested alone.
collect_ignore_glob = [] if find_spec("optuna") and find_spec("matplotlib") else ["test_*"]


@pytest.fixture(scope="session")
def settings() -> RecommenderSettings:
    # With half of the steps it cannot even order the trials that it is fitted to.
    return RecommenderSettings(preset=of_fits(150, replace(NARROW, n_members=3)))


@pytest.fixture(scope="session")
def study_of() -> Callable[..., Any]:
    """Build studies of a random sampler: what they are of, how many trials, how they are made."""
    import optuna

    def build(objective: Callable[..., Any], n_trials: int = 12, seed: int = 0, **how: Any) -> Any:
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed), **how)
        study.optimize(objective, n_trials=n_trials, catch=RuntimeError)
        return study

    return build


@pytest.fixture(autouse=True)
def _closed_figures() -> Iterator[None]:
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    yield
    plt.close("all")
