"""What Syne Tune's searchers and schedulers say of where configurations come from."""

import datetime
from typing import Any

import pytest
from syne_tune import config_space as cs
from syne_tune.backend.trial_status import Trial
from syne_tune.optimizer.schedulers.ask_tell_scheduler import AskTellScheduler
from syne_tune.optimizer.schedulers.single_objective_scheduler import SingleObjectiveScheduler
from syne_tune_loop import start
from syne_tune_rows import OPTIONS

from dre_plugins.adapters.syne_tune import ASHADRE, DRE, MODRE, DRESearcher
from dre_plugins.recommend.explanation import Explanation

SPACE = {"x": cs.uniform(0.0, 1.0), "y": cs.uniform(0.0, 1.0)}


def run(scheduler: Any, n: int) -> Any:
    """Run trials as the tuner does."""
    for trial_id in range(n):
        trial = start(scheduler, trial_id)
        value = trial.config["x"] + trial.config["y"]
        result = {"loss": value, "size": -value, "epoch": 3}
        scheduler.on_trial_result(trial, result)
        scheduler.on_trial_complete(trial, result)
    return scheduler


def sources(scheduler: Any, n: int) -> list[str]:
    return [scheduler.explain(trial_id).source for trial_id in range(n)]


def test_every_scheduler_of_ours() -> None:
    expected = ["random"] * 4 + ["model"]
    assert sources(run(DRE(SPACE, "loss", **OPTIONS), 5), 5) == expected
    asha = ASHADRE(SPACE, "loss", time_attr="epoch", max_t=9, **OPTIONS)
    assert sources(run(asha, 5), 5) == expected
    several = run(MODRE(SPACE, ["loss", "size"], **OPTIONS), 5)
    assert sources(several, 5) == expected
    assert several.explain(4).predicted_rank is not None


@pytest.mark.whole_search
def test_the_scheduler_says_what_the_searcher_says() -> None:
    scheduler = run(DRE(SPACE, "loss", points_to_evaluate=[{"x": 0.5}], **OPTIONS), 6)
    assert sources(scheduler, 6) == ["enqueued"] + ["random"] * 3 + ["model"] * 2
    explained = [scheduler.searcher.explain(trial_id) for trial_id in range(6)]
    assert explained == [scheduler.searcher.study.explain(number) for number in range(6)]
    assert explained[5].n_reference == 512 + 5


def test_trials_that_begin_in_another_order() -> None:
    scheduler = run(DRE(SPACE, "loss", **OPTIONS), 5)
    configs = [scheduler.suggest().config for _ in range(3)]
    for trial_id, place in ((5, 2), (6, 0), (7, 1)):
        scheduler.on_trial_add(Trial(trial_id, configs[place], datetime.datetime.now()))
    study = scheduler.searcher.study
    assert [scheduler.explain(trial_id) for trial_id in (6, 7, 5)] == [
        study.explain(n) for n in (5, 6, 7)
    ]


def test_a_scheduler_of_syne_tune_and_trials_from_elsewhere() -> None:
    searcher = DRESearcher(SPACE, **OPTIONS)
    asked = AskTellScheduler(SingleObjectiveScheduler(SPACE, metric="loss", searcher=searcher))
    for _ in range(5):
        trial = asked.ask()
        asked.tell(trial, {"loss": trial.config["x"]})
    assert sources(searcher, 5) == ["random"] * 4 + ["model"]
    searcher.on_trial_complete(5, {"x": 0.5, "y": 0.5}, 1.0)
    searcher.on_trial_complete(6, {"x": "not of this space", "y": 0.5}, 1.0)
    assert searcher.explain(5) == searcher.explain(6) == Explanation("unknown")


def test_no_such_trial() -> None:
    scheduler = run(DRE(SPACE, "loss", **OPTIONS), 1)
    for wrong in (1, [0]):
        with pytest.raises(ValueError, match=r"trial_id must be one of 1 known trials, got"):
            scheduler.explain(wrong)
