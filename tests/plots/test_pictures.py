"""Importances, trust, calibration, alignments and the gain of transfer."""

from __future__ import annotations

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import optuna
import pytest
from matplotlib.colors import same_color
from optuna.trial import TrialState, create_trial

from dre_plugins import DeepRankingEnsemble, Prior, plots
from dre_plugins.engine import ScorerSettings
from dre_plugins.plots import (
    plot_alignment,
    plot_calibration,
    plot_members,
    plot_prior_trust,
    plot_rank_importances,
    plot_transfer_gain,
)
from dre_plugins.space import Categorical, Float, SearchSpace
from dre_plugins.transfer.prior import Card

KEY = "dre:explanation"


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


# ---- the weight of a prior


def study_with(*explanations: dict[str, object]) -> optuna.Study:
    study = optuna.create_study()
    for explanation in explanations:
        study.add_trial(
            create_trial(value=0.0, user_attrs={KEY: explanation} if explanation else {})
        )
    return study


def test_trust_over_trials_with_sources_as_colours():
    study = study_with(
        {"source": "prior", "prior_weight": 1.0},
        {},
        {"source": "model", "prior_weight": 0.8},
        {"source": "contrast", "prior_weight": 0.4},
        {"source": "model", "prior_weight": 0.0},
        {"source": "fallback"},
    )
    panel = plot_prior_trust(study)
    weights, *marks, _ = panel.get_lines()  # the last one sets apart those without a weight
    assert [*weights.get_xdata()] == [0, 2, 3, 4]
    assert [*weights.get_ydata()] == [1.0, 0.8, 0.4, 0.0]
    drawn = {mark.get_label(): mark for mark in marks}
    assert drawn.keys() == {"prior", "model", "contrast", "fallback", "unknown"}
    assert [*drawn["model"].get_xdata()] == [2, 4]
    assert [*drawn["model"].get_ydata()] == [0.8, 0.0]
    assert drawn["fallback"].get_ydata()[0] < 0  # no prior had a part in it
    assert drawn["unknown"].get_xdata()[0] == 1
    colours = [mark.get_color() for mark in drawn.values()]
    assert len(set(colours)) == len(colours)
    assert "no part" in labels(panel.get_yticklabels())
    assert set(labels(panel.figure.legends[0].get_texts())) == drawn.keys()


def test_a_study_without_a_prior_has_no_trust():
    with pytest.raises(ValueError, match=r"of DRESampler\(prior=…\)"):
        plot_prior_trust(study_with({"source": "model"}, {}))


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
    from dre_plugins.plots.calibration import Predictions

    true, mean = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.5, 4.0, 3.0, 40.0])
    found = Predictions(true, mean, np.ones(4))
    # Half widths in standard errors: 0.67, 1.64, 2.58.
    assert [found.covered(share) for share in (0.5, 0.9, 0.99)] == [0.5, 0.5, 0.75]


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
    with pytest.raises(ValueError, match="at least 10 such trials, got '9 trials with a value'"):
        plot_calibration(study_of(slope, 9))


# ---- alignments


@pytest.fixture(scope="module")
def prior():
    space = SearchSpace(
        {"eta": Float(1e-4, 1.0, "log"), "trees": Float(1.0, 9.0), "gamma": Float(0.0, 1.0)}
    )
    ensemble = DeepRankingEnsemble.initialise(ScorerSettings(n_members=2), 3, seed=0)
    card = Card(name="untrained", defaults={"trees": 5.0})
    return Prior(ensemble, space, card, np.empty((0, 3)))


def test_an_alignment_is_a_table(prior):
    space = SearchSpace(
        {"learning_rate": Float(1e-3, 1.0, "log"), "kind": Categorical(("a", "b"))}
    )
    panel = plot_alignment(prior, space)
    texts = labels(panel.texts)
    assert texts[:4] == ["yours", "of the prior", "by", ""]
    rows = [texts[place : place + 4] for place in range(4, len(texts), 4)]
    assert [row[:3] for row in rows] == [
        ["learning_rate", "eta", "alias"],
        ["kind", "–", "–"],
        ["–", "trees", "default"],
        ["–", "gamma", "–"],
    ]
    assert [row[3] for row in rows[1:]] == ["learnt from scratch", "set to 5.0", "left missing"]
    assert panel.get_title(loc="left") == "Prior 'untrained' knows 1 of 2 parameters"


