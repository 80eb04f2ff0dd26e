"""The same trials give the same recommendation in every framework, as its own kind of trial."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

optuna = pytest.importorskip("optuna")
tune = pytest.importorskip("ray.tune")
config_space = pytest.importorskip("syne_tune.config_space")

import pandas as pd  # noqa: E402
from optuna.distributions import CategoricalDistribution, FloatDistribution  # noqa: E402
from syne_tune.experiments import load_experiment  # noqa: E402

from dre_plugins.adapters import (  # noqa: E402
    optuna as for_optuna,
    ray_tune as for_ray_tune,
    syne_tune as for_syne_tune,
)
from dre_plugins.space import Categorical, Float  # noqa: E402
from dre_plugins.study import AskTell  # noqa: E402

N = 30
RNG = np.random.default_rng(3)
CONFIGS: list[dict[str, Any]] = [
    {"x": RNG.uniform(-5.0, 5.0), "kind": "ab"[RNG.integers(2)]} for _ in range(N)
]
LOSSES = [
    (config["x"] - 1.0) ** 2 + 3.0 * (config["kind"] == "a") + 6.0 * RNG.standard_normal()
    for config in CONFIGS
]
# The luckiest trial breaks the limit.
MEMORY = [2.0 if loss == min(LOSSES) else 1.0 for loss in LOSSES]


def optuna_study(*, constrained: bool = False) -> Any:
    distributions = {
        "x": FloatDistribution(-5.0, 5.0),
        "kind": CategoricalDistribution(["a", "b"]),
    }
    study = optuna.create_study()
    for config, loss, memory in zip(CONFIGS, LOSSES, MEMORY, strict=True):
        attributes = {"constraints": [memory - 1.5]} if constrained else {}
        study.add_trial(
            optuna.trial.create_trial(
                params=config, distributions=distributions, value=loss, system_attrs=attributes
            )
        )
    return study


def ask_tell_study() -> AskTell:
    study = AskTell({"x": Float(-5.0, 5.0), "kind": Categorical(("a", "b"))}, seed=0)
    for config, loss in zip(CONFIGS, LOSSES, strict=True):
        study.add(config, loss)
    return study


def ray_results() -> Any:
    return [
        tune.Result(
            metrics={
                **{"loss": loss, "memory": memory, "training_iteration": 1, "done": True},
                "config": {"x": config["x"], "of": {"kind": config["kind"]}},
            },
            checkpoint=None,
            error=None,
            path="",
            metrics_dataframe=None,
        )
        for config, loss, memory in zip(CONFIGS, LOSSES, MEMORY, strict=True)
    ]


def syne_tune_experiment(folder: Path) -> Any:
    space = {"x": config_space.uniform(-5.0, 5.0), "kind": config_space.choice(["a", "b"])}
    rows = [
        {"loss": loss, "memory": memory, "st_status": "Completed", "trial_id": number}
        | {f"config_{name}": value for name, value in config.items()}
        for number, (config, loss, memory) in enumerate(zip(CONFIGS, LOSSES, MEMORY, strict=True))
    ]
    (folder / "done").mkdir()
    pd.DataFrame(rows).to_csv(folder / "done" / "results.csv", index=False)
    stated = json.dumps(config_space.config_space_to_json_dict(space))
    metadata = {"config_space": stated, "metric_names": ["loss"], "metric_mode": "min"}
    (folder / "done" / "metadata.json").write_text(json.dumps(metadata))
    return load_experiment("done", local_path=str(folder))


def test_every_framework_recommends_the_same_trial(tmp_path):
    study, experiment = optuna_study(), syne_tune_experiment(tmp_path)
    by_optuna = for_optuna.recommend(study)
    chosen = by_optuna.trial.params
    assert by_optuna.trial.value > study.best_value  # noise is large here: luck is seen through
    by_ask_tell = ask_tell_study().recommend()
    assert by_ask_tell.trial.configuration == chosen
    space = {"x": tune.uniform(-5.0, 5.0), "of": {"kind": tune.choice(["a", "b"])}}
    by_ray = for_ray_tune.recommend(ray_results(), "loss", "min", space=space)
    assert by_ray.trial.config == {"x": chosen["x"], "of": {"kind": chosen["kind"]}}
    by_syne_tune = for_syne_tune.recommend(experiment)
    assert by_syne_tune.trial["config_x"] == pytest.approx(chosen["x"])
    assert set(by_syne_tune.trial) == set(experiment.best_config())
    for other in (by_ask_tell, by_ray, by_syne_tune):
        assert other.value == pytest.approx(by_optuna.value)
        assert other.deviation == pytest.approx(by_optuna.deviation)


def test_limits_and_directions_are_minded(tmp_path):
    by_optuna = for_optuna.recommend(optuna_study(constrained=True))
    by_ray = for_ray_tune.recommend(ray_results(), "loss", "min", constraints={"memory": 1.5})
    by_syne_tune = for_syne_tune.recommend(
        syne_tune_experiment(tmp_path), constraints={"memory": 1.5}
    )
    assert by_optuna.trial.value > min(LOSSES)
    assert by_ray.trial.metrics["memory"] == by_syne_tune.trial["memory"] == 1.0
    worst = for_ray_tune.recommend(ray_results(), "loss", "max")
    assert worst.value > by_ray.value


def test_a_running_trial_of_optuna_is_learnt_from_and_not_recommended():
    study = optuna_study()
    for config in ({"x": 1.0, "kind": "b"}, {"x": 0.9, "kind": "b"}):
        study.enqueue_trial(config)
        trial = study.ask()
        trial.suggest_float("x", -5.0, 5.0), trial.suggest_categorical("kind", ["a", "b"])
        trial.report(-1000.0, step=1)
    recommendation = for_optuna.recommend(study)
    assert recommendation.trial.number < N
    assert recommendation.value < for_optuna.recommend(optuna_study()).value


def test_what_cannot_be_recommended_says_why(tmp_path):
    with pytest.raises(
        ValueError, match=r"metric must be one of those reported, \['loss', 'memory'\], got"
    ):
        for_ray_tune.recommend(ray_results(), "speed", "min")
    failed = [replace(r, metrics={"config": r.config}, error=OSError()) for r in ray_results()]
    with pytest.raises(ValueError, match="needs a complete trial"):
        for_ray_tune.recommend(failed, "loss", "min")
    with pytest.raises(ValueError, match=r"be on .*, \['loss', 'memory'\], got 'speed'"):
        for_ray_tune.recommend(ray_results(), "loss", "min", constraints={"speed": 1.0})
    worded = [replace(r, metrics={**r.metrics, "loss": "low"}) for r in ray_results()]
    with pytest.raises(ValueError, match="whose value is a number"):
        for_ray_tune.recommend(worded, "loss", "min")
    experiment = syne_tune_experiment(tmp_path)
    with pytest.raises(ValueError, match=r"constraints must be on .*'memory'.*, got 'speed'"):
        for_syne_tune.recommend(experiment, constraints={"speed": 1.0})
    with pytest.raises(ValueError, match=r"nothing to recommend: .*without the metric 'speed'"):
        for_syne_tune.recommend(experiment, "speed")
    with pytest.raises(ValueError, match=r"results must be what Tuner.fit returns, got None"):
        for_ray_tune.recommend(None, "loss", "min")
    with pytest.raises(ValueError, match="study must be a study of Optuna, got None"):
        for_optuna.recommend(None)
    with pytest.raises(ValueError, match="number of objectives must be 1, got 2"):
        for_optuna.recommend(optuna.create_study(directions=["minimize", "maximize"]))
    with pytest.raises(ValueError, match="needs trials with a parameter of at least two values"):
        for_optuna.recommend(optuna.create_study())


def test_optuna_trials_in_a_wider_range_than_the_newest_are_no_noise() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for low, high, n_trials in ((-6.0, 0.0, 20), (-2.7, -2.3, 5)):
        study.optimize(lambda t: (t.suggest_float("x", low, high) + 2.5) ** 2, n_trials)  # noqa: B023
    assert for_optuna.recommend(study).trial.number == study.best_trial.number
