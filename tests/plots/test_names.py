"""Names and choices of any letters are drawn as they are written."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import optuna
import pytest
from matplotlib.axes import Axes

from dre_plugins import Prior, plots
from dre_plugins.recommend import RecommenderSettings
from dre_plugins.space import Categorical, Float

NAMES = ["$x_{$", "a$b$", r"\$", "$", "\ud800", "\0", "line\nbreak", "{}_^%&#~"]
DRAWINGS: dict[str, Callable[..., Any]] = {
    "ranks": lambda study, name, settings: plots.plot_predicted_ranks(
        study, [name, "kind"], settings=settings
    )[0],
    "acquisition": lambda study, name, settings: plots.plot_acquisition(
        study, name, settings=settings
    ),
    "members": lambda study, name, settings: plots.plot_members(study, "kind", settings=settings),
    "importances": lambda study, name, settings: plots.plot_rank_importances(
        study, settings=settings
    ),
    "alignment": lambda study, name, settings: plots.plot_alignment(
        Prior.of_beliefs({name: Float(0.0, 1.0), "kind": Categorical(NAMES)}, [{name: 0.5}]),
        study,
    ),
}


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_a_parameter_may_have_any_name(
    study_of: Callable[..., optuna.Study], settings: RecommenderSettings, name: str
) -> None:
    def objective(trial: optuna.Trial) -> float:
        kind = trial.suggest_categorical("kind", NAMES)
        return trial.suggest_float(name, 0.0, 1.0) + NAMES.index(kind)

    study = study_of(objective, 12)
    for draw in DRAWINGS.values():
        panel: Axes = draw(study, name, settings)
        panel.figure.savefig(io.BytesIO())


def test_dollars_are_shown(study_of: Any, settings: RecommenderSettings) -> None:
    study = study_of(lambda trial: trial.suggest_float("a$b$", 0.0, 1.0), 12)
    panel = plots.plot_acquisition(study, "a$b$", settings=settings)
    assert panel.get_xlabel() == r"a\$b\$"  # as Matplotlib takes letters for what they are
