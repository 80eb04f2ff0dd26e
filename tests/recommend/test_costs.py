"""What trials are expected to cost, and how that is weighed against what they may gain."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dre_plugins.engine.runtime import isolated
from dre_plugins.recommend import Recommender, Trial, TrialState
from dre_plugins.recommend.evidence import Evidence
from dre_plugins.recommend.gain_weights import CostModel, GainWeights
from dre_plugins.recommend.universal_prior import process_features
from dre_plugins.space import Categorical, Float, SearchSpace
from dre_plugins.study import AskTell

SPACE = SearchSpace(
    {"x": Float(0.0, 1.0), "y": Float(0.0, 1.0), "kind": Categorical(("a", "b", "c"))}
)
REFERENCE = SPACE.canonical(np.random.default_rng(2).random((64, SPACE.n_parameters)))


def cost(c: dict[str, Any]) -> float:
    """Return a cost from 1 to 100, twice that in one branch."""
    return 100.0 ** c["x"] * (2.0 if c["kind"] == "b" else 1.0)


def evidence_of(costs: list[float | None], state: TrialState = TrialState.COMPLETE) -> Evidence:
    units = np.random.default_rng(0).random((len(costs), SPACE.n_parameters))
    trials = [
        Trial(SPACE.to_configuration(row), state, 0.0, cost=paid)
        for row, paid in zip(units, costs, strict=True)
    ]
    return Evidence.of(SPACE, trials, weights=np.ones(1))


def history_of(n: int) -> list[Trial]:
    blank = evidence_of([None] * n).trials
    return [replace(trial, cost=cost(dict(trial.configuration))) for trial in blank]


def model_of(n: int) -> CostModel:
    with isolated("cpu", 1):
        model = GainWeights.of(Evidence.of(SPACE, history_of(n), weights=np.ones(1))).costs
    assert model is not None
    return model


def test_costs_are_predicted() -> None:
    units = SPACE.canonical(np.random.default_rng(1).random((200, SPACE.n_parameters)))
    true = np.array([cost(SPACE.to_configuration(row)) for row in units])
    with isolated("cpu", 1):
        errors = np.log(model_of(25).expected(units) / true)
    assert np.abs(errors).mean() < 0.35 * np.abs(np.log(true) - np.log(true).mean()).mean()


def test_a_gain_is_divided_by_one_plus_the_cost_in_mean_costs() -> None:
    model, units = model_of(25), evidence_of([None] * 25).units
    mean = np.mean([cost(SPACE.to_configuration(row)) for row in units])
    with isolated("cpu", 1):
        factors = np.exp(-model.log_weights(process_features(SPACE, units)))
        assert factors == pytest.approx(1.0 + model.expected(units) / mean)
    # Far outside of the space predictions may be anything.
    (log_weight,), derivatives = model.with_derivatives(np.full((1, SPACE.n_features), 40.0))
    assert -math.inf < log_weight <= 0.0 and np.isfinite(derivatives).all()


@pytest.mark.parametrize(
    ("costs", "state"),
    [
        ([5.0, 7.0], TrialState.COMPLETE),
        ([5.0] * 9, TrialState.COMPLETE),
        ([None] * 9, TrialState.COMPLETE),
        ([1.0, 2.0, 3.0, 4.0], TrialState.FAILED),
        ([1.0, 2.0, 3.0, 4.0], TrialState.RUNNING),
        ([1.0, 2.0, 3.0, 4.0], TrialState.PRUNED),
    ],
)
def test_what_says_nothing_of_costs_changes_nothing(costs, state) -> None:
    """Too few, all the same, unknown, or of trials that did not come to their end."""
    assert GainWeights.of(evidence_of(costs, state)).costs is None


def test_costs_at_the_limits_of_floats() -> None:
    """Their logarithms may be equal, and what is expected may be more than any float."""
    costs: list[float | None] = [1000.0, 1000.0, math.nextafter(1000.0, math.inf), 1000.0]
    with isolated("cpu", 1):
        model = GainWeights.of(evidence_of(costs)).costs
        assert model is not None
        assert model.expected(REFERENCE) == pytest.approx(1000.0)
    line = SearchSpace({"x": Float(0.0, 1.0)})
    units = np.linspace(0.0, 0.6, 8)[:, None]
    with isolated("cpu", 1):
        model = CostModel(line, units, 10.0 ** (1026.0 * units[:, 0] - 308.0))
        assert GainWeights(line, (), model).expected_cost(np.array([0.8])) is None


def tuned(told: Any, n: int = 30) -> AskTell:
    """Tune a plateau in x, along which only the cost differs."""
    study = AskTell(SPACE, seed=2)
    for _ in range(n):
        number, c = study.ask()
        study.tell(number, (c["y"] - 0.3) ** 2 + (c["kind"] != "a"), cost=told(number, c))
    assert study.stats["fallbacks"] == 0
    return study


@pytest.mark.usefixtures("few_candidates")
def test_both_models_prefer_cheap_trials_where_gains_are_equal() -> None:
    sources = {"model": range(20, 30, 2), "universal-prior": range(13, 30, 2)}
    blind = tuned(lambda number, c: None)
    # Of every third trial the cost is not known.
    aware = tuned(lambda number, c: None if number % 3 == 2 else cost(c))
    for source, numbers in sources.items():
        paid = []
        for study in (blind, aware):
            assert {study.explain(number).source for number in numbers} == {source}
            paid.append(sum(cost(dict(study.trials[n].configuration)) for n in numbers))
        # Blind studies pay 280 and more: one costly exploration, of 100, decides nothing.
        assert paid[1] < paid[0] / 2
    assert aware.best.value == pytest.approx(0.0, abs=0.01)
    expected = aware.explain(22).expected_cost
    actual = cost(dict(aware.trials[22].configuration))
    assert expected == pytest.approx(actual, rel=0.5)
    assert f"expected cost {expected:.3g}" in str(aware.explain(22))
    assert blind.explain(22).expected_cost is None and "cost" not in str(blind.explain(22))


def test_the_ensemble_divides_its_acquisition() -> None:
    told = [replace(trial, value=trial.configuration["y"]) for trial in history_of(12)]
    untold = [replace(trial, cost=None) for trial in told]
    recommender = Recommender(SPACE, seed=0)
    with isolated("cpu", 1):
        aware = recommender.ensemble(told, index=12)
        blind = recommender.ensemble(untold, index=12)
        factors = np.exp(-aware._batch.gain_weights.logs_at(REFERENCE))
        divided = blind.acquisition_values(REFERENCE) / factors
        assert aware.acquisition_values(REFERENCE) == pytest.approx(divided, rel=1e-4)
    assert factors.max() > 2.0 * factors.min() and divided.max() > 0.0


def test_equal_costs_change_no_suggestion() -> None:
    blind, constant = (tuned(told, 16) for told in (lambda n, c: None, lambda n, c: 60.0))
    assert [t.configuration for t in blind.trials] == [t.configuration for t in constant.trials]


@pytest.mark.parametrize("wrong", [-1.0, "3 s", True, -math.inf])
def test_what_is_no_cost_is_refused(wrong) -> None:
    study = AskTell(SPACE, seed=0)
    number, configuration = study.ask()
    with pytest.raises(ValueError, match=r"cost must be a number of at least 0"):
        study.tell(number, 1.0, cost=wrong)
    assert study.is_running(number)
    with pytest.raises(ValueError, match=r"cost must be a number of at least 0"):
        study.add(configuration, 1.0, cost=wrong)
    for unknown in (None, 0.0, math.nan, math.inf):
        study.add(configuration, 1.0, cost=unknown)
        assert study.trials[-1].cost is None
