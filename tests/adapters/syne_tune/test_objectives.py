"""Several objectives in Syne Tune: `MODRE`, its searcher in Syne Tune's own scheduler; limits."""

import json
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import dill
import numpy as np
import pytest
from syne_tune import config_space as cs
from syne_tune.backend.trial_status import Trial
from syne_tune.config_space import uniform
from syne_tune.optimizer.scheduler import TrialScheduler
from syne_tune.optimizer.schedulers.ask_tell_scheduler import AskTellScheduler
from syne_tune.optimizer.schedulers.single_fidelity_scheduler import SingleFidelityScheduler
from syne_tune_loop import start, states
from syne_tune_rows import OPTIONS

from dre_plugins.adapters.syne_tune import ASHADRE, DRE, MODRE, MultiObjectiveDRESearcher

SPACE = {
    "x": cs.uniform(0.0, 1.0),
    "y": cs.loguniform(0.01, 1.0),
    "act": cs.choice(["relu", "tanh"]),
    "epochs": 3,
}
GRID = {"a": cs.choice(["x", "y", "z"]), "b": cs.randint(1, 3), "epochs": 3}
METRICS = ["error", "size"]

Report = Callable[[Trial], Any]


def losses(config: Mapping[str, Any]) -> tuple[float, float]:
    """Return two objectives, small is good; between x = 0 and x = 1 they are at odds."""
    x, y = config["x"], config["y"]
    return x**2 + y, (x - 1.0) ** 2 + y + (config["act"] == "tanh")


def modre(space: dict[str, Any] = SPACE, **more: Any) -> MODRE:
    return MODRE(space, METRICS, **{**OPTIONS, **more})


def plain(space: dict[str, Any] = SPACE, **more: Any) -> SingleFidelityScheduler:
    searcher = MultiObjectiveDRESearcher(space, **OPTIONS)
    return SingleFidelityScheduler(space, METRICS, searcher=searcher, random_seed=0, **more)


def reporting(signs: Sequence[int] = (1, 1)) -> Report:
    def report(trial: Trial) -> dict[str, float]:
        values = losses(trial.config)
        return {name: s * v for name, s, v in zip(METRICS, signs, values, strict=True)}

    return report


def end(scheduler: TrialScheduler, trial: Trial, result: Any) -> None:
    """End a trial as the tuner does, which hands on the last result twice."""
    if result == "crash":
        scheduler.on_trial_error(trial)
        return
    for epoch in (1, 2, 3):
        # Values on the way are others, which must not count.
        values = result if epoch == 3 else {name: 9.0 * epoch for name in result}
        assert scheduler.on_trial_result(trial, {**values, "epoch": epoch}) == "CONTINUE"
    scheduler.on_trial_complete(trial, {**result, "epoch": 3})


def run(
    scheduler: TrialScheduler, n: int, report: Report | None = None, first: int = 0
) -> list[dict[str, Any]]:
    """Run trials, three at once, and return their configurations."""
    configs, running = [], []
    for trial_id in range(first, first + n):
        running.append(start(scheduler, trial_id))
        configs.append(running[-1].config)
        if len(running) == 3 or trial_id == first + n - 1:
            for trial in running[::-1]:
                end(scheduler, trial, (report or reporting())(trial))
            running = []
    return configs


# ---- directions


@pytest.mark.parametrize("signs", [(1, -1), (-1, 1), (-1, -1)], ids=str)
def test_each_metric_is_flipped_once(signs: tuple[int, int]) -> None:
    scheduler = modre(do_minimize=[sign == 1 for sign in signs])
    configs = run(scheduler, 14, reporting(signs))
    assert configs == run(modre(), 14)
    assert [trial.objectives for trial in scheduler.searcher.trials] == [
        pytest.approx(losses(config)) for config in configs
    ]
    assert scheduler.searcher.stats["model"] == 8
    values = np.array([losses(config) for config in configs])
    worse = (values[:, None] >= values[None]).all(-1) & (values[:, None] > values[None]).any(-1)
    front = {tuple(row) for row in values[~worse.any(1)]}
    assert {trial.objectives for trial in scheduler.searcher.best_trials} == front


