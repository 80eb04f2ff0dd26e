"""Pictures of what `AskTell` holds, and so of searches in Ray Tune and Syne Tune."""

import subprocess
import sys

import numpy as np
import optuna
import pytest

from dre_plugins import AskTell, plots
from dre_plugins.recommend import TrialState
from dre_plugins.space import Float, Integer, Normal

SPACE = {"much": Float(0.0, 1.0), "little": Float(0.0, 1.0)}


def test_they_are_those_of_the_same_trials_in_optuna(study_of, settings):
    in_optuna = study_of(lambda t: sum(t.suggest_float(n, 0, 1) for n in SPACE), direction="maximize")
    copied = AskTell(SPACE, seed=0, direction="maximize")
    for trial in in_optuna.trials:
        copied.add(trial.params, trial.value)
    ours = plots.plot_rank_importances(copied, settings=settings).patches
    theirs = plots.plot_rank_importances(in_optuna, settings=settings).patches
    assert [bar.get_width() for bar in ours] == [bar.get_width() for bar in theirs]


def test_running_stopped_and_failed_trials_and_several_objectives(settings):
    study = AskTell(SPACE, seed=0, direction="maximize")
    rng = np.random.default_rng(0)
    for place, (much, little) in enumerate(rng.random((12, 2)).tolist()):
        state = {3: TrialState.FAILED, 4: TrialState.RUNNING, 5: TrialState.PRUNED}.get(place)
        value = None if state else much
        study.add({"much": much, "little": little}, value, state=state, rungs={1.0: much})
    bars = plots.plot_rank_importances(study, settings=settings).patches
    least, most = (bar.get_width() for bar in bars)
    assert most > 2 * least > 0

    several = AskTell(SPACE, seed=0, direction=["minimize", "maximize"])
    for much, little in rng.random((12, 2)).tolist():
        several.add({"much": much, "little": little}, (much, little))
    bars = plots.plot_rank_importances(several, settings=settings, objective=1)
    assert [text.get_text() for text in bars.get_yticklabels()][-1] == "little"


def test_a_parameter_of_one_value(settings):
    study = AskTell({"x": Float(0.0, 1.0), "n": Integer(5, 5)}, seed=0)
    for x in (0.2, 0.6, 0.8):
        study.add({"x": x, "n": 5}, x)
    for params in ("n", ["x", "n"]):
        panel = plots.plot_predicted_ranks(study, params, settings=settings)[0]
        limits = panel.get_xlim() if params == "n" else panel.get_ylim()
        assert limits == pytest.approx((4.5, 5.5))


def test_a_normal_distribution_is_an_axis_of_numbers(settings):
    study = AskTell({"x": Normal(0.0, 2.0)}, seed=0)
    for x in (-1.0, 0.0, 1.0):
        study.add({"x": x}, x)
    line = plots.plot_members(study, "x", settings=settings).lines[0]
    assert line.get_xdata()[[0, -1]] == pytest.approx([-8.0, 8.0])


@pytest.mark.parametrize("ends", [(1e-250, 1e250), (1e290, 1e308), (1e-320, 1e-310)])
def test_a_logarithmic_range_that_matplotlib_cannot_draw_is_shown_in_powers_of_ten(settings, ends):
    study = AskTell({"x": Float(*ends, "log"), "y": Float(0.0, 1.0)}, seed=0)
    for place in range(3):
        study.add({"x": ends[place % 2], "y": 0.5 * place}, place)
    for params in ("x", ["x", "y"]):
        panel = plots.plot_predicted_ranks(study, params, settings=settings)[0]
        panel.figure.canvas.draw()
        assert panel.get_xlabel() == "x (power of ten)"
        assert panel.lines[-1].get_xdata() == pytest.approx(np.log10(ends[:1]))


@pytest.mark.slow
def test_they_need_no_optuna():
    code = (
        "import sys; sys.modules['optuna'] = None\n"
        "import matplotlib; matplotlib.use('Agg')\n"
        "from dre_plugins import AskTell, plots\n"
        "study = AskTell({'x': [1, 2, 3, 4]}, seed=0)\n"
        "for x in (1, 2, 3):\n    study.add({'x': x}, float(x))\n"
        "print(plots.plot_members(study, 'x').get_title())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "Ranks by member"
