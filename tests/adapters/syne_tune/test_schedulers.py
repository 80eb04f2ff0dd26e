"""The schedulers, and ours in those of Syne Tune, driven by a loop like that of its tuner.

What Syne Tune's own tests ask of every scheduler is asked of these here: suggestions with all
names, legal decisions, metadata, points first, exhaustion, survival of dill.
"""

import gc
import json
import logging
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import dill
import numpy as np
import pytest
from presets import TINY
from syne_tune import config_space as cs
from syne_tune.backend.trial_status import Trial
from syne_tune.optimizer.scheduler import TrialScheduler
from syne_tune.optimizer.schedulers.ask_tell_scheduler import AskTellScheduler
from syne_tune.optimizer.schedulers.searchers.last_value_multi_fidelity_searcher import (
    LastValueMultiFidelitySearcher,
)
from syne_tune.optimizer.schedulers.transfer_learning.bounding_box import BoundingBox
from syne_tune_loop import (
    GRID,
    KNOWING,
    OURS,
    QUICK,
    SCHEDULERS,
    WHOLE,
    Loop,
    asha,
    ashadre,
    dre,
    loss_of,
    searcher_of,
    start,
    states,
)
from syne_tune_rows import SPACE, evaluations

from dre_plugins import Memory
from dre_plugins.adapters.syne_tune import DRE, DRESearcher, DRETransfer
from dre_plugins.adapters.syne_tune.history import _say_what_is_not_recorded, searcher_in
from dre_plugins.memory.records import read_study
from dre_plugins.recommend import TrialState
from dre_plugins.recommend.settings import Settings

pytestmark = pytest.mark.usefixtures("small_priors")
every = pytest.mark.parametrize("name", SCHEDULERS)
whole = pytest.mark.parametrize("name", WHOLE)
ours = pytest.mark.parametrize("name", OURS)


# ---- what Syne Tune asks of a scheduler


def seeded(name: str) -> Loop:
    np.random.seed(1)  # noqa: NPY002  IndependentMultiFidelitySearcher draws from it
    return Loop(SCHEDULERS[name](SPACE))


@every
def test_a_run_is_legal_and_repeated_by_its_seed_also_through_dill(name: str) -> None:
    undisturbed, loop = seeded(name), seeded(name)
    undisturbed.run(9)
    expected = undisturbed.run(14)
    np.random.seed(1)  # noqa: NPY002
    loop.run(9)
    for trial in loop.trials:
        assert trial.config.keys() == SPACE.keys() and trial.config["epochs"] == 9
        for key, domain in SPACE.items():
            if isinstance(domain, cs.Domain):
                assert domain.is_valid(trial.config[key])
                assert type(trial.config[key]) is domain.value_type
    check_metadata(name, loop.scheduler)
    loop.scheduler = dill.loads(dill.dumps(loop.scheduler))
    assert loop.run(14) == expected
    late = loop.trials[0]
    for _ in range(2):  # what comes late must do no harm
        if name in OURS:
            loop.scheduler.on_trial_result(late, {"epoch": 9, "loss": 0.0})
            loop.scheduler.on_trial_error(late)
            loop.scheduler.on_trial_remove(late)
            loop.scheduler.on_trial_complete(late, {"epoch": 9, "loss": 0.0})
    if name in WHOLE:
        searcher = searcher_in(loop.scheduler)
        assert searcher.stats["fallbacks"] == 0 and len(searcher.trials) == 14
        of_models = ("model", "universal-prior", "past-studies")
        assert sum(searcher.stats[source] for source in of_models) >= 8


def check_metadata(name: str, scheduler: TrialScheduler) -> None:
    """Check that what Syne Tune writes into a file is small and can be read back."""
    metadata = scheduler.metadata()
    if name in OURS:
        text = json.dumps(metadata)
        assert len(text) < 2_000
        assert metadata["scheduler_name"] == type(scheduler).__name__
        arguments = metadata["scheduler_kwargs"]
        assert arguments["random_seed"] == 0
        assert arguments.get("time_attr") == ("epoch" if "ASHA" in name else None)
        assert (metadata["metric"], metadata["metric_names"]) == ("loss", ["loss"])
        space = cs.config_space_from_json_dict(json.loads(metadata["config_space"]))
        assert space == SPACE
        assert scheduler.metric_names() == ["loss"]
    assert metadata["metric_mode"] == scheduler.metric_mode() == "min"


