"""Importances and calibration; names of any letters; studies of `AskTell`; missing packages."""

import io
import subprocess
import sys
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import optuna
import pytest
from matplotlib.colors import same_color
from presets import TINY

from dre_plugins import AskTell
from dre_plugins.plots import (
    plot_acquisition,
    plot_calibration,
    plot_members,
    plot_predicted_ranks,
    plot_rank_importances,
)
from dre_plugins.plots.calibration import covered
from dre_plugins.recommend import Settings, TrialState
from dre_plugins.space import Float, Integer, Normal


def slope(trial: optuna.Trial) -> float:
    """Depend on much more than on little, and on nothing else."""
    trial.suggest_categorical("none", ["a", "b"])
    return trial.suggest_float("much", 0.0, 1.0) + 0.05 * trial.suggest_float("little", 0.0, 1.0)


def labels(texts):
    return [text.get_text() for text in texts]


def importances(study, settings, **options):
    """Return the widths of the bars, from the least to the largest."""
    panel = plot_rank_importances(study, settings=settings, **options)
    return [bar.get_width() for bar in panel.patches]


def printed(code: str) -> str:
    """Return what a process of its own prints."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


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
    other = study_of(lambda trial: np.exp(20 * slope(trial)))
    assert importances(study_of(slope), settings) == importances(other, settings)


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
    assert len(importances(study, settings, objective=0)) == 3


def test_a_dark_style_is_kept(study_of, settings):
    with plt.style.context("dark_background"):
        panel = plot_members(study_of(slope), "much", settings=settings)
        assert same_color(panel.get_facecolor(), "black")
        assert same_color(panel.get_lines()[-1].get_color(), "white")
        *_, member, _ = panel.get_lines()
        assert same_color(member.get_color(), "#56B4E9")


def test_without_matplotlib_it_says_what_to_install():
    said = printed(
        "import sys; sys.modules['matplotlib'] = None\n"
        "try:\n    import dre_plugins.plots\n"
        "except ImportError as error:\n    print(error)"
    )
    assert "pip install 'dre-plugins[optuna,plots]'" in said


# ---- names and choices of any letters

NAMES = ["$x_{$", "a$b$", r"\$", "$", "\ud800", "\0", "line\nbreak", "{}_^%&#~"]
SETTINGS = Settings(preset=TINY)


def test_parameters_and_choices_may_have_any_name(study_of):
    def objective(trial):
        kind = trial.suggest_categorical("kind", NAMES)
        return sum(trial.suggest_float(name, 0.0, 1.0) for name in NAMES) + NAMES.index(kind)

    study = study_of(objective)
    panels = [
        *(plot_acquisition(study, name, settings=SETTINGS) for name in NAMES),
        plot_members(study, "kind", settings=SETTINGS),
        plot_rank_importances(study, settings=SETTINGS),
    ]
    for pair in zip(NAMES[::2], NAMES[1::2], strict=True):
        panels.append(plot_predicted_ranks(study, pair, settings=SETTINGS)[0])
    for panel in panels:
        panel.figure.savefig(io.BytesIO())


def test_dollars_are_shown(study_of):
    study = study_of(lambda trial: trial.suggest_float("a$b$", 0.0, 1.0))
    panel = plot_acquisition(study, "a$b$", settings=SETTINGS)
    assert panel.get_xlabel() == r"a\$b\$"  # as Matplotlib takes letters for what they are


def test_long_choices_do_not_cover_each_other(study_of):
    kinds = ("RandomForest", "LogisticRegression", "KNeighbors", "ExtraTrees", "Ridge", "Dummy")
    learners = [f"{kind}Classifier" for kind in kinds]
    study = study_of(lambda t: len(t.suggest_categorical("learner", learners)) + 0.0)
    panel = plot_members(study, "learner", settings=SETTINGS)
    panel.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in panel.get_xticklabels()]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


# ---- what `AskTell` holds, and so searches in Ray Tune and Syne Tune

SPACE = {"much": Float(0.0, 1.0), "little": Float(0.0, 1.0)}


def test_pictures_of_ask_tell_are_those_of_the_same_trials_in_optuna(study_of, settings):
    in_optuna = study_of(
        lambda t: sum(t.suggest_float(n, 0, 1) for n in SPACE), direction="maximize"
    )
    copied = AskTell(SPACE, seed=0, direction="maximize")
    for trial in in_optuna.trials:
        copied.add(trial.params, trial.value)
    assert importances(copied, settings) == importances(in_optuna, settings)


def test_running_stopped_and_failed_trials_and_several_objectives(settings):
    study = AskTell(SPACE, seed=0, direction="maximize")
    rng = np.random.default_rng(0)
    for place, (much, little) in enumerate(rng.random((12, 2)).tolist()):
        state = {3: TrialState.FAILED, 4: TrialState.RUNNING, 5: TrialState.PRUNED}.get(place)
        value = None if state else much
        study.add({"much": much, "little": little}, value, state=state, rungs={1.0: much})
    least, most = importances(study, settings)
    assert most > 2 * least > 0

    several = AskTell(SPACE, seed=0, direction=["minimize", "maximize"])
    for much, little in rng.random((12, 2)).tolist():
        several.add({"much": much, "little": little}, (much, little))
    bars = plot_rank_importances(several, settings=settings, objective=1)
    assert labels(bars.get_yticklabels())[-1] == "little"


def test_a_parameter_of_one_value(settings):
    study = AskTell({"x": Float(0.0, 1.0), "n": Integer(5, 5)}, seed=0)
    for x in (0.2, 0.6, 0.8):
        study.add({"x": x, "n": 5}, x)
    for params in ("n", ["x", "n"]):
        panel = plot_predicted_ranks(study, params, settings=settings)[0]
        limits = panel.get_xlim() if params == "n" else panel.get_ylim()
        assert limits == pytest.approx((4.5, 5.5))


def test_a_normal_distribution_is_an_axis_of_numbers(settings):
    study = AskTell({"x": Normal(0.0, 2.0)}, seed=0)
    for x in (-1.0, 0.0, 1.0):
        study.add({"x": x}, x)
    line = plot_members(study, "x", settings=settings).lines[0]
    assert line.get_xdata()[[0, -1]] == pytest.approx([-8.0, 8.0])


@pytest.mark.parametrize("ends", [(1e-250, 1e250), (1e290, 1e308), (1e-320, 1e-310)])
def test_a_logarithmic_range_that_matplotlib_cannot_draw_is_shown_in_powers_of_ten(settings, ends):
    study = AskTell({"x": Float(*ends, "log"), "y": Float(0.0, 1.0)}, seed=0)
    for place in range(3):
        study.add({"x": ends[place % 2], "y": 0.5 * place}, place)
    for params in ("x", ["x", "y"]):
        panel = plot_predicted_ranks(study, params, settings=settings)[0]
        panel.figure.canvas.draw()
        assert panel.get_xlabel() == "x (power of ten)"
        assert panel.lines[-1].get_xdata() == pytest.approx(np.log10(ends[:1]))


@pytest.mark.slow
def test_pictures_of_ask_tell_need_no_optuna():
    title = printed(
        "import sys; sys.modules['optuna'] = None\n"
        "import matplotlib; matplotlib.use('Agg')\n"
        "from dre_plugins import AskTell, plots\n"
        "study = AskTell({'x': [1, 2, 3, 4]}, seed=0)\n"
        "for x in (1, 2, 3):\n    study.add({'x': x}, float(x))\n"
        "print(plots.plot_members(study, 'x').get_title())\n"
    )
    assert title == "Ranks by member"