@pytest.mark.parametrize("do_minimize", [True, False])
def test_one_bool_is_for_all_metrics_as_in_syne_tune_itself(do_minimize: bool) -> None:
    sign = 1 if do_minimize else -1
    mine, theirs = modre(do_minimize=do_minimize), plain(do_minimize=do_minimize)
    report = reporting((sign, sign))
    assert run(mine, 12, report) == run(theirs, 12, report)
    assert mine.metric_mode() == theirs.metric_mode() == mine.mode


def test_three_objectives() -> None:
    scheduler = MODRE(SPACE, ["a", "b", "c"], [True, False, True], **OPTIONS)
    configs = run(
        scheduler,
        9,
        lambda trial: {"a": trial.config["x"], "b": -trial.config["x"], "c": trial.config["y"]},
    )
    assert scheduler.metric_mode() == ["min", "max", "min"]
    found = [trial.objectives for trial in scheduler.searcher.trials]
    assert found == [(config["x"], config["x"], config["y"]) for config in configs]


# ---- results


@pytest.mark.parametrize(
    ("bad", "warning"),
    [
        ("crash", []),
        ({"error": 1.0, "size": math.nan}, []),
        (
            {"error": "text", "size": 1.0},
            "Whether trial 2 meets the constraints is unknown: its last report lacks ['error'], "
            "or has no number there. Further ones are not mentioned.",
        ),
        (
            {"error": 1.0},
            "Trial 2 reported ['epoch', 'error'] without ['size']: such trials count as failed. "
            "Are the names those of the training script? Further ones are not mentioned.",
        ),
    ],
    ids=["crash", "NaN", "no number", "missing"],
)
def test_bad_trials_have_failed(bad: Any, warning: Any, caplog: pytest.LogCaptureFixture) -> None:
    def report(trial: Trial) -> Any:
        return bad if trial.trial_id % 3 == 2 else reporting()(trial)

    scheduler = modre(constraints={"error": 5.0})
    with caplog.at_level(logging.WARNING, logger="syne_tune.dre_plugins"):
        run(scheduler, 15, report)
    assert states(scheduler) == ["complete", "complete", "failed"] * 5
    assert scheduler.searcher.stats["fallbacks"] == 0 and scheduler.searcher.stats["model"] >= 9
    mine = [
        record.getMessage() for record in caplog.records if record.name == "syne_tune.dre_plugins"
    ]
    assert mine == ([warning] if warning else [])


@pytest.mark.parametrize("value", [math.inf, -math.inf, 1e300, np.float32(2.0), True])
def test_any_number_is_a_value(value: Any) -> None:
    scheduler = modre(do_minimize=[False, True])
    run(scheduler, 9, lambda trial: {"error": value if trial.trial_id % 2 else 1.0, "size": 1})
    assert states(scheduler) == ["complete"] * 9
    assert scheduler.searcher.stats["fallbacks"] == 0
    assert scheduler.searcher.trials[1].objectives == (-float(value), 1.0)


def test_reports_on_the_way_may_lack_metrics(caplog: pytest.LogCaptureFixture) -> None:
    scheduler = modre()
    trial = start(scheduler, 0)
    with caplog.at_level(logging.WARNING, logger="syne_tune.dre_plugins"):
        assert scheduler.on_trial_result(trial, {"error": 2.0, "epoch": 1}) == "CONTINUE"
        assert scheduler.on_trial_result(trial, {"epoch": 2}) == "CONTINUE"
        assert states(scheduler) == ["running"]
        scheduler.on_trial_complete(trial, {"error": 1.0, "size": 2.0})
    assert scheduler.searcher.trials[0].objectives == (1.0, 2.0) and not caplog.records


def test_what_comes_late_or_twice_does_no_harm() -> None:
    scheduler = modre()
    trial, resumed, other = (start(scheduler, trial_id) for trial_id in range(3))
    scheduler.on_trial_remove(resumed)  # paused
    assert states(scheduler) == ["running", "pruned", "running"]
    for ended in (trial, resumed):
        scheduler.on_trial_complete(ended, {"error": 1.0, "size": 2.0})
    before = scheduler.searcher.trials
    for late in (trial, resumed):
        scheduler.on_trial_result(late, {"error": 0.0, "size": 0.0})
        scheduler.on_trial_complete(late, {"error": 0.0, "size": 0.0})
        scheduler.on_trial_error(late)
        scheduler.on_trial_remove(late)
        scheduler.on_trial_add(late)
    assert scheduler.searcher.trials == before
    assert states(scheduler) == ["complete", "complete", "running"]
    elsewhere = Trial(9, {**other.config, "x": 0.125}, datetime.now())
    scheduler.on_trial_complete(elsewhere, {"error": 3.0, "size": 4.0})
    assert scheduler.searcher.trials[3].configuration["x"] == 0.125
    assert scheduler.searcher.trials[3].objectives == (3.0, 4.0)
    unannounced = Trial(10, scheduler.suggest().config, datetime.now())
    scheduler.on_trial_error(unannounced)
    assert states(scheduler)[4] == "failed"


