"""When a study ends: the expected gain of the next trials falls as a study closes in."""

import logging
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest

from dre_plugins.recommend import Trial, TrialState
from dre_plugins.recommend.trials import Observed
from dre_plugins.space import Float, SearchSpace
from dre_plugins.space.rules import Rule
from dre_plugins.study import AskTell
from dre_plugins.study.stopping import ExpectedGain, StoppingRule, StudyStopping, expected_gain

LOGGER = logging.getLogger("dre_plugins")
SPACE = SearchSpace({"x": Float(-5.0, 5.0), "y": Float(-5.0, 5.0)})
RULE = Rule(SPACE, None)


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


def test_constraints_and_failures_are_minded():
    failed = [Trial({"x": 4.0, "y": 4.0}, TrialState.FAILED)] * 30
    assert not is_met(StoppingRule(), [*history(0.1)[:19], *failed])
    study = AskTell(SPACE, direction="maximize", seed=0)
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
    study = AskTell(SPACE, direction="maximize", seed=0, valid=valid)
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
def test_arguments_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        StoppingRule(**arguments)
