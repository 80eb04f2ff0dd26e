"""Importances and calibration; styles, several objectives, missing packages."""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import optuna
import pytest
from matplotlib.colors import same_color

from dre_plugins.plots import plot_calibration, plot_members, plot_rank_importances
from dre_plugins.plots.calibration import covered


def slope(trial: optuna.Trial) -> float:
    """Depend on much more than on little, and on nothing else."""
    trial.suggest_categorical("none", ["a", "b"])
    return trial.suggest_float("much", 0.0, 1.0) + 0.05 * trial.suggest_float("little", 0.0, 1.0)


def labels(texts):
    return [text.get_text() for text in texts]


# ---- importances


def test_importances_are_ordered_and_tell_what_matters(study_of, settings):
    panel = plot_rank_importances(study_of(slope, 15), settings=settings)
    widths = [bar.get_width() for bar in panel.patches]
    assert labels(panel.get_yticklabels())[-1] == "much"
    assert widths == sorted(widths)
    assert widths[-1] > 2 * widths[-2]
    assert 0 < widths[-1] < 100
    assert len(panel.patches) == 3


def test_importances_do_not_depend_on_the_scale_of_the_metric(study_of, settings):
    widths = [
        [bar.get_width() for bar in plot_rank_importances(study, settings=settings).patches]
        for study in (study_of(slope), study_of(lambda trial: np.exp(20 * slope(trial))))
    ]
    assert widths[0] == widths[1]


def test_importances_of_a_conditional_space(study_of, settings):
    def objective(trial):
        if trial.suggest_categorical("kind", ["a", "b"]) == "a":
            return 0.0
        return 1.0 + trial.suggest_float("x", 0.0, 1.0)

    panel = plot_rank_importances(study_of(objective, 15), settings=settings)
    assert labels(panel.get_yticklabels()) == ["x", "kind"]


# ---- calibration


def test_calibration_compares_true_with_predicted_ranks(study_of, settings):
    study = study_of(slope, 15)
    panel = plot_calibration(study, settings=settings)
    true, predicted = panel.containers[0].lines[0].get_data()
    assert sorted(true) == [*range(1, 16)]
    # In the order of the trials; 1 is the best.
    values = [trial.value for trial in study.trials]
    assert true[np.argmin(values)] == 1
    assert np.corrcoef(true, predicted)[0, 1] > 0.7
    assert "intervals of 50% / 80% / 90%" in panel.get_title()


def test_covered_shares_are_counted():
    errors = np.array([0.5, 2.0, 0.0, 36.0])
    # Half widths in standard errors: 0.67, 1.64, 2.58.
    assert [covered(errors, share) for share in (0.5, 0.9, 0.99)] == [0.5, 0.5, 0.75]


def test_calibration_leaves_out_what_it_predicts(study_of, settings):
    """A trial that breaks the pattern cannot be foreseen, but is easily remembered."""

    def objective(trial):
        value = slope(trial)
        return value if trial.number != 7 else -10.0

    panel = plot_calibration(study_of(objective, 15), settings=settings)
    true, predicted = panel.containers[0].lines[0].get_data()
    assert true[7] == 1
    assert predicted[7] > 3


def test_calibration_needs_ten_values(study_of):
    with pytest.raises(ValueError, match="needs 10 trials with a value; the study has 9"):
        plot_calibration(study_of(slope, 9))


# ---- all of them


def test_several_objectives_need_a_choice(study_of, settings):
    study = study_of(lambda trial: (slope(trial), 0.0), directions=["minimize"] * 2)
    for plot in (plot_rank_importances, plot_calibration):
        with pytest.raises(ValueError, match="objective must be a number from 0 to 1"):
            plot(study, settings=settings)
    assert len(plot_rank_importances(study, settings=settings, objective=0).patches) == 3


def test_a_dark_style_is_kept(study_of, settings):
    with plt.style.context("dark_background"):
        panel = plot_members(study_of(slope), "much", settings=settings)
        assert same_color(panel.get_facecolor(), "black")
        assert same_color(panel.get_lines()[-1].get_color(), "white")
        *_, member, _ = panel.get_lines()
        assert same_color(member.get_color(), "#56B4E9")


def test_without_matplotlib_it_says_what_to_install():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "try:\n    import dre_plugins.plots\n"
        "except ImportError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'dre-plugins[optuna,plots]'" in done.stdout
