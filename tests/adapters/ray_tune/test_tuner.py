"""`DRESearch` in real Tuners on one small cluster; killed drivers: `test_ray_restarts.py`."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from marks import of_tuners
from presets import TINY
from ray import tune
from ray.tune import schedulers
from ray.tune.search import ConcurrencyLimiter, Repeater
from ray_tune_worker import (
    MIXED_SPACE,
    SMALL_SPACE,
    Steps,
    mixed,
    started_cluster,
    states,
    tiny_search,
    trials,
)

from dre_plugins.adapters.ray_tune import (
    DRESearch,
    ExpectedGainStopper,
    metadata_from_results,
    recommend,
)
from dre_plugins.recommend.settings import Settings

pytestmark = of_tuners("ray", 300)


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with started_cluster(num_cpus=8):
        yield


@pytest.fixture
def fit(tmp_path: Path) -> Callable[..., Any]:
    """Run a Tuner; trials share a process, as starting one takes seconds."""

    def run(
        trainable: Any,
        search: Any,
        space: dict[str, Any],
        num_samples: int,
        *,
        stop: Any = None,
        **config: Any,
    ) -> Any:
        return tune.Tuner(
            trainable,
            param_space=space,
            tune_config=tune.TuneConfig(
                **{
                    "metric": "loss",
                    "mode": "min",
                    "search_alg": search,
                    "num_samples": num_samples,
                    "reuse_actors": True,
                    "max_concurrent_trials": 1,
                    **config,
                }
            ),
            run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0, stop=stop),
        ).fit()

    return run


# ---- the end of an experiment, and what to use of it


def test_an_experiment_stops_when_little_is_expected(fit: Callable[..., Any]) -> None:
    def trainable(config: dict[str, Any]) -> dict[str, Any]:
        return {"loss": config["x"] ** 2}

    search = tiny_search()
    stopper = ExpectedGainStopper(search, min_gain=1e6, min_n_trials=10)
    results = fit(trainable, search, {"x": tune.uniform(-1, 1)}, 40, stop=stopper)
    assert 10 <= len(results) <= 12
    assert recommend(results, "loss", "min").trial.config == results.get_best_result().config


# ---- domains


def test_trials_get_every_kind_of_value(fit: Callable[..., Any]) -> None:
    choices = [None, True, 1, "a", (1, 2), [3], {"k": 1}]
    optimizers = [
        {"name": "sgd", "rate": tune.loguniform(1e-4, 1), "momentum": tune.uniform(0, 1)},
        {"name": "adam", "rate": tune.loguniform(1e-4, 1), "of": abs},
    ]
    space = {
        "uniform": tune.uniform(0.5, 2),
        "randint": tune.randint(1, 4),
        "choice": tune.choice(choices),
        "object": tune.choice([len, max]),
        "numpy": tune.choice([np.int64(2), np.int64(5)]),
        "optimizer": tune.choice(optimizers),
        "nested": {"deep": {"x": tune.uniform(2, 3), "constant": 5}, "function": len},
        "layers": [tune.randint(1, 9), 64, (tune.choice(["a", "b"]), max)],
        "constant": 7,
        "callable": sum,
        "array": np.arange(3),
        "empty": {"dictionary": {}, "list": []},
        "sampled": tune.sample_from(lambda config: config["uniform"] + 1),
    }

    def trainable(config: dict[str, Any]) -> dict[str, Any]:
        return {"loss": config["uniform"], "seen": {key: config[key] for key in space}}

    search = tiny_search(points_to_evaluate=[{"nested/deep/x": 2.5, "optimizer": {"momentum": 1}}])
    results = fit(trainable, search, space, 12)
    assert results.num_errors == 0 and len(results) == 12
    configs = [result.metrics["seen"] for result in results]
    assert any(config["nested"]["deep"]["x"] == 2.5 for config in configs)
    for config in configs:
        assert list(config) == list(space)
        assert type(config["uniform"]) is float and config["randint"] in (1, 2, 3)
        assert any(
            config["choice"] == choice and type(config["choice"]) is type(choice)
            for choice in choices
        )
        assert config["object"] in (len, max)
        assert type(config["numpy"]) is np.int64
        optimizer = config["optimizer"]
        assert 1e-4 <= optimizer["rate"] <= 1
        if optimizer["name"] == "sgd":
            assert list(optimizer) == ["name", "rate", "momentum"]
        else:
            assert list(optimizer) == ["name", "rate", "of"] and optimizer["of"] is abs
        assert config["nested"]["deep"]["constant"] == 5 and config["nested"]["function"] is len
        first, second, third = config["layers"]
        assert 1 <= first < 9 and second == 64
        assert type(third) is tuple and third[0] in "ab" and third[1] is max
        assert config["constant"] == 7 and config["callable"] is sum
        assert config["array"].tolist() == [0, 1, 2]
        assert config["empty"] == {"dictionary": {}, "list": []}
        assert config["sampled"] == config["uniform"] + 1
    assert search.stats["fallbacks"] == 0 < search.stats["model"]


def test_objects_to_choose_from_in_a_space_of_the_constructor(fit: Callable[..., Any]) -> None:
    space = {"f": tune.choice([abs, math.sqrt]), "x": tune.uniform(0, 1), "own": 3}
    beside = {"constant": 7, "sampled": tune.sample_from(lambda config: 2 * config["x"])}

    def trainable(config: dict[str, Any]) -> dict[str, Any]:
        assert (config["own"], config["constant"]) == (3, 7)
        assert config["sampled"] == 2 * config["x"]
        return {"loss": config["f"](config["x"])}

    search = tiny_search(space, points_to_evaluate=[{"f": math.sqrt, "x": 0.25}])
    results = fit(trainable, search, beside, 5)
    assert results.num_errors == 0
    assert trials(search)[0].value == 0.5


def test_a_grid_and_a_missing_space_are_refused(fit: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"'g' is a tune.grid_search"):
        fit(mixed, tiny_search(), {"g": tune.grid_search([1, 2])}, 2)
    with pytest.raises(ValueError, match="nothing to search"):
        fit(mixed, tiny_search(metric="loss", mode="min"), {}, 2)
    with pytest.raises(ValueError, match="other domains"):
        fit(mixed, tiny_search(SMALL_SPACE, metric="loss", mode="min"), MIXED_SPACE, 2)


# ---- concurrency


def test_a_batch_limiter_and_a_repeater_come_to_an_end(fit: Callable[..., Any]) -> None:
    limited = tiny_search()
    limiter = ConcurrencyLimiter(limited, max_concurrent=3, batch=True)
    results = fit(mixed, limiter, MIXED_SPACE, 7, max_concurrent_trials=None)
    assert len(results) == 7 and states(limited) == ["complete"] * 7

    repeated = tiny_search()
    results = fit(mixed, Repeater(repeated, repeat=2), MIXED_SPACE, 8)
    assert len(results) == 8
    assert states(repeated) == ["complete"] * 4


def test_a_finite_space_ends_the_experiment(fit: Callable[..., Any]) -> None:
    space = {"y": tune.randint(0, 6)}
    results = fit(lambda config: {"loss": config["y"]}, tiny_search(), space, 30)
    assert sorted(result.config["y"] for result in results) == [0, 1, 2, 3, 4, 5]


# ---- schedulers


def scheduled(name: str) -> Any:
    if name == "ASHA":
        return schedulers.ASHAScheduler(max_t=4, grace_period=1, reduction_factor=2)
    if name == "HyperBand":
        return schedulers.HyperBandScheduler(max_t=4, reduction_factor=2)
    if name == "HyperBandForBOHB":
        return schedulers.HyperBandForBOHB(max_t=4, reduction_factor=2)
    return schedulers.MedianStoppingRule(grace_period=1, min_samples_required=1, hard_stop=False)


@pytest.mark.parametrize("name", ["ASHA", "HyperBand", "HyperBandForBOHB", "MedianStoppingRule"])
def test_schedulers_run_to_the_end_and_what_they_stop_is_pruned(
    fit: Callable[..., Any], name: str
) -> None:
    search = tiny_search()
    space = {"x": tune.uniform(0, 1)}
    scheduler, stop = scheduled(name), {"training_iteration": 4}
    results = fit(Steps, search, space, 6, scheduler=scheduler, stop=stop, max_concurrent_trials=2)
    assert results.num_errors == 0 and len(results) == 6
    assert set(states(search)) <= {"complete", "pruned"}
    iterations = {result.config["x"]: result.metrics["training_iteration"] for result in results}
    for trial in trials(search):
        n = iterations[trial.configuration["x"]]
        assert list(trial.rungs) == list(range(1, n + 1))
        assert trial.state.value == ("complete" if n == 4 else "pruned")
        assert trial.value == (trial.rungs[4.0] if n == 4 else None)
    if name == "ASHA":
        assert "pruned" in states(search)


# ---- several objectives, limits, Optuna's sampler


def test_limits_and_several_objectives(fit: Callable[..., Any]) -> None:
    def trainable(config: dict[str, float]) -> dict[str, float]:
        return {"gain": config["x"] + config["y"], "size": config["x"] ** 2, "rate": config["y"]}

    search = tiny_search(
        metric=["gain", "size"], mode=["max", "min"], constraints={"rate": (None, 0.8)}
    )
    space = {"x": tune.uniform(0.0, 1.0), "y": tune.uniform(0.0, 1.0)}
    results = fit(trainable, search, space, 12, metric=None, mode=None)
    assert len(results) == 12 and results.num_errors == 0
    assert search.stats["model"] >= 6 and search.stats["fallbacks"] == 0


def test_optuna_search_takes_the_sampler(fit: Callable[..., Any]) -> None:
    pytest.importorskip("optuna")
    from ray.tune.search.optuna import OptunaSearch

    from dre_plugins.adapters.optuna import DRESampler

    sampler = DRESampler(seed=0, n_startup_trials=4, settings=Settings(preset=TINY))
    space = {"x": tune.uniform(0.0, 1.0), "kind": tune.choice(["a", "b"])}
    results = fit(lambda config: {"loss": config["x"]}, OptunaSearch(sampler=sampler), space, 12)
    assert len({str(result.config) for result in results}) == 12 and not results.num_errors
    assert sampler.stats["model"] >= 6 and sampler.stats["fallbacks"] == 0


# ---- trials that go wrong


def test_trials_that_crash_or_report_nothing_of_use(fit: Callable[..., Any], monkeypatch) -> None:
    # Otherwise Ray itself ends the run at the first result without the metric.
    monkeypatch.setenv("TUNE_DISABLE_STRICT_METRIC_CHECKING", "1")

    def trainable(config: dict[str, Any]) -> Iterator[dict[str, float]]:
        outcomes = {"nan": {"loss": math.nan}, "other": {"accuracy": 1.0}, "crash": {}}
        if config["kind"] != "nothing":
            yield outcomes.get(config["kind"], {"loss": 2.0})
        if "crash" in config["kind"]:
            raise RuntimeError("out of memory")

    kinds = ["good", "crash", "late crash", "nan", "other", "nothing"]
    search = tiny_search(points_to_evaluate=[{"kind": kind, "x": 0.5} for kind in kinds])
    space = {"kind": tune.choice(kinds), "x": tune.uniform(0, 1)}
    results = fit(trainable, search, space, 8)
    assert len(results) == 8
    values = [trial.value for trial in trials(search)[:6]]
    assert values == [2.0, None, None, None, None, None]
    assert search.stats["fallbacks"] == 0 < search.stats["model"]


# ---- what was evaluated before


def test_trials_and_results_of_an_earlier_run_are_learnt_from(fit: Callable[..., Any]) -> None:
    space = {**MIXED_SPACE, "object": len, "sampled": tune.sample_from(lambda config: 3)}
    branches = [{"is_wide": 0, "n": tune.uniform(0, 1)}, {"is_wide": 1, "n": tune.uniform(8, 9)}]
    space["net"] = tune.choice(branches)
    first = fit(mixed, tiny_search(), space, 8, mode="max")
    # As a later session reads it from its folder.
    analysis = tune.ExperimentAnalysis(first.experiment_path)

    search = tiny_search()
    search.add_evaluated_trials(analysis, metric="loss")  # complete configurations
    assert fit(mixed, search, space, 2).num_errors == 0
    values = [trial.value for trial in trials(search)[:8]]
    assert sorted(values) == sorted(result.metrics["loss"] for result in first)
    assert search.stats == {"suggestions": 2, "model": 2}

    for past in (first, [first.experiment_path], analysis):  # the Tuner pickles them
        search = tiny_search(past_results=past, n_startup_trials=None)
        assert fit(mixed, search, space, 1).num_errors == 0
        assert search.stats == {"suggestions": 1, "past-studies": 1}
        (task,) = metadata_from_results(past, metric="loss", mode="max", space=space)
        for is_wide, name in enumerate(("net/n", "net[1]/n")):  # branches with ranges of their own
            found = [t.configuration[name] for t in task.trials() if name in t.configuration]
            nets = [result.config["net"] for result in first]
            given = [net["n"] for net in nets if net["is_wide"] == is_wide]
            assert given and sorted(found) == pytest.approx(sorted(given))


# ---- restored


@pytest.mark.parametrize("way", ["resume_errored", "restart_errored"])
def test_crashed_trials_that_are_run_again_count_again(way: str, tmp_path: Path) -> None:
    """An outage is over: the same trials run under their old ids, or under new ones.

    One of them had ended, but the driver was killed before Ray stored that.
    """
    limit = tmp_path / "limit"
    limit.write_text("0.5")

    def trainable(config: dict[str, Any]) -> dict[str, float]:
        if config["x"] > float(limit.read_text()):
            raise RuntimeError("outage")
        return {"loss": -config["x"]}

    search = DRESearch(seed=0, settings=Settings(preset=TINY), n_startup_trials=4)
    config = tune.TuneConfig(metric="loss", mode="min", num_samples=6, search_alg=search)
    run = tune.RunConfig(storage_path=str(tmp_path), name="study", verbose=0)
    space = {"x": tune.uniform(0.0, 1.0)}
    results = tune.Tuner(trainable, param_space=space, tune_config=config, run_config=run).fit()
    assert 0 < results.num_errors < 6
    record = max((tmp_path / "study").glob("experiment_state-*.json"))
    record.write_text(record.read_text().replace("TERMINATED", "RUNNING", 1))
    limit.write_text("-1")
    tuner = tune.Tuner.restore(str(tmp_path / "study"), trainable=trainable)
    assert tuner.fit().num_errors == results.num_errors + 1
    limit.write_text("1")
    tuner = tune.Tuner.restore(str(tmp_path / "study"), trainable=trainable, **{way: True})
    assert tuner.fit().num_errors == 0
    restored = DRESearch()
    restored.restore_from_dir(str(tmp_path / "study"))
    assert [trial.state.value for trial in restored.study.trials] == ["complete"] * 6


def test_limits_of_a_run_complete_trials(fit: Callable[..., Any]) -> None:
    def trainable(config: dict[str, Any]) -> None:
        for iteration in range(1, 20):
            tune.report({"loss": config["x"], "spent": config["cost"] * iteration})

    search = tiny_search()
    space = {"x": tune.uniform(0.0, 1.0), "cost": tune.choice([1, 2])}
    results = fit(trainable, search, space, 4, stop={"spent": 4})
    assert {result.metrics["training_iteration"] for result in results} == {2, 4}
    assert states(search) == ["complete"] * 4