def test_an_alignment_of_a_study(prior, study_of):
    study = study_of(lambda trial: trial.suggest_float("eta", 1e-4, 1.0, log=True), 2)
    assert labels(plot_alignment(prior, study).texts)[4:7] == ["eta", "eta", "name"]


def test_nothing_in_common(prior):
    with pytest.raises(ValueError, match="no parameter in common"):
        plot_alignment(prior, SearchSpace({"x": Float(0.0, 1.0)}))


# ---- the gain of transfer


def study_of_values(*values: float | None, direction: str = "minimize") -> optuna.Study:
    study = optuna.create_study(direction=direction)
    for value in values:
        state = TrialState.FAIL if value is None else TrialState.COMPLETE
        study.add_trial(create_trial(state=state, value=value))
    return study


@pytest.mark.parametrize(("direction", "sign"), [("minimize", 1.0), ("maximize", -1.0)])
def test_the_gain_is_a_normalised_regret(direction, sign):
    def of(*values):
        return study_of_values(*(sign * value for value in values), direction=direction)

    panel = plot_transfer_gain([of(4, 2, 3), of(2, 0, 0)], [of(10, 12, 5), of(10, 10, 10, 10)])
    ours, theirs = panel.get_lines()
    # 0 is the best of all, 10 the median first value without.
    assert ours.get_ydata() == pytest.approx([0.3, 0.1, 0.1])
    assert theirs.get_ydata() == pytest.approx([1.0, 1.0, 0.75])
    assert [*ours.get_xdata()] == [1, 2, 3]
    bands = [band.get_paths()[0].vertices[:, 1] for band in panel.collections]
    assert (bands[0].min(), bands[0].max()) == pytest.approx((0.05, 0.35))
    assert labels(panel.figure.legends[0].get_texts()) == [
        "with the prior (2 studies)",
        "without (2 studies)",
    ]


def test_before_its_first_value_a_study_counts_as_if_it_had_that():
    panel = plot_transfer_gain([study_of_values(None, 1.0)], [study_of_values(2.0, 0.0)])
    assert panel.get_lines()[0].get_ydata() == pytest.approx([0.5, 0.5])


def test_what_breaks_a_constraint_is_no_best_value():
    study = optuna.create_study()
    study.add_trial(create_trial(value=0.0, system_attrs={"constraints": [1.0]}))
    study.add_trial(create_trial(value=4.0, system_attrs={"constraints": [-1.0]}))
    panel = plot_transfer_gain([study], [study_of_values(8.0, 3.0)])
    assert panel.get_lines()[0].get_ydata() == pytest.approx([0.2, 0.2])


@pytest.mark.parametrize(
    ("with_prior", "without", "message"),
    [
        ([], [study_of_values(1.0)], "with_prior must be at least one study"),
        ([study_of_values(1.0)], [], "without must be at least one study"),
        ([study_of_values(1.0)], [study_of_values(1.0, direction="maximize")], "of one direction"),
        ([study_of_values(1.0)], [study_of_values(None)], "one with a value"),
    ],
)
def test_studies_that_cannot_be_compared(with_prior, without, message):
    with pytest.raises(ValueError, match=message):
        plot_transfer_gain(with_prior, without)


# ---- all of them


def test_several_objectives_need_a_choice(study_of, settings):
    study = study_of(lambda trial: (slope(trial), 0.0), directions=["minimize"] * 2)
    for plot in (plot_rank_importances, plot_calibration):
        with pytest.raises(ValueError, match="objective must be a number from 0 to 1"):
            plot(study, settings=settings)
    with pytest.raises(ValueError, match="number of objectives must be 1, got 2"):
        plot_transfer_gain([study], [study])
    assert len(plot_rank_importances(study, settings=settings, objective=0).patches) == 3


def test_a_dark_style_is_kept(study_of, settings):
    with plt.style.context("dark_background"):
        panel = plot_members(study_of(slope), "much", settings=settings)
        assert same_color(panel.get_facecolor(), "black")
        assert same_color(panel.get_lines()[-1].get_color(), "white")
        *_, member, _ = panel.get_lines()
        assert same_color(member.get_color(), "#56B4E9")


def test_every_name_is_there():
    assert all(callable(getattr(plots, name)) for name in plots.__all__)
    assert set(plots.__all__) <= set(dir(plots))
    with pytest.raises(AttributeError, match="no attribute 'plot_nothing'"):
        plots.plot_nothing  # noqa: B018


def test_without_matplotlib_it_says_what_to_install():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "try:\n    import dre_plugins.plots\n"
        "except ImportError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'dre-plugins[optuna,plots]'" in done.stdout
