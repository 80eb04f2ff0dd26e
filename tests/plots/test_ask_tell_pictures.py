"""Pictures of what `AskTell` holds, and so of searches in Ray Tune and Syne Tune."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import optuna
import pytest
from numpy.testing import assert_array_equal

from dre_plugins import AskTell, Prior, plots
from dre_plugins.recommend import TrialState
from dre_plugins.recommend.settings import Settings
from dre_plugins.space import Float

SPACE = {"much": Float(0.0, 1.0), "little": Float(0.0, 1.0)}


def slope(trial: optuna.Trial) -> float:
    return trial.suggest_float("much", 0.0, 1.0) + 0.1 * trial.suggest_float("little", 0.0, 1.0)


def as_ask_tell(study: optuna.Study, **arguments: Any) -> AskTell:
    """Return the trials of a study of Optuna in an `AskTell`."""
    copied = AskTell(SPACE, seed=0, direction=study.direction.name.lower(), **arguments)
    for trial in study.trials:
        copied.add(trial.params, trial.value)
    return copied


def drawn(artist: Any) -> Any:
    return artist.get_width() if hasattr(artist, "get_width") else artist.get_ydata()


def test_they_are_those_of_the_same_trials_in_optuna(study_of, settings):
    in_optuna = study_of(slope, 12, direction="maximize")
    copied = as_ask_tell(in_optuna)
    for draw in (
        lambda study: plots.plot_rank_importances(study, settings=settings).patches,
        lambda study: plots.plot_transfer_gain([study], [study]).get_lines(),
    ):
        ours, theirs = draw(copied), draw(in_optuna)
        assert len(ours) == len(theirs) > 0
        for left, right in zip(ours, theirs, strict=True):
            assert_array_equal(drawn(left), drawn(right))


@pytest.mark.usefixtures("small_priors")
def test_trust_is_read_from_the_explanations(settings):
    prior = Prior.of_beliefs(SPACE, [{"much": 0.0}])
    study = AskTell(SPACE, seed=0, prior=prior, settings=Settings(preset=settings.preset))
    for _ in range(4):
        number, configuration = study.ask()
        study.tell(number, configuration["much"])
    study.add({"much": 0.5, "little": 0.5}, 0.5)
    panel = plots.plot_prior_trust(study)
    lines = {line.get_label(): line for line in panel.get_lines()}
    assert [*lines["prior"].get_ydata()] == [1.0]
    assert lines["unknown"].get_xdata()[0] == 4
    with pytest.raises(ValueError, match="none of which tells the weight of a prior"):
        plots.plot_prior_trust(AskTell(SPACE))


def test_running_stopped_and_failed_trials_and_several_objectives(settings):
    study = AskTell(SPACE, seed=0, direction="maximize")
    rng = np.random.default_rng(0)
    for place, (much, little) in enumerate(rng.random((12, 2)).tolist()):
        state = {3: TrialState.FAILED, 4: TrialState.RUNNING, 5: TrialState.PRUNED}.get(place)
        value = None if state else much
        study.add({"much": much, "little": little}, value, state=state, rungs={1.0: much})
    least, most = map(drawn, plots.plot_rank_importances(study, settings=settings).patches)
    assert most > 2 * least > 0
    best = plots.plot_transfer_gain([study], [study]).get_lines()[0].get_ydata()
    assert len(best) == 11 and best[-1] == 0.0  # one has not ended

    several = AskTell(SPACE, seed=0, direction=["minimize", "maximize"])
    for much, little in rng.random((12, 2)).tolist():
        several.add({"much": much, "little": little}, (much, little))
    bars = plots.plot_rank_importances(several, settings=settings, objective=1)
    assert [text.get_text() for text in bars.get_yticklabels()][-1] == "little"
    with pytest.raises(ValueError, match="objective must be a number from 0 to 1"):
        plots.plot_rank_importances(several, settings=settings)
    with pytest.raises(ValueError, match="number of objectives must be 1, got 2"):
        plots.plot_transfer_gain([several], [several])
    with pytest.raises(ValueError, match="of one direction"):
        plots.plot_transfer_gain([study], [AskTell(SPACE)])


def test_an_alignment(settings):
    study = AskTell({"learning_rate": Float(1e-4, 1.0, "log")})
    assert "knows 1 of 1" in plots.plot_alignment("xgboost", study).get_title(loc="left")


def test_they_need_no_optuna():
    code = (
        "import sys; sys.modules['optuna'] = None\n"
        "import matplotlib; matplotlib.use('Agg')\n"
        "from dre_plugins import AskTell, plots\n"
        "study = AskTell({'x': [1, 2, 3, 4]}, seed=0)\n"
        "for x in (1, 2, 3):\n    study.add({'x': x}, float(x))\n"
        "print(plots.plot_transfer_gain([study], [study]).get_title())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "Transfer"
