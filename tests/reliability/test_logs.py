"""Messages come from the logger of each framework, and before what takes seconds."""

import logging
import subprocess
import sys
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest
from presets import TINY
from searches import every_framework

import dre_plugins
from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.recommend.settings import Settings

LOGGERS = {
    "OptunaSearch": "optuna.dre_plugins",
    "RaySearch": "ray.tune.dre_plugins",
    "SyneTuneSearch": "syne_tune.dre_plugins",
}


@every_framework
def test_each_framework_says_it_in_its_own_way(framework, monkeypatch, caplog) -> None:
    search = framework()
    name = LOGGERS[type(search).__name__]
    with caplog.at_level(logging.INFO, logger=name):
        search.run(6)
        monkeypatch.setattr(DeepRankingEnsemble, "fit", Mock(side_effect=RuntimeError("injected")))
        search.run(1)
    records = [record for record in caplog.records if "dre_plugins" in record.name]
    assert {record.name for record in records} == {name}
    texts = [record.getMessage() for record in records]
    (announced,) = [text for text in texts if "ranking ensemble suggests" in text]
    assert "from trial 4" in announced
    assert sum("surrogate failed" in text for text in texts) == 1


def test_optunas_verbosity_counts() -> None:
    optuna = pytest.importorskip("optuna")
    ours = logging.getLogger(LOGGERS["OptunaSearch"])
    ours.setLevel(logging.NOTSET)  # as it is outside of tests
    for level in (optuna.logging.INFO, optuna.logging.ERROR):
        optuna.logging.set_verbosity(level)
        assert ours.getEffectiveLevel() == level
    assert ours.parent is logging.getLogger("optuna")  # whose handler writes the prefix


def test_what_is_learnt_from_is_announced(caplog) -> None:
    optuna = pytest.importorskip("optuna")
    from dre_plugins.adapters.optuna import DRESampler

    past = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    past.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=5)
    with caplog.at_level(logging.INFO, logger="optuna.dre_plugins"):
        DRESampler(past_studies=past)
    announced = [record.getMessage() for record in caplog.records]
    assert announced == ["Learning from 1 past task with 5 evaluations."]


@pytest.mark.slow
def test_the_import_of_torch_is_announced_once() -> None:
    program = (
        "import logging; logging.basicConfig(level=logging.INFO)\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from dre_plugins import AskTell\n"
        "from dre_plugins.space import Float\n"
        "def tune(seed):\n"
        "    study = AskTell({'x': Float(0.0, 1.0)}, seed=seed, prior=None, n_startup_trials=1)\n"
        "    for _ in range(2):\n"
        "        number, configuration = study.ask()\n"
        "        study.tell(number, configuration['x'])\n"
        "with ThreadPoolExecutor(3) as pool: [*pool.map(tune, range(3))]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300
    )
    first, *others = [line for line in done.stderr.splitlines() if "dre_plugins" in line]
    assert "Importing torch for the first model" in first
    assert ["ensemble suggests from trial 1" in line for line in others] == [True] * 3


# ---- one line at INFO says what a prior knows; Ray Tune and Syne Tune leave it to `AskTell`

KNOWN = "knows learning_rate (there 'eta'), max_iter (there 'nrounds'); not: patience"
OPTIONS: dict[str, Any] = {"prior": "xgboost", "settings": Settings(preset=TINY)}


def optuna_study() -> None:
    optuna = pytest.importorskip("optuna")

    def objective(trial: Any) -> float:
        rate = trial.suggest_float("learning_rate", 1e-3, 1.0, log=True)
        return rate + trial.suggest_int("max_iter", 5, 500) + trial.suggest_float("patience", 0, 1)

    study = optuna.create_study(sampler=dre_plugins.DRESampler(seed=0, **OPTIONS))
    study.optimize(objective, n_trials=4)


def ask_tell() -> None:
    from dre_plugins.space import Float, Integer

    known = {"learning_rate": Float(1e-3, 1.0, "log"), "max_iter": Integer(5, 500)}
    space = {**known, "patience": Float(0.0, 1.0)}
    loaded = dre_plugins.Prior.load("xgboost")  # where the sampler is given a name
    study = dre_plugins.AskTell(space, seed=0, **{**OPTIONS, "prior": loaded})
    for _ in range(4):
        study.ask()


@pytest.mark.parametrize("study", [optuna_study, ask_tell])
def test_what_a_prior_knows_is_said_once(study: Callable[[], None], caplog) -> None:
    with caplog.at_level(logging.INFO), caplog.at_level(logging.INFO, "optuna.dre_plugins"):
        study()
    announced = [record for record in caplog.records if "prior 'xgboost'" in record.getMessage()]
    assert [record.getMessage() for record in announced] == [f"prior 'xgboost' {KNOWN}"]
    assert announced[0].levelno == logging.INFO


def test_the_universal_prior_has_nothing_to_say(caplog: pytest.LogCaptureFixture) -> None:
    options = {**OPTIONS, "prior": "universal"}
    with caplog.at_level(logging.INFO):
        dre_plugins.AskTell({"x": [1, 2, 3]}, seed=0, **options).ask()
    assert "knows" not in caplog.text
