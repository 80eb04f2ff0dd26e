"""Which trial is recommended, and when a study ends: the model's view of what was observed."""

import logging
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest

from dre_plugins.recommend import Trial, TrialState
from dre_plugins.recommend.trials import Observed
from dre_plugins.space import Categorical, Float, SearchSpace
from dre_plugins.space.rules import Rule
from dre_plugins.study import AskTell
from dre_plugins.study.recommendation import recommended
from dre_plugins.study.stopping import ExpectedGain, StoppingRule, StudyStopping, expected_gain

SPACE = SearchSpace({"x": Float(-5.0, 5.0), "kind": Categorical(("a", "b"))})


def true_value(configuration: dict[str, object]) -> float:
    return -((float(configuration["x"]) - 1.0) ** 2) - 3.0 * (configuration["kind"] == "a")


def noisy_history(noise: float, seed: int, n: int = 40) -> list[Trial]:
    rng = np.random.default_rng(seed)
    points = [{"x": rng.uniform(-5.0, 5.0), "kind": "ab"[rng.integers(2)]} for _ in range(n)]
    return [
        Trial(point, TrialState.COMPLETE, true_value(point) + noise * rng.standard_normal())
        for point in points
    ]


def test_under_noise_the_recommended_trial_and_its_value_are_nearer_the_truth():
    regrets, errors = [], []
    for seed in range(10):
        history = noisy_history(4.0, seed)
        chosen = recommended(SPACE, Observed.of(history))
        lucky = max(history, key=lambda trial: trial.value)
        true, true_of_lucky = (
            true_value(trial.configuration) for trial in (history[chosen.trial], lucky)
        )
        regrets.append((-true, -true_of_lucky))
        errors.append((abs(chosen.value - true), abs(lucky.value - true_of_lucky)))
        assert 1.0 < chosen.noise < 8.0
        assert 0.0 < chosen.deviation < 8.0
    ours, luckiest = np.mean(regrets, axis=0)
    assert ours < 0.7 * luckiest
    predicted, observed = np.mean(errors, axis=0)
    assert predicted < 0.5 * observed


@pytest.mark.parametrize("n", [1, 2, 40])
def test_without_noise_it_is_the_best_trial(n):
    for seed in range(5):
        history = noisy_history(0.0, seed, n)
        chosen = recommended(SPACE, Observed.of(history))
        best = max(history, key=lambda trial: trial.value)
        assert history[chosen.trial] is best


def test_failures_beside_good_trials_change_nothing():
    history = noisy_history(0.0, 0)
    best = sorted(history, key=lambda trial: -trial.value)[:10]
    failed = [Trial(trial.configuration, TrialState.FAILED) for trial in best]
    chosen = recommended(SPACE, Observed.of([*history, *failed]))
    assert chosen == recommended(SPACE, Observed.of(history))


def test_what_is_no_complete_feasible_trial_is_not_recommended():
    study = AskTell(SPACE, direction="maximize", seed=0)
    good = {"x": 1.0, "kind": "b"}
    for x in np.linspace(-5.0, -1.0, 8):
        study.add({"x": x, "kind": "b"}, x, constraints={"memory": -1.0})
    study.add(good, 9.0, constraints={"memory": 1.0})
    study.add({**good, "x": 1.1}, 9.0)  # whether it meets the constraint is unknown
    study.add({**good, "x": 1.2}, None, constraints={"memory": -1.0})
    number, _ = study.ask()
    study.report(number, 1, 9.0)
    recommendation = study.recommend()
    assert recommendation.trial.configuration["x"] <= -1.0
    assert recommendation.trial.value == recommendation.trial.configuration["x"]


def test_there_is_an_error_where_nothing_can_be_recommended():
    with pytest.raises(ValueError, match="needs a complete trial that meets"):
        AskTell(SPACE, seed=0).recommend()


@pytest.mark.parametrize("size", [np.inf, 1e300, 1e-300, 0.0])
def test_values_of_any_size_are_read_up_to_the_largest_floats(size):
    history = [
        Trial(trial.configuration, trial.state, float(np.nan_to_num(size * trial.value)))
        for trial in noisy_history(1.0, 0)
    ]
    chosen = recommended(SPACE, Observed.of(history))
    assert np.isfinite([chosen.value, chosen.deviation, chosen.noise]).all()


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_an_infinite_value_is_what_it_is(direction):
    study = AskTell(SPACE, direction=direction, seed=0)
    for x in np.linspace(-5.0, 5.0, 12):
        study.add({"x": x, "kind": "a"}, np.inf if x > 0.0 else x)
    chosen = study.recommend()
    assert np.isfinite(chosen.noise)
    if direction == "minimize":
        assert chosen.value == pytest.approx(-5.0, abs=1.0) and chosen.deviation < 1.0
    else:
        assert chosen.value == chosen.trial.value == np.inf and np.isnan(chosen.deviation)


# ---- when a study ends: the expected gain of the next trials falls as it closes in

LOGGER = logging.getLogger("dre_plugins")
PLANE = SearchSpace({"x": Float(-5.0, 5.0), "y": Float(-5.0, 5.0)})
RULE = Rule(PLANE, None)


