"""Constraints in Syne Tune: limits on other metrics."""

from functools import partial
from typing import Any

import pytest
from syne_tune.config_space import uniform
from syne_tune_loop import start
from syne_tune_rows import OPTIONS

from dre_plugins.adapters.syne_tune import ASHADRE, DRE, DRETransfer

SPACE = {"x": uniform(0.0, 1.0), "y": uniform(0.0, 1.0), "epochs": 9}


def result_of(config: dict[str, float], epoch: int = 9) -> dict[str, float]:
    x, y = config["x"], config["y"]
    return {"gain": x + y - 1 / epoch, "size": x * x + y * y, "epoch": epoch}


def run(scheduler: DRE, first: int = 0, n: int = 14) -> list[tuple[float, float]]:
    asked = []
    for trial_id in range(first, first + n):
        trial = start(scheduler, trial_id)
        scheduler.on_trial_complete(trial, result_of(trial.config))
        asked.append((trial.config["x"], trial.config["y"]))
    return asked


def dre(**arguments: Any) -> DRE:
    return DRE(SPACE, "gain", do_minimize=False, **{**OPTIONS, **arguments})


def test_limits_are_learnt() -> None:
    limited = dre(constraints={"size": 0.5})
    assert run(limited) == run(dre(constraints={"size": (None, 0.5)})) != run(dre())
    sizes = [trial.constraints["size"] for trial in limited.searcher.trials]
    assert min(sizes) < 0.0 < max(sizes)
    assert limited.searcher.stats["fallbacks"] == 0


@pytest.mark.parametrize("make", [DRE, partial(ASHADRE, time_attr="epoch", max_t=9)])
def test_a_limit_on_what_is_not_reported_ends_nothing(make: Any, caplog) -> None:
    limited = make(SPACE, "gain", constraints={"memory": 1.0, "size": 9.0}, **OPTIONS)
    run(limited)
    assert limited.searcher.stats["model"] == 10
    assert caplog.text.count("trial 0 meets the constraints is unknown") == 1
    assert caplog.text.count("constraints") == 1 and "['memory']" in caplog.text


def test_stopped_trials_teach_their_constraints() -> None:
    scheduler = ASHADRE(
        SPACE, "gain", "epoch", max_t=9, do_minimize=False, constraints={"size": 0.5}, **OPTIONS
    )
    stopped = 0
    for trial_id in range(14):
        trial = start(scheduler, trial_id)
        for epoch in range(1, 10):
            if scheduler.on_trial_result(trial, result_of(trial.config, epoch)) == "STOP":
                stopped += epoch < 9
                scheduler.on_trial_remove(trial)
                break
    assert stopped > 2
    assert all("size" in trial.constraints for trial in scheduler.searcher.trials)
    assert {trial.state.value for trial in scheduler.searcher.trials} == {"complete", "pruned"}


@pytest.mark.parametrize("epoch", [None, "three", float("nan")])
def test_a_resource_that_is_no_number_ends_nothing(epoch: Any, caplog: Any) -> None:
    scheduler = ASHADRE(SPACE, "gain", "epoch", max_t=9, do_minimize=False, **OPTIONS)
    trial = start(scheduler, 0)
    assert scheduler.on_trial_result(trial, {"gain": 1.0, "epoch": epoch}) == "CONTINUE"
    assert f"Trial 0 reported epoch={epoch!r}, which is no finite number: such" in caplog.text
    assert scheduler.on_trial_result(trial, {"gain": 1.0, "epoch": "9"}) == "STOP"
    scheduler.on_trial_remove(trial)
    assert scheduler.searcher.trials[0].value == -1.0


def test_evaluations_must_be_evaluations() -> None:
    with pytest.raises(ValueError, match="evaluations must be TransferLearningTaskEvaluations"):
        DRETransfer(SPACE, "gain", {"past": 3})
