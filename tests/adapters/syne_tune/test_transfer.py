"""What past evaluations teach `DRETransfer` and the others, whatever their spaces and metrics."""

import json
import logging
from pathlib import Path
from typing import Any

import dill
import numpy as np
import pytest
from syne_tune import config_space as cs
from syne_tune.optimizer.scheduler import TrialScheduler
from syne_tune.optimizer.schedulers.asha import AsynchronousSuccessiveHalving
from syne_tune_rows import KNOWING, SPACE, evaluations

from dre_plugins.adapters.common import past_tasks
from dre_plugins.adapters.syne_tune import (
    ASHADRE,
    DRESearcher,
    DRETransfer,
    metadata_from_experiments,
    prior_from_evaluations,
)


def best_of(scheduler: TrialScheduler) -> dict[str, Any]:
    return scheduler.suggest().config


@pytest.mark.parametrize(
    ("space", "present"),
    [
        (SPACE, SPACE),
        ({k: SPACE[k] for k in ("lr", "layers")}, SPACE),  # one is new
        ({**SPACE, "dropout": cs.uniform(0, 1)}, SPACE),  # one is gone
        (SPACE, {**SPACE, "lr": cs.loguniform(1e-3, 10.0), "layers": cs.finrange(1, 6, 6)}),
        ({**SPACE, "act": cs.choice(["tanh", "gelu", "relu"])}, SPACE),
    ],
    ids=["same", "new", "gone", "other domains", "other choices"],
)
def test_the_first_suggestion_is_what_was_good_in_the_past(
    space: dict[str, Any], present: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    past = {"one": evaluations(space), "two": evaluations(space)}
    with caplog.at_level(logging.INFO, logger="syne_tune.dre_plugins"):
        scheduler = DRETransfer(present, "loss", past, **KNOWING)
    assert "Learning from 2 past tasks with 40 evaluations." in caplog.text
    config = best_of(scheduler)
    assert 1e-3 < config["lr"] < 2e-1 and config["layers"] >= 4
    assert scheduler.searcher.stats["past-studies"] == 1
    assert len(dill.dumps(scheduler)) < 1_000_000
    assert len(json.dumps(scheduler.metadata())) < 2_000


@pytest.mark.usefixtures("small_priors")
def test_metrics_of_the_past_may_have_another_name_or_direction() -> None:
    plain = best_of(DRETransfer(SPACE, "loss", {"t": evaluations()}, **KNOWING))
    only = {"t": evaluations(metric="error")}
    assert best_of(DRETransfer(SPACE, "loss", only, **KNOWING)) == plain
    upwards = DRETransfer(
        SPACE, "acc", only, do_minimize=False, past_metric="error", past_mode="min", **KNOWING
    )
    assert best_of(upwards) == plain
    wrong = best_of(DRETransfer(SPACE, "loss", only, past_mode="max", **KNOWING))
    assert wrong["layers"] <= 3
    several = evaluations()
    several.objectives_names = ["error", "seconds"]
    several.objectives_evaluations = np.repeat(several.objectives_evaluations, 2, axis=-1)
    with pytest.raises(ValueError, match=r"\['error', 'seconds'\] and no 'loss'.*past_metric"):
        DRETransfer(SPACE, "loss", {"t": several})
    named = DRETransfer(SPACE, "loss", {"t": several}, past_metric="error", **KNOWING)
    assert best_of(named) == plain


@pytest.mark.usefixtures("small_priors")
def test_the_past_can_serve_every_scheduler() -> None:
    prior = prior_from_evaluations([{"one": evaluations()}, {"two": evaluations()}], "loss")
    wanted = best_of(
        DRETransfer(SPACE, "loss", {"one": evaluations(), "two": evaluations()}, **KNOWING)
    )
    assert best_of(ASHADRE(SPACE, "loss", "epoch", 9, random_seed=0, prior=prior)) == wanted
    plain = AsynchronousSuccessiveHalving(
        SPACE, "loss", searcher=DRESearcher(SPACE, random_seed=0, prior=prior), time_attr="epoch"
    )
    assert best_of(plain) == wanted


@pytest.mark.parametrize("stated", [None, "min", "max", "smallest"])
@pytest.mark.parametrize("do_minimize", [True, False])
@pytest.mark.parametrize("is_alone", [True, False])
def test_only_an_experiment_that_states_no_mode_has_that_of_now(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stated: str | None,
    do_minimize: bool,
    is_alone: bool,
) -> None:
    """Also beside evaluations, which never state one."""
    monkeypatch.setattr(past_tasks, "past_tasks_in", lambda metadata, logger: metadata)
    (tmp_path / "results.csv").write_text("trial_id,config_lr,loss\n0,0.1,5.0\n1,0.2,6.0\n")
    if stated is not None:
        metadata = {"metric_names": ["loss"], "metric_mode": stated}
        (tmp_path / "metadata.json").write_text(json.dumps(metadata))
    table = evaluations()
    past = [str(tmp_path)] if is_alone else [str(tmp_path), {"table": table}]
    read: Any = prior_from_evaluations(past, "loss", do_minimize)
    is_small = stated == "min" if stated in ("min", "max") else do_minimize
    assert read.tasks[0].values.tolist() == ([-5.0, -6.0] if is_small else [5.0, 6.0])
    if not is_alone:
        value = float(table.objectives_evaluations.ravel()[0])
        assert read.tasks[1].values[0] == (-value if do_minimize else value)


@pytest.mark.usefixtures("small_priors")
def test_what_was_read_before_cannot_be_read_otherwise() -> None:
    past = {"t": evaluations()}
    read = metadata_from_experiments([past])
    given = {"constraints": {"loss": 1.0}, "past_metric": "a", "past_mode": "max"}
    for name, value in given.items():
        message = f"{name} must be left out beside a MetaDataset: give it to metadata_from_exp"
        with pytest.raises(ValueError, match=message):
            prior_from_evaluations(read, "loss", **{name: value})  # type: ignore[arg-type]
    # Those of a scheduler are for its own trials.
    limited = DRETransfer(SPACE, "loss", read, constraints={"size": 1.0}, **KNOWING)
    assert best_of(limited) == best_of(DRETransfer(SPACE, "loss", past, **KNOWING))


def test_past_experiments_are_the_only_prior() -> None:
    with pytest.raises(TypeError, match=r"^DRETransfer has no arguments \['prior'\]"):
        DRETransfer(SPACE, "loss", {"t": evaluations()}, prior="svm")