def test_points_come_first() -> None:
    points = [{"lr": 0.5, "layers": 6, "act": "tanh"}, {"lr": 2.0, "layers": 1, "act": "relu"}]
    past = {"past": evaluations()}
    for scheduler in (
        dre(points_to_evaluate=points),
        ashadre(points_to_evaluate=points),
        DRETransfer(SPACE, "loss", past, points_to_evaluate=points, **KNOWING),
        asha(searcher_of(points_to_evaluate=points)),
        asha(
            LastValueMultiFidelitySearcher(
                SPACE, points_to_evaluate=points, searcher=DRESearcher, random_seed=0
            )
        ),
    ):
        configs = [scheduler.suggest().config for _ in range(3)]
        assert [{k: c[k] for k in points[0]} for c in configs[:2]] == points
        assert configs[2]["lr"] <= 1.0


@pytest.mark.parametrize(
    ("name", "fails"), [*((name, False) for name in WHOLE), *((name, True) for name in OURS)]
)
def test_a_finite_space_is_used_up(name: str, fails: bool) -> None:
    def report(trial: Trial, epoch: int) -> Any:
        return "crash" if fails else {"epoch": epoch, "loss": trial.config["b"]}

    loop = Loop(SCHEDULERS[name]({**GRID, "lr": 0.1, "layers": 3}), report=report)
    configs = loop.run(30)
    assert loop.is_exhausted
    assert len(configs) == len({(config["a"], config["b"]) for config in configs}) == 9