def test_crashes_that_its_own_scheduler_cannot_announce_do_not_stay_pending() -> None:
    scheduler = plain()
    first = [start(scheduler, trial_id) for trial_id in range(3)]
    end(scheduler, first[0], reporting()(first[0]))
    scheduler.on_trial_error(first[1])  # of which the searcher hears a number only
    end(scheduler, first[2], reporting()(first[2]))
    later = [start(scheduler, trial_id) for trial_id in range(3, 6)]
    assert states(scheduler) == ["complete", "failed", "complete", *["running"] * 3]
    end(scheduler, first[1], {"error": 1.0, "size": 2.0})  # it was only slow
    end(scheduler, later[2], reporting()(later[2]))
    assert states(scheduler) == ["complete"] * 3 + ["running", "running", "complete"]
    assert scheduler.searcher.trials[1].objectives == (1.0, 2.0)


def test_limits_are_learnt_and_survive_dill(caplog: pytest.LogCaptureFixture) -> None:
    def report(trial: Trial) -> Any:
        return {**reporting()(trial), "memory": trial.config["x"]}

    limited = modre(constraints={"memory": 0.4})
    assert run(limited, 12, report) == run(modre(constraints={"memory": (None, 0.4)}), 12, report)
    assert run(modre(), 12, report) != run(modre(constraints={"memory": 0.4}), 12, report)
    for trial in limited.searcher.trials:
        assert trial.constraints == {"memory": trial.configuration["x"] - 0.4}
    assert all(trial.configuration["x"] <= 0.4 for trial in limited.searcher.best_trials)
    loaded = dill.loads(dill.dumps(limited))
    assert run(loaded, 3, report, 12) == run(limited, 3, report, 12)
    unknown = modre(constraints={"nothing": 1.0})
    run(unknown, 8, report)
    assert caplog.text.count("lacks ['nothing']") == 1
    assert unknown.searcher.stats["model"] == 2 and unknown.searcher.best_trials == ()


# ---- the search


def test_points_come_first_and_the_seed_decides() -> None:
    points = [{"x": 0.5, "y": 0.1, "act": "tanh"}, {"act": "relu"}]
    configs = run(modre(points_to_evaluate=points), 5)
    for point, config in zip(points, configs, strict=False):
        assert config.items() >= point.items() and config.keys() == SPACE.keys()
    state = np.random.get_state()[1].tolist()  # noqa: NPY002
    assert run(modre(random_seed=1), 9) == run(modre(random_seed=1), 9) != run(modre(), 9)
    assert modre(random_seed=None).random_seed != modre(random_seed=None).random_seed
    assert np.random.get_state()[1].tolist() == state  # noqa: NPY002


def test_what_was_running_is_suggested_once_more() -> None:
    scheduler = modre()
    run(scheduler, 3)
    lost = [start(scheduler, trial_id) for trial_id in (3, 4)]
    scheduler.on_trial_result(lost[0], {"error": 1.0, "size": 1.0})  # which does not count
    scheduler.searcher.restart_running()
    assert run(scheduler, 2, first=5) == [trial.config for trial in lost]
    assert states(scheduler) == ["complete"] * 5


# ---- what Syne Tune asks of a scheduler


@pytest.mark.parametrize(
    ("do_minimize", "mode"),
    [(True, "min"), (False, "max"), ([False, True], ["max", "min"]), ((True, True), "min")],
)
def test_metadata_goes_into_a_file(do_minimize: Any, mode: Any) -> None:
    scheduler = modre(do_minimize=do_minimize, constraints={"size": 1.0})
    run(scheduler, 6)
    text = json.dumps(scheduler.metadata())
    assert len(text) < 2_000
    metadata = json.loads(text)
    assert metadata["scheduler_name"] == "MODRE" and metadata["metric_names"] == METRICS
    assert metadata["metric_mode"] == mode == scheduler.metric_mode()
    assert metadata["scheduler_kwargs"] == {"random_seed": 0}
    assert cs.config_space_from_json_dict(json.loads(metadata["config_space"])) == SPACE