def history(radius: float, n: int = 30, size: float = 1.0) -> list[Trial]:
    """Ten trials anywhere, then others within a radius of the optimum."""
    rng = np.random.default_rng(0)
    points = np.concatenate(
        [rng.uniform(-5, 5, (10, 2)), rng.uniform(-1, 1, (n - 10, 2)) * radius]
    )
    return [
        Trial({"x": x, "y": y}, TrialState.COMPLETE, -size * (x**2 + y**2))
        for x, y in points.tolist()
    ]


def is_met(rule: StoppingRule, trials: list[Trial]) -> bool:
    return rule.is_met(RULE, Observed.of(trials), n_objectives=1, logger=LOGGER)


def gain_of(trials: list[Trial], **options: int) -> ExpectedGain | None:
    return expected_gain(RULE, Observed.of(trials), **options)


def test_near_the_optimum_less_is_expected_and_more_of_more_trials():
    away = [trial for trial in history(5.0, 60) if trial.value < -4.0][:30]
    far, near = gain_of(away), gain_of(history(0.1))
    assert near.gain < 0.2 * far.gain
    assert near.gain / near.gained < 0.02 < far.gain / far.gained
    assert gain_of(history(0.1), n_ahead=20).gain > 1.5 * near.gain
    assert gain_of(history(0.1)[:9]) is None


def test_the_unit_of_the_metric_changes_the_gain_alone():
    gain = gain_of(history(0.5)).gain
    for size in (1e-200, 1e-3, 1e200):
        scaled = gain_of(history(0.5, size=size))
        assert scaled.gain == pytest.approx(size * gain, rel=1e-3)


def test_the_largest_floats_do_not_overflow():
    largest = np.finfo(np.float64).max
    values = [-largest] * 10 + [largest] * 10
    trials = [replace(t, value=v) for t, v in zip(history(0.5, 20), values, strict=True)]
    assert not is_met(StoppingRule(), trials)


def test_the_smallest_floats_may_underflow_where_numpy_raises():
    trials = [replace(t, value=1e300 if t.value > -1.0 else 1e-300) for t in history(0.5, 20)]
    with np.errstate(all="raise"):
        assert gain_of(trials).gained == pytest.approx(1e300)


def test_a_study_ends_when_little_is_expected_and_says_so(caplog):
    caplog.set_level("INFO", "dre_plugins")
    assert is_met(StoppingRule(), history(0.1))
    assert "The study ends after 30 complete trials: the next 10 are expected" in caplog.text
    assert not is_met(StoppingRule(min_n_trials=31), history(0.1))
    assert not is_met(StoppingRule(min_gain=1e-9), history(0.1))
    assert is_met(StoppingRule(min_gain=100.0), history(5.0))
    assert is_met(StoppingRule(), [replace(trial, value=-1.0) for trial in history(0.1)])
    assert "The study ends after 30 complete trials, as all have the same value." in caplog.text


def test_constraints_and_failures_are_minded():
    failed = [Trial({"x": 4.0, "y": 4.0}, TrialState.FAILED)] * 30
    assert not is_met(StoppingRule(), [*history(0.1)[:19], *failed])
    study = AskTell(PLANE, direction="maximize", seed=0)
    stopping = StudyStopping(StoppingRule(min_gain=100.0), LOGGER)
    for trial in history(0.1):
        study.add(trial.configuration, trial.value, constraints={"memory": 1.0})
    assert not stopping.is_met(study)
    for trial in history(0.1):
        study.add(trial.configuration, trial.value, constraints={"memory": -1.0})
    assert stopping.is_met(study)
    assert 0.0 < study.expected_gain().gain < study.expected_gain(30).gain


@pytest.mark.parametrize("valid", [None, lambda c: c["x"] >= 4.0])
def test_what_may_not_be_tried_gains_nothing(valid):
    study = AskTell(PLANE, direction="maximize", seed=0, valid=valid)
    for trial in history(0.1):
        x, y = 4.0 + abs(trial.configuration["x"]) / 5, trial.configuration["y"]
        study.add({"x": x, "y": y}, -(x**2) - y**2)
    assert StudyStopping(StoppingRule(), LOGGER).is_met(study) == (valid is not None)


def test_what_cannot_be_told_ends_no_study(monkeypatch, caplog):
    broken = Mock(side_effect=RuntimeError("out of memory"))
    monkeypatch.setattr("dre_plugins.recommend.posterior.best_improvement", broken)
    assert not is_met(StoppingRule(min_gain=100.0), history(0.1))
    assert "cannot be told: out of memory" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_ahead": 0}, "n_ahead must be an integer from 1 to 1000000, got 0"),
        ({"n_ahead": 10**400}, "n_ahead must be an integer from 1 to 1000000, got 1"),
        ({"min_gain": 0.0}, "min_gain must be a finite number above 0, or None, got 0.0"),
        ({"min_gain": np.inf}, "min_gain must be a finite number above 0, or None, got inf"),
        ({"min_gain": 10**400}, "min_gain must be a finite number above 0, or None, got 1"),
        ({"min_n_trials": 9}, "min_n_trials must be an integer from 10, got 9"),
    ],
)
def test_arguments_of_a_rule_that_stops_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        StoppingRule(**arguments)