@pytest.mark.parametrize(
    "scheduler", [dre, partial(ashadre, brackets=2)], ids=["DRE", "ASHADRE, 2 brackets"]
)
def test_the_seed_decides(scheduler: Callable[..., TrialScheduler]) -> None:
    state = np.random.get_state()[1].tolist()  # noqa: NPY002
    runs = [Loop(scheduler(random_seed=seed)).run(12) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    assert scheduler(random_seed=None).random_seed != scheduler(random_seed=None).random_seed
    assert scheduler(random_seed=np.int64(7)).searcher.random_seed == 7
    assert np.random.get_state()[1].tolist() == state  # noqa: NPY002


def test_brackets_are_drawn_by_the_seed_and_by_size() -> None:
    scheduler = ashadre(brackets=3)
    assert [len(bracket.rungs) for bracket in scheduler.brackets] == [3, 2, 1]
    places = []
    for trial_id in range(300):
        trial = Trial(trial_id, {"lr": 0.1, "layers": 1, "act": "relu"}, None)
        scheduler.on_trial_result(trial, {"epoch": 0, "loss": 1.0})
        places.append(scheduler.brackets.index(scheduler.trial_info[trial_id]))
    counts = np.bincount(places)
    np.testing.assert_allclose(counts / 300, [0.665, 0.245, 0.09], atol=0.06)


@pytest.mark.parametrize("kind", [dre, ashadre], ids=["DRE", "ASHADRE"])
def test_maximising_is_minimising_the_negative(kind: Callable[..., TrialScheduler]) -> None:

    def flipped(trial: Trial, epoch: int) -> Any:
        return {"epoch": epoch, "loss": -loss_of(trial.config, epoch)}

    down = Loop(kind()).run(14)
    loop = Loop(kind(do_minimize=False), report=flipped)
    assert loop.run(14) == down
    assert loop.scheduler.mode == loop.scheduler.metric_mode() == "max"


# ---- results


@ours
def test_reports_without_the_metric_are_ignored(name: str, caplog) -> None:
    def report(trial: Trial, epoch: int) -> Any:
        full = {"epoch": epoch, "loss": loss_of(trial.config, epoch), "st_worker_time": 1.0}
        if trial.trial_id == 0 or (trial.trial_id == 1 and epoch == 9):
            del full["loss"]
        if trial.trial_id == 2:
            del full["epoch"]
        return full

    loop = Loop(SCHEDULERS[name](SPACE), report=report)
    with caplog.at_level(logging.WARNING, logger="syne_tune.dre_plugins"):
        loop.run(10)
    messages = [
        line.getMessage() for line in caplog.records if line.name == "syne_tune.dre_plugins"
    ]
    assert messages == [
        "Trial 0 reported ['epoch'] without ['loss']: such reports are ignored. Are the names "
        "those of the training script? Further ones are not mentioned."
    ]
    trials = searcher_in(loop.scheduler).trials
    assert trials[0].value is None and not trials[0].rungs
    assert 8.0 in trials[1].rungs or trials[1].state is TrialState.PRUNED
    if "ASHA" in name:
        assert not trials[2].rungs  # it cannot be placed without its epoch
    assert "running" not in states(loop.scheduler)


@pytest.mark.parametrize("kind", [dre, ashadre], ids=["DRE", "ASHADRE"])
@pytest.mark.parametrize(
    ("value", "do_minimize"),
    [(math.nan, True), (math.inf, True), (-math.inf, True), ("text", False), (1e300, False)],
)
def test_strange_values_break_nothing(kind: Any, value: Any, do_minimize: bool) -> None:
    def report(trial: Trial, epoch: int) -> Any:
        usual = loss_of(trial.config, epoch)
        return {"epoch": epoch, "loss": value if trial.trial_id % 2 else usual}

    loop = Loop(kind(do_minimize=do_minimize), report=report)
    loop.run(12)
    odd = searcher_in(loop.scheduler).trials[1::2]
    if value == "text" or math.isnan(value):
        assert all(not trial.rungs or math.isnan([*trial.rungs.values()][-1]) for trial in odd)
        assert all(trial.value is None or math.isnan(trial.value) for trial in odd)
    assert searcher_in(loop.scheduler).stats["fallbacks"] == 0


def test_nan_is_the_worst_of_a_rung() -> None:
    scheduler = ashadre()
    trials = [Trial(i, scheduler.suggest().config, None) for i in range(6)]
    decisions = []
    for trial, value in zip(trials, [math.nan, 1.0, math.nan, 0.5, 2.0, math.nan], strict=True):
        scheduler.on_trial_add(trial)
        decisions.append(scheduler.on_trial_result(trial, {"epoch": 1, "loss": value}))
    assert decisions == ["CONTINUE", "CONTINUE", "CONTINUE", "CONTINUE", "STOP", "STOP"]
    values = [trial.rungs[1.0] for trial in scheduler.searcher.trials]
    np.testing.assert_array_equal(values, [math.nan, 1.0, math.nan, 0.5, 2.0, math.nan])


@ours
def test_crashes_are_failures_and_leave_nothing_pending(name: str) -> None:
    def report(trial: Trial, epoch: int) -> Any:
        if trial.trial_id % 3 == 0 and epoch == (2 if trial.trial_id == 0 else 1):
            return "crash"
        return {"epoch": epoch, "loss": loss_of(trial.config, epoch)}

    loop = Loop(SCHEDULERS[name](SPACE), report=report)
    loop.run(14)
    found = states(loop.scheduler)
    assert "running" not in found
    assert [place for place, state in enumerate(found) if state == "failed"] == [0, 3, 6, 9, 12]
    if "ASHA" in name:
        assert not loop.scheduler.trial_info


@ours
def test_a_trial_that_a_subclass_pauses_is_learnt_from_when_it_is_resumed(name: str) -> None:
    scheduler = SCHEDULERS[name](SPACE)
    trials = [start(scheduler, trial_id) for trial_id in range(4)]
    for trial in trials:
        scheduler.on_trial_result(trial, {"epoch": 1, "loss": 5.0})
        scheduler.on_trial_remove(trial)  # as the tuner does after the decision to pause
        assert states(scheduler)[trial.trial_id] == "complete"
    scheduler.on_trial_result(trials[0], {"epoch": 2, "loss": 4.0})
    scheduler.on_trial_result(trials[1], {"epoch": 2, "loss": 3.0})
    scheduler.on_trial_complete(trials[1], {"epoch": 2, "loss": 3.0})
    scheduler.on_trial_error(trials[2])
    assert states(scheduler) == ["running", "complete", "failed", "pruned"]
    rungs = [dict(trial.rungs) for trial in searcher_in(scheduler).trials]
    assert rungs == [{1.0: 5.0, 2.0: 4.0}, {1.0: 5.0, 2.0: 3.0}, {1.0: 5.0}, {1.0: 5.0}]


def test_rungs_reach_the_searcher_with_their_resource() -> None:
    loop = Loop(ashadre(), n_workers=4)
    loop.run(16)
    trials = searcher_in(loop.scheduler).trials
    assert {trial.state for trial in trials} == {TrialState.COMPLETE, TrialState.PRUNED}
    for trial in trials:
        assert [*trial.rungs] == [float(epoch) for epoch in range(1, len(trial.rungs) + 1)]
        for epoch, value in trial.rungs.items():
            assert value == pytest.approx(loss_of(dict(trial.configuration), int(epoch)))
        assert (trial.state is TrialState.COMPLETE) == (len(trial.rungs) == 9)
    assert not loop.scheduler.trial_info


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["MedianStoppingRule", "MedianStoppingRule(ASHADRE)", "AsynchronousSuccessiveHalving"]
)
def test_it_learns_from_reports_where_it_is_told_no_end(name: str) -> None:
    loop = Loop(SCHEDULERS[name](SPACE, settings=Settings(preset=QUICK)))
    loop.run(24)
    stats = searcher_in(loop.scheduler).stats
    assert stats["model"] + stats["universal-prior"] >= 10
    late = [loss_of(trial.config, 9) for trial in loop.trials[12:]]
    early = [loss_of(trial.config, 9) for trial in loop.trials[:4]]
    assert np.median(late) < min(early)


