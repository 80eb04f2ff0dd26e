"""`cost=` in every framework: what trials have cost is read, weighed and explained."""

from datetime import datetime
from functools import cache
from typing import Any

import pytest
from presets import FAST

optuna = pytest.importorskip("optuna")
tune = pytest.importorskip("ray.tune")
config_space = pytest.importorskip("syne_tune.config_space")

from syne_tune.backend.trial_status import Trial as SyneTuneTrial  # noqa: E402

from dre_plugins import ASHADRE, DRE, DRESampler, DRESearch  # noqa: E402
from dre_plugins.recommend.explanation import Explanation  # noqa: E402

N_TRIALS = 12
OPTIONS: dict[str, Any] = {"settings": FAST}


def reported(config: dict[str, Any]) -> dict[str, float]:
    """Return a loss that does not depend on x, along which the price grows a hundredfold."""
    price = 100.0 ** config["x"]
    names = {"price", "time_total_s", "st_worker_time"}
    return {"loss": (config["y"] - 0.3) ** 2, **dict.fromkeys(names, price)}


def in_optuna(cost: str | None, key: str = "price") -> tuple[list[float], list[Explanation]]:
    def objective(trial: Any) -> float:
        report = reported({name: trial.suggest_float(name, 0, 1) for name in "xy"})
        trial.set_user_attr(key, report["price"])
        return report["loss"]

    study = optuna.create_study(sampler=DRESampler(seed=0, cost=cost, **OPTIONS))
    study.optimize(objective, n_trials=N_TRIALS)
    prices = [100.0 ** trial.params["x"] for trial in study.trials]
    return prices, [study.sampler.explain(study, number) for number in range(N_TRIALS)]


def in_ray_tune(cost: str | None, key: str = "price") -> tuple[list[float], list[Explanation]]:
    space = {name: tune.uniform(0, 1) for name in "xy"}
    search = DRESearch(space, "loss", "min", seed=0, cost=cost, **OPTIONS)
    prices = []
    for number in range(N_TRIALS):
        report = reported(search.suggest(str(number)))
        prices.append(report["price"])
        result = {**report, key: report["price"], "training_iteration": 1}
        search.on_trial_result(str(number), result)
        search.on_trial_complete(str(number), result)
    return prices, [search.explain(str(number)) for number in range(N_TRIALS)]


def in_syne_tune(cost: str | None, key: str = "price") -> tuple[list[float], list[Explanation]]:
    space = {name: config_space.uniform(0, 1) for name in "xy"}
    scheduler = DRE(space, "loss", random_seed=0, cost=cost, **OPTIONS)
    prices = []
    for number in range(N_TRIALS):
        trial = SyneTuneTrial(number, scheduler.suggest().config, datetime.now())
        report = reported(trial.config)
        prices.append(report["price"])
        scheduler.on_trial_add(trial)
        scheduler.on_trial_complete(trial, {**report, key: report["price"]})
    return prices, [scheduler.explain(number) for number in range(N_TRIALS)]


unweighed = cache(lambda framework: sum(framework(None)[0][3:]))
every = pytest.mark.parametrize("framework", [in_optuna, in_ray_tune, in_syne_tune])


@every
@pytest.mark.parametrize("cost", ["price", "duration"])
def test_costs_are_read_and_explained(framework, cost) -> None:
    prices, explanations = framework(cost)
    expected = [explanation.expected_cost for explanation in explanations]
    assert expected[:3] == [None] * 3  # of start-up trials nothing is expected
    assert all(cost is not None for cost in expected[3:])
    if (framework, cost) != (in_optuna, "duration"):  # whose durations are real, and all alike
        assert sum(prices[3:]) < unweighed(framework)


@every
def test_a_cost_that_is_missing_is_said_once_and_left_out(framework, caplog) -> None:
    _, explanations = framework("joules")
    (said,) = [r.getMessage() for r in caplog.records if "'joules'" in r.getMessage()]
    assert said.startswith("The cost of trial 0 is unknown")
    assert framework is in_optuna or "'price'" in said.split("There are ")[1]
    assert framework is not in_ray_tune or "'time_total_s'" not in said  # Ray's own
    assert not any(explanation.expected_cost for explanation in explanations)


@every
@pytest.mark.parametrize("wrong", ["", 3, True])
def test_what_names_no_cost_is_refused(framework, wrong) -> None:
    with pytest.raises(ValueError, match=r"cost must be 'duration', the name of a"):
        framework(wrong)


def test_rungs_take_no_cost() -> None:
    space = {"x": config_space.uniform(0, 1)}
    with pytest.raises(ValueError, match=r"cost must be left out: .*; DRE takes a cost"):
        ASHADRE(space, "loss", "epoch", 9, cost="duration")


def test_trials_that_were_added_have_no_duration() -> None:
    study = optuna.create_study(sampler=DRESampler(seed=0, cost="duration", **OPTIONS))
    ranges = {name: optuna.distributions.FloatDistribution(0, 1) for name in "xy"}
    for x in (0.1, 0.3, 0.5, 0.7, 0.8, 0.9):
        params = {"x": x, "y": 1 - x}
        study.add_trial(optuna.trial.create_trial(params=params, distributions=ranges, value=x))
    study.ask(ranges)
    trial = study.ask(ranges)
    explanation = study.sampler.explain(study, trial.number)
    assert explanation.source == "universal-prior" and explanation.expected_cost is None
