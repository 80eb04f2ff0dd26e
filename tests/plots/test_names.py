"""Names and choices of any letters are drawn as they are written."""

import io
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import optuna
from matplotlib.axes import Axes
from presets import TINY

from dre_plugins import plots
from dre_plugins.recommend import Settings

NAMES = ["$x_{$", "a$b$", r"\$", "$", "\ud800", "\0", "line\nbreak", "{}_^%&#~"]
SETTINGS = Settings(preset=TINY)


def objective(trial: optuna.Trial) -> float:
    kind = trial.suggest_categorical("kind", NAMES)
    return sum(trial.suggest_float(name, 0.0, 1.0) for name in NAMES) + NAMES.index(kind)


def test_parameters_and_choices_may_have_any_name(study_of: Callable[..., optuna.Study]) -> None:
    study = study_of(objective, 12)
    panels: list[Axes] = [
        *(plots.plot_acquisition(study, name, settings=SETTINGS) for name in NAMES),
        plots.plot_members(study, "kind", settings=SETTINGS),
        plots.plot_rank_importances(study, settings=SETTINGS),
    ]
    for pair in zip(NAMES[::2], NAMES[1::2], strict=True):
        panels.append(plots.plot_predicted_ranks(study, pair, settings=SETTINGS)[0])
    for panel in panels:
        panel.figure.savefig(io.BytesIO())


def test_dollars_are_shown(study_of: Any) -> None:
    study = study_of(lambda trial: trial.suggest_float("a$b$", 0.0, 1.0), 12)
    panel = plots.plot_acquisition(study, "a$b$", settings=SETTINGS)
    assert panel.get_xlabel() == r"a\$b\$"  # as Matplotlib takes letters for what they are


def test_long_choices_do_not_cover_each_other(study_of: Any) -> None:
    kinds = ("RandomForest", "LogisticRegression", "KNeighbors", "ExtraTrees", "Ridge", "Dummy")
    learners = [f"{kind}Classifier" for kind in kinds]
    study = study_of(lambda t: len(t.suggest_categorical("learner", learners)) + 0.0, 12)
    panel = plots.plot_members(study, "learner", settings=SETTINGS)
    panel.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in panel.get_xticklabels()]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