@pytest.mark.parametrize("name", [name for name in WHOLE if "(" not in name])
def test_all_trials_are_recorded_also_those_whose_end_nobody_tells(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And those that run when a tuner ends: when the next study begins, or nobody has them."""
    monkeypatch.setenv("DRE_MEMORY", str(tmp_path))
    loop = Loop(SCHEDULERS[name](SPACE))
    loop.run(9)
    study = searcher_in(loop.scheduler).study
    for trial_id in (9, 10):
        trial = start(loop.scheduler, trial_id)
        loop.scheduler.on_trial_result(trial, loop.report(trial, 1))
        if trial_id == 9:
            files = {*tmp_path.rglob("*.jsonl")}
            with monkeypatch.context() as patch:  # in a fork that goes its own way
                patch.setattr("os.getpid", lambda: -1)
                searcher_of(memory=False)
            assert {*tmp_path.rglob("*.jsonl")} == files
            searcher_of(memory=False)  # the next one
            written = [file.read_bytes() for file in tmp_path.rglob("*.jsonl")]
            searcher_of(memory=False)  # nothing has changed
            assert [file.read_bytes() for file in tmp_path.rglob("*.jsonl")] == written
        else:
            del loop
            gc.collect()
        (entry,) = Memory(tmp_path).index().entries
        expected = [t for t in study.history() if t.state is not TrialState.RUNNING]
        assert read_study(entry.files).history() == expected
        # MedianStoppingRule hands on no report of what it stops.
        assert len(expected) == trial_id + 1 or name == "MedianStoppingRule"


@pytest.mark.parametrize("name", ["LastValue", "Independent"])
def test_nothing_is_recorded_of_searchers_that_another_makes_and_feeds(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """There would be a study for each of them."""
    monkeypatch.setenv("DRE_MEMORY", str(tmp_path))
    _say_what_is_not_recorded.cache_clear()
    Loop(SCHEDULERS[name](SPACE)).run(9)
    assert not Memory(tmp_path).index().entries
    assert caplog.text.count("the memory records none of them. ASHADRE is recorded") == 1


@pytest.mark.slow
def test_a_region_that_crashes_before_any_report_is_avoided_though_nobody_says_so() -> None:
    def report(trial: Trial, epoch: int) -> Any:
        distance = (math.log10(trial.config["lr"]) + 2) ** 2
        return "crash" if trial.config["layers"] > 3 else {"epoch": epoch, "loss": distance}

    loop = Loop(
        SCHEDULERS["SingleObjectiveScheduler"](SPACE, settings=Settings(preset=QUICK)),
        max_epochs=1,
        report=report,
    )
    loop.run(30)
    assert sum(trial.config["layers"] > 3 for trial in loop.trials[10:]) <= 5


def test_a_bounding_box_can_choose_the_space() -> None:
    scheduler = BoundingBox(
        lambda space, metric, do_minimize, seed: DRE(
            space, metric, do_minimize, seed, settings=Settings(preset=TINY), n_startup_trials=4
        ),
        SPACE,
        "loss",
        {"one": evaluations(), "two": evaluations({**SPACE, "act": cs.choice(["relu"])})},
        num_hyperparameters_per_task=6,
        random_seed=0,
    )
    loop = Loop(scheduler)
    configs = loop.run(8)
    assert all(config.keys() == SPACE.keys() for config in configs)
    assert states(scheduler) == ["complete"] * 8


# ---- without a tuner


@ours
def test_ask_and_tell(name: str) -> None:
    loop = AskTellScheduler(SCHEDULERS[name](SPACE))
    values = []
    for number in range(12):
        trial = loop.ask()
        values.append(loss_of(trial.config, 9))
        result = {"epoch": 9, "loss": values[-1]}
        loop.tell(trial, {"other": 1.0} if number == 5 else result)
    del loop.completed_experiments[5]
    del values[5]
    assert loop.best_trial("loss").metrics["loss"] == min(values)
    found = states(loop.base_scheduler)
    assert [place for place, state in enumerate(found) if state != "complete"] == [5]
