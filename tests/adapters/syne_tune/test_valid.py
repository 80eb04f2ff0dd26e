"""`DRESearcher(valid=…)`: all that is suggested satisfies the rule."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("syne_tune")
dill = pytest.importorskip("dill")

from presets import TINY  # noqa: E402
from syne_tune import config_space as cs  # noqa: E402
from syne_tune.optimizer.scheduler import TrialScheduler  # noqa: E402
from syne_tune.optimizer.schedulers.ask_tell_scheduler import AskTellScheduler  # noqa: E402

from dre_plugins.adapters.syne_tune import ASHADRE, DRE, MODRE, DRESearcher  # noqa: E402
from dre_plugins.recommend.settings import Settings  # noqa: E402
from dre_plugins.space.rules import RuleError  # noqa: E402

pytestmark = pytest.mark.syne_tune

SPACE = {
    "low": cs.randint(1, 64),
    "high": cs.randint(1, 64),
    "x": cs.uniform(0.0, 1.0),
    "limit": 60,
}
OPTIONS: dict[str, Any] = {
    "random_seed": 0,
    "n_startup_trials": 4,
    "settings": Settings(preset=replace(TINY, universal_turns=True)),
}


def rising(config: dict[str, Any]) -> bool:
    return config["low"] <= config["high"] <= config["limit"]


def report(config: dict[str, Any]) -> dict[str, float]:
    distance = abs(config["low"] - 20) + abs(config["high"] - 25) + config["x"]
    return {"loss": distance, "size": config["high"], "epoch": 1}


SCHEDULERS: dict[str, Callable[..., TrialScheduler]] = {
    "DRE": lambda **more: DRE(SPACE, "loss", **OPTIONS, **more),
    "ASHADRE": lambda **more: ASHADRE(SPACE, "loss", "epoch", 1, **OPTIONS, **more),
    "MODRE": lambda **more: MODRE(SPACE, ["loss", "size"], **OPTIONS, **more),
}
every = pytest.mark.parametrize("name", SCHEDULERS)


def run(tuner: AskTellScheduler, n: int) -> list[dict[str, Any]]:
    configs = []
    for _ in range(n):
        trial = tuner.ask()
        tuner.tell(trial, report(trial.config))
        configs.append(trial.config)
    return configs


@every
def test_every_suggestion_satisfies_the_rule(name: str) -> None:
    scheduler = SCHEDULERS[name](valid=rising)
    configs = run(AskTellScheduler(base_scheduler=scheduler), 16)
    stats = scheduler.searcher.stats
    assert len(configs) == 16 and all(map(rising, configs))
    assert stats["random"] and stats["model"]
    assert not stats["invalid"] and not stats["fallbacks"]


@every
def test_a_rule_that_nothing_satisfies_is_refused_at_set_up(name: str) -> None:
    with pytest.raises(RuleError, match=r"valid holds for none of .* low, high, x"):
        SCHEDULERS[name](valid=lambda config: config["x"] > 1)
    with pytest.raises(RuleError, match=r"valid raised KeyError: 'width'"):
        SCHEDULERS[name](valid=lambda config: config["width"] > 1)


@every
@pytest.mark.parametrize("as_lambda", [False, True])
def test_a_scheduler_that_is_saved_keeps_its_rule(name: str, as_lambda: bool) -> None:
    valid = (lambda config: rising(config)) if as_lambda else rising
    scheduler = SCHEDULERS[name](valid=valid)
    run(AskTellScheduler(base_scheduler=scheduler), 8)
    again = dill.loads(dill.dumps(scheduler))
    configs = [again.suggest().config for _ in range(4)]
    assert all(map(rising, configs))
    assert configs == [scheduler.suggest().config for _ in range(4)]


def test_points_that_break_it_are_tried_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    points = [{"low": 50, "high": 3, "x": 0.5}, {"low": 40}, {"low": 64}]
    with caplog.at_level(logging.WARNING):
        searcher = DRESearcher(SPACE, points, valid=rising, **OPTIONS)
        configs = [searcher.suggest() for _ in range(6)]
    assert [config["low"] for config in configs[:3]] == [50, 40, 64]
    assert [rising(config) for config in configs] == [False, True, False, True, True, True]
    assert searcher.stats["invalid"] == 2
    messages = [record.getMessage() for record in caplog.records]
    assert len([text for text in messages if "A configuration that you gave" in text]) == 1
