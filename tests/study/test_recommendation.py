"""Which trial is recommended: the best by the model under noise, the best observed without."""

import numpy as np
import pytest

from dre_plugins.recommend import Trial, TrialState
from dre_plugins.recommend.trials import Observed
from dre_plugins.space import Categorical, Float, SearchSpace
from dre_plugins.study import AskTell
from dre_plugins.study.recommendation import recommended

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