@pytest.mark.parametrize("do_minimize", [True, False])
def test_ask_and_tell(do_minimize: bool) -> None:
    sign = 1 if do_minimize else -1
    loop = AskTellScheduler(modre(do_minimize=do_minimize))
    told = []
    for number in range(8):
        trial = loop.ask()
        told.append(reporting((sign, sign))(trial))
        loop.tell(trial, {"other": 1.0} if number == 5 else told[-1])
    assert states(loop.base_scheduler) == ["complete"] * 5 + ["failed"] + ["complete"] * 2
    del loop.completed_experiments[5], told[5]
    best = loop.best_trial("size").metrics["size"]
    assert sign * best == min(sign * result["size"] for result in told)


def test_modes_that_differ_have_no_single_best_trial() -> None:
    loop = AskTellScheduler(modre(do_minimize=[True, False]))
    loop.tell(loop.ask(), {"error": 1.0, "size": 1.0})
    with pytest.raises(AttributeError, match=r"no single mode.*'min', 'max'.*best_trials"):
        loop.best_trial("size")


def test_a_wrong_number_of_objectives_is_refused_at_the_first_report() -> None:
    searcher = MultiObjectiveDRESearcher(SPACE, n_objectives=3, **OPTIONS)
    scheduler = SingleFidelityScheduler(SPACE, METRICS, searcher=searcher)
    trial = start(scheduler, 0)
    with pytest.raises(ValueError, match=r"n_objectives must be 2, as many as.*got 3"):
        scheduler.on_trial_result(trial, {"error": 1.0, "size": 1.0})


# ---- one objective: limits on other metrics

PLANE = {"x": uniform(0.0, 1.0), "y": uniform(0.0, 1.0), "epochs": 9}


def result_of(config: dict[str, float], epoch: int = 9) -> dict[str, float]:
    x, y = config["x"], config["y"]
    return {"gain": x + y - 1 / epoch, "size": x * x + y * y, "epoch": epoch}


def run_single(scheduler: DRE, first: int = 0, n: int = 14) -> list[tuple[float, float]]:
    asked = []
    for trial_id in range(first, first + n):
        trial = start(scheduler, trial_id)
        scheduler.on_trial_complete(trial, result_of(trial.config))
        asked.append((trial.config["x"], trial.config["y"]))
    return asked


def dre(**arguments: Any) -> DRE:
    return DRE(PLANE, "gain", do_minimize=False, **{**OPTIONS, **arguments})


def test_limits_are_learnt() -> None:
    limited = dre(constraints={"size": 0.5})
    assert (
        run_single(limited)
        == run_single(dre(constraints={"size": (None, 0.5)}))
        != run_single(dre())
    )
    sizes = [trial.constraints["size"] for trial in limited.searcher.trials]
    assert min(sizes) < 0.0 < max(sizes)
    assert limited.searcher.stats["fallbacks"] == 0


@pytest.mark.parametrize("make", [DRE, partial(ASHADRE, time_attr="epoch", max_t=9)])
def test_a_limit_on_what_is_not_reported_ends_nothing(make: Any, caplog) -> None:
    limited = make(PLANE, "gain", constraints={"memory": 1.0, "size": 9.0}, **OPTIONS)
    run_single(limited)
    assert limited.searcher.stats["model"] == 10
    assert caplog.text.count("trial 0 meets the constraints is unknown") == 1
    assert caplog.text.count("constraints") == 1 and "['memory']" in caplog.text


def test_stopped_trials_teach_their_constraints() -> None:
    scheduler = ASHADRE(
        PLANE, "gain", "epoch", max_t=9, do_minimize=False, constraints={"size": 0.5}, **OPTIONS
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
    scheduler = ASHADRE(PLANE, "gain", "epoch", max_t=9, do_minimize=False, **OPTIONS)
    trial = start(scheduler, 0)
    assert scheduler.on_trial_result(trial, {"gain": 1.0, "epoch": epoch}) == "CONTINUE"
    assert f"Trial 0 reported epoch={epoch!r}, which is no finite number: such" in caplog.text
    assert scheduler.on_trial_result(trial, {"gain": 1.0, "epoch": "9"}) == "STOP"
    scheduler.on_trial_remove(trial)
    assert scheduler.searcher.trials[0].value == -1.0
