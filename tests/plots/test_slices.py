"""Predicted ranks, acquisition and members over parameters."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import optuna
import pytest

from dre_plugins import Prior
from dre_plugins.plots import plot_acquisition, plot_members, plot_predicted_ranks
from dre_plugins.space import Float


def mixed(trial: optuna.Trial) -> float:
    """Be good for small rates, and for kind "b" with a small share."""
    rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
    kind = trial.suggest_categorical("kind", ["a", "b"])
    depth = trial.suggest_int("depth", 1, 5)
    value = np.log10(rate) + 0.01 * depth
    return value + (trial.suggest_float("share", 0.0, 1.0) if kind == "b" else 5.0)


def line(panel, label):
    return next(line for line in panel.get_lines() if line.get_label() == label)


def legend_of(panel):
    return [text.get_text() for text in panel.figure.legends[0].get_texts()]


def ranks_over(name, study, **options):
    """Return the predicted ranks over a parameter."""
    return plot_predicted_ranks(study, name, **options)[0].get_lines()[0].get_ydata()


@pytest.fixture(scope="module")
def study(study_of):
    return study_of(mixed, 15)


@pytest.fixture(scope="module")
def best(study):
    return study.best_trial


def test_ranks_over_a_number(study, best, settings):
    (panel,) = plot_predicted_ranks(study, "rate", settings=settings)
    places, ranks = panel.get_lines()[0].get_data()
    assert panel.get_xscale() == "log"
    assert (places[0], places[-1]) == pytest.approx((1e-4, 1.0))
    assert ranks[0] < 0.4 * ranks[-1]  # small rates are good
    # One dot for each trial, and the best one where it is, on the curve.
    dots = line(panel, "trials, as predicted")
    assert dots.get_xdata() == pytest.approx([trial.params["rate"] for trial in study.trials])
    star = line(panel, "best trial")
    assert star.get_xdata() == pytest.approx([best.params["rate"]])
    curve = np.interp(np.log(best.params["rate"]), np.log(places), ranks)
    assert star.get_ydata() == pytest.approx([curve], rel=0.05)
    assert panel.get_xlabel() == "rate"
    # 512 spread points and 15 trials.
    assert panel.get_ylabel() == "rank among 527 points (1: best)"
    assert legend_of(panel) == ["mean ± standard error", "trials, as predicted", "best trial"]


def test_the_band_is_a_standard_error_to_both_sides(study, settings):
    from dre_plugins.plots.fitted import Fitted
    from dre_plugins.plots.slices import _Slice

    (panel,) = plot_predicted_ranks(study, "rate", settings=settings)
    band = panel.collections[0].get_paths()[0].vertices
    view = _Slice.of(Fitted(study, None, settings, None), "rate")
    mean, spread = view.ensemble.predicted(view.units)
    assert band[:, 1].max() == pytest.approx((mean + spread).max())
    assert band[:, 1].min() == pytest.approx((mean - spread).clip(0.0).min())


@pytest.mark.parametrize("name", ["rate", "kind"])
def test_there_is_no_band_where_there_are_no_ranks(study, settings, name):
    doubtful = replace(settings, preset=replace(settings.preset, tempering=1000.0))
    (panel,) = plot_predicted_ranks(study, name, settings=doubtful)
    bars = panel.collections[0].get_paths()  # or the band, which is one path
    heights = np.concatenate([path.vertices[:, 1] for path in bars])
    assert (heights.min(), heights.max()) == pytest.approx((0.0, 527.5))


def test_ranks_over_choices_and_a_few_numbers(study, settings):
    (panel,) = plot_predicted_ranks(study, ["kind"], settings=settings)
    assert [text.get_text() for text in panel.get_xticklabels()] == ["a", "b"]
    places, ranks = panel.containers[0].lines[0].get_data()
    assert [*places] == [0, 1]
    assert ranks[1] < ranks[0]
    assert panel.get_xlim() == (-0.5, 1.5)
    (panel,) = plot_predicted_ranks(study, "depth", settings=settings)
    assert [*panel.containers[0].lines[0].get_xdata()] == [1, 2, 3, 4, 5]


def test_a_conditional_parameter_is_looked_at_where_it_is_active(study, settings):
    (panel,) = plot_predicted_ranks(study, "share", settings=settings)
    ranks = panel.get_lines()[0].get_ydata()
    assert ranks[0] < ranks[-1]  # were it inactive, all would be the same
    dots = line(panel, "trials, as predicted").get_xdata()
    assert np.isnan(dots).sum() == sum(trial.params["kind"] == "a" for trial in study.trials)


def test_ranks_over_two_parameters(study, best, settings):
    panels = plot_predicted_ranks(study, ["rate", "kind"], settings=settings)
    assert [panel.get_title() for panel in panels] == ["Predicted ranks", "Their standard errors"]
    mean, spread = (panel.collections[0].get_array() for panel in panels)
    assert mean.shape == spread.shape == (2, 41)
    assert mean[1].mean() < mean[0].mean()
    assert mean[1, 0] < mean[1, -1]
    assert (spread >= 0).all()
    star = line(panels[0], "best trial")
    assert star.get_xdata() == pytest.approx([best.params["rate"]])
    assert star.get_ydata() == pytest.approx([1.0])
    assert [text.get_text() for text in panels[0].get_yticklabels()] == ["a", "b"]
    assert "mean rank among 527 points" in panels[0].figure.axes[2].get_ylabel()


def test_the_acquisition_is_larger_where_more_is_to_gain(study, best, settings):
    panel = plot_acquisition(study, "rate", settings=settings)
    worth = panel.get_lines()[0].get_ydata()
    assert worth[:50].mean() > worth[-50:].mean()
    assert panel.get_lines()[-1].get_xdata()[0] == pytest.approx(best.params["rate"])
    assert len(line(panel, "trials").get_xdata()) == 15
    plane = plot_acquisition(study, ("depth", "rate"), settings=settings)
    assert plane.collections[0].get_array().shape == (41, 5)
    assert plane.get_yscale() == "log"


def test_the_acquisition_is_that_of_the_settings(study, settings):
    panel = plot_acquisition(study, "rate", settings=replace(settings, acquisition="average-rank"))
    assert panel.get_lines()[0].get_ydata() == pytest.approx(
        -ranks_over("rate", study, settings=settings)
    )


def test_members_and_their_mean(study, settings):
    panel = plot_members(study, "rate", settings=settings)
    *members, mean = (line.get_ydata() for line in panel.get_lines())
    assert len(members) == 3
    assert np.mean(members, axis=0) == pytest.approx(mean)
    assert not np.allclose(members[0], members[1])
    assert legend_of(panel) == ["3 members", "mean"]


def test_a_picture_is_the_same_each_time_and_the_study_is_left_alone(study, settings):
    before = [(trial.params, trial.user_attrs, trial.system_attrs) for trial in study.trials]
    style = dict(plt.rcParams)
    first, second = (ranks_over("rate", study, settings=settings) for _ in range(2))
    assert (first == second).all()
    assert before == [
        (trial.params, trial.user_attrs, trial.system_attrs) for trial in study.trials
    ]
    assert dict(plt.rcParams) == style


def test_a_prior_is_what_the_ensemble_starts_from(study_of, settings):
    def flat(trial):
        return 0.0 * trial.suggest_float("x", 0.0, 1.0)

    prior = Prior.of_beliefs({"x": Float(0.0, 1.0)}, [{"x": 0.0}])
    study = study_of(flat, 2)
    ranks = ranks_over("x", study, prior=prior, settings=settings)
    assert ranks[:40].mean() < ranks[-40:].mean()  # the trials say nothing of this
    assert not np.allclose(ranks, ranks_over("x", study, settings=settings), atol=20)


def test_pruned_failed_and_running_trials_do_no_harm(study_of, settings):
    def objective(trial):
        value = trial.suggest_float("x", 0.0, 1.0)
        trial.report(value, 0)
        if trial.number % 4 == 1:
            raise optuna.TrialPruned
        if trial.number % 4 == 2:
            raise RuntimeError
        return value

    study = study_of(objective)
    study.ask({"x": optuna.distributions.FloatDistribution(0.0, 1.0)})
    study.ask()  # has asked for nothing
    (panel,) = plot_predicted_ranks(study, "x", settings=settings)
    assert len(line(panel, "trials, as predicted").get_xdata()) == 13


def test_each_objective_has_pictures_of_its_own(study_of, settings):
    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        return x, x

    study = study_of(objective, directions=["minimize", "maximize"])
    low, high = (ranks_over("x", study, settings=settings, objective=n) for n in range(2))
    assert low[0] < low[-1]
    assert high[0] > high[-1]
    for wrong in (None, 2, -1, 1.0, "1"):
        with pytest.raises(ValueError, match="objective must be a number from 0 to 1"):
            plot_predicted_ranks(study, "x", settings=settings, objective=wrong)


def test_one_parameter_of_the_study_or_two(study):
    for plot in (plot_predicted_ranks, plot_acquisition, plot_members):
        name = "param" if plot is plot_members else "params"
        with pytest.raises(ValueError, match=rf"^{name} must be among \['rate', .*got 'nothing'"):
            plot(study, "nothing")
    for params in ([], ["rate", "kind", "depth"], ["rate", "rate"], [["rate"]], None):
        with pytest.raises(ValueError, match=r"^params must be the name of one parameter, or of"):
            plot_predicted_ranks(study, params)
        with pytest.raises(ValueError, match=r"^param must be the name of one parameter, got"):
            plot_members(study, params)


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"study": None}, "^study must be a study of Optuna, or an AskTell, got None"),
        ({"settings": {"preset": "default"}}, "^settings must be a dre_plugins.Settings"),
        ({"prior": [None, "svm"]}, "prior has 2 entries for 1 objectives"),
    ],
)
def test_other_arguments_that_are_wrong(study, wrong, message):
    with pytest.raises((TypeError, ValueError), match=message):
        plot_members(**{"study": study, "param": "rate", **wrong})


def test_two_parameters_that_no_trial_has_together(study_of):
    def either(trial):
        if trial.suggest_categorical("kind", ["a", "b"]) == "a":
            return trial.suggest_float("x", 0.0, 1.0)
        return trial.suggest_float("y", 0.0, 1.0)

    with pytest.raises(ValueError, match="parameters that one trial has together"):
        plot_acquisition(study_of(either), ["x", "y"])


@pytest.mark.parametrize("n_trials", [0, 1])
def test_too_few_trials(study_of, n_trials):
    with pytest.raises(ValueError, match=f"needs 2 trials with a value; the study has {n_trials}"):
        plot_predicted_ranks(study_of(mixed, n_trials), "rate")
