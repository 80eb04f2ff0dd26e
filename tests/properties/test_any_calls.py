"""Whatever is called in whatever order with whatever values, the study goes on.

Frameworks report late, twice, of trials that nobody knows, and what users' code returns.
"""

import copy
import datetime
import pickle
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from cases import cases
from histories import values
from hypothesis import given, strategies as st
from small import SETTINGS

from dre_plugins.space import Float
from dre_plugins.study import AskTell

# What a report may hold where a number is expected.
reported = values | st.sampled_from([None, "text", "1.5", True, [1.0], {}, np.array(2.0), 1j])
N_STARTUP_TRIALS = 2


@dataclass(frozen=True)
class Call:
    """A call of a study: what, of which of the trials so far, and with what."""

    kind: str
    trial: int
    value: Any
    step: Any
    other: Any


def calls(*kinds: str) -> st.SearchStrategy[list[Call]]:
    """Sequences of calls; half of them ask, so that there is something to tell of."""
    kind = st.just("ask") | st.sampled_from(kinds)
    steps = st.integers(-1, 4) | reported
    return st.lists(
        st.builds(Call, kind, st.integers(0, 12), reported, steps, reported), max_size=20
    )


def attempt(call: Any, *arguments: Any, **keywords: Any) -> None:
    """Call what may refuse its arguments, in words."""
    try:
        call(*arguments, **keywords)
    except ValueError as error:
        assert len(str(error)) > 10


def report_of(call: Call, **more: Any) -> dict[str, Any]:
    """Return what a trial reports, sometimes without the metric."""
    has_metric = not isinstance(call.other, dict)
    return {**({"loss": call.value} if has_metric else {}), **more}


def configuration(value: Any) -> dict[str, Any]:
    return {"x": value, "kind": "b"}


@cases(25)
@given(
    calls("tell", "report", "stop", "restart", "add", "enqueue", "batch", "pickle"),
    st.integers(0, 9),
    st.sampled_from(["model", "worst", "ignore"]),
)
def test_ask_tell(sequence: Sequence[Call], seed: int, failed: str) -> None:
    space = {"x": Float(-1.0, 1.0), "kind": ["a", "b", "c"]}
    how = {"n_startup_trials": N_STARTUP_TRIALS, "settings": SETTINGS, "failed": failed}
    study = AskTell(space, seed=seed, **how)
    for call in sequence:
        if call.kind == "ask":
            study.ask()
        elif call.kind == "batch":
            study.ask_batch(3)
        elif call.kind == "pickle":
            study = pickle.loads(pickle.dumps(study))
        elif call.kind == "tell":
            attempt(study.tell, call.trial, call.value, constraints={"limit": call.other})
        elif call.kind == "report":
            attempt(study.report, call.trial, call.step, call.value)
        elif call.kind == "add":
            rungs = {call.step: call.other} if isinstance(call.step, (int, float)) else None
            attempt(study.add, configuration(call.other), call.value, rungs=rungs)
        elif call.kind == "enqueue":
            attempt(study.enqueue, configuration(call.value))
        else:
            attempt(getattr(study, call.kind), call.trial)
    again = pickle.loads(pickle.dumps(study))
    asked = study.ask()
    assert repr(again.ask()) == repr(asked)
    assert study.stats["fallbacks"] == 0
    assert str(study.explain(asked[0]))


@cases(20)
@given(calls("result", "end", "fail", "result again", "suggest again", "restore"))
def test_ray_tune(sequence: Sequence[Call]) -> None:
    tune = pytest.importorskip("ray.tune")
    from dre_plugins.adapters.ray_tune import DRESearch

    space = {"x": tune.uniform(-1.0, 1.0), "kind": tune.choice(["a", "b", "c"])}

    def begin() -> DRESearch:
        how = {"n_startup_trials": N_STARTUP_TRIALS, "settings": SETTINGS}
        return DRESearch(space, "loss", "min", seed=0, **how)

    search, ids = begin(), []
    for call in sequence:
        trial_id = str(call.trial)  # which may be of no trial
        result = report_of(call, training_iteration=call.step, trial_id=trial_id)
        if call.kind == "ask":
            ids.append(str(len(ids)))
            search.suggest(ids[-1])
        elif call.kind == "suggest again":
            if trial_id in ids:
                search.suggest(trial_id)
        elif call.kind == "restore":
            with tempfile.TemporaryDirectory(prefix="dre-calls-") as folder:
                search.save(f"{folder}/state.pkl")
                search = begin()
                search.restore(f"{folder}/state.pkl")
        elif call.kind.startswith("result"):
            search.on_trial_result(trial_id, result)
            if call.kind == "result again":
                search.on_trial_result(trial_id, result)
        elif call.kind == "fail":
            search.on_trial_complete(trial_id, error=True)
        else:
            search.on_trial_complete(trial_id, result=None if call.other is None else result)
    chosen = search.suggest("last")
    assert -1.0 <= chosen["x"] <= 1.0
    assert chosen["kind"] in "abc"
    assert search.stats["fallbacks"] == 0
    assert str(search.explain("last"))


@pytest.mark.parametrize("name", ["DRE", "ASHADRE"])
@cases(12)
@given(sequence=calls("result", "end", "fail", "remove", "copy"))
def test_syne_tune(name: str, sequence: Sequence[Call]) -> None:
    pytest.importorskip("syne_tune")
    from syne_tune.backend.trial_status import Trial
    from syne_tune.config_space import choice, uniform

    from dre_plugins.adapters import syne_tune as adapter

    space = {"x": uniform(-1.0, 1.0), "kind": choice(["a", "b", "c"])}
    halving = {"time_attr": "epoch", "max_t": 4} if name == "ASHADRE" else {}
    scheduler = getattr(adapter, name)(
        space,
        "loss",
        random_seed=0,
        n_startup_trials=N_STARTUP_TRIALS,
        settings=SETTINGS,
        **halving,
    )
    trials: list[Trial] = []
    for call in sequence:
        if call.kind == "ask":
            config = scheduler.suggest().config
            trials.append(Trial(len(trials), config, datetime.datetime(2026, 1, 1)))
            scheduler.on_trial_add(trials[-1])
            continue
        if call.kind == "copy":
            scheduler = copy.deepcopy(scheduler)
            continue
        if call.trial >= len(trials):
            continue
        trial, result = trials[call.trial], report_of(call, epoch=call.step)
        if call.kind == "result":
            scheduler.on_trial_result(trial, result)
        elif call.kind == "end":
            scheduler.on_trial_complete(trial, result)
        elif call.kind == "fail":
            scheduler.on_trial_error(trial)
        else:
            scheduler.on_trial_remove(trial)
    chosen = scheduler.suggest().config
    assert -1.0 <= chosen["x"] <= 1.0
    assert chosen["kind"] in "abc"
    assert scheduler.searcher.stats["fallbacks"] == 0
