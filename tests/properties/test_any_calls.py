"""Whatever has happened, and whatever is called with whatever values, a study goes on.

Frameworks report late, twice, of trials that nobody knows, and what users' code returns.
"""

import copy
import datetime
import math
import pickle
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from cases import cases
from histories import SETTINGS, SMALL, History, histories, values
from hypothesis import given, strategies as st
from spaces import SpaceCase, space_cases

from dre_plugins.recommend.settings import Settings
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


def assert_goes_on(chosen: dict[str, Any], stats: Mapping[str, int]) -> None:
    assert -1.0 <= chosen["x"] <= 1.0 and chosen["kind"] in "abc"
    assert stats["fallbacks"] == 0


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
    assert_goes_on(search.suggest("last"), search.stats)
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
    assert_goes_on(scheduler.suggest().config, scheduler.searcher.stats)


seeds = st.integers(0, 2**63) | st.integers(0, 10)
options = st.fixed_dictionaries(
    {
        "n_startup_trials": st.sampled_from([0, 1, 5]),
        "allow_duplicates": st.booleans(),
        "failed": st.sampled_from(["model", "worst", "ignore"]),
        "settings": st.builds(
            Settings,
            preset=st.just(SMALL),
            acquisition=st.sampled_from(
                ["log-rank-ei", "log-rank-ei", "ei", "pi", "lcb", "average-rank", "thompson"]
            ),
            max_history=st.sampled_from([128, 2, 5]),
        ),
    }
)


def study_of(case: SpaceCase, history: History, seed: int, **arguments: Any) -> AskTell:
    study = AskTell(case.space, seed=seed, **{"settings": SETTINGS, **arguments})
    history.add_to(study)
    return study


@cases(30)
@given(
    space_cases(),
    histories,
    seeds,
    options,
    st.sampled_from(["minimize", "maximize"]),
    st.integers(1, 3),
    st.lists(st.none() | values, min_size=3, max_size=3),
)
def test_suggestions_belong_to_the_space(
    case: SpaceCase,
    history: History,
    seed: int,
    how: dict[str, Any],
    direction: str,
    count: int,
    told: list[Any],
) -> None:
    study = study_of(case, history, seed, direction=direction, **how)
    before = pickle.dumps(study.trials)
    asked = study.ask_batch(count)
    for (number, configuration), value in zip(asked, told, strict=False):
        case.check(configuration)
        explanation = study.explain(number)
        for figure in (explanation.predicted_rank, explanation.spread):
            assert figure is None or math.isfinite(figure)
        study.tell(number, value)
    assert study.stats["fallbacks"] == 0
    assert pickle.dumps(study.trials[: history.n]) == before
    case.check(study.ask()[1])
    assert study.stats["fallbacks"] == 0


@cases(10)
@given(
    space_cases(most=3),
    histories,
    seeds,
    st.lists(st.tuples(values, values), min_size=1, max_size=9),
)
def test_several_objectives(
    case: SpaceCase, history: History, seed: int, told: list[tuple[Any, Any]]
) -> None:
    few = {"settings": SETTINGS, "n_startup_trials": 2}
    study = AskTell(case.space, direction=["minimize", "maximize"], seed=seed, **few)
    for configuration, pair in zip(history.configurations(case.space), told, strict=False):
        study.add(configuration, pair)
    case.check(study.ask()[1])
    assert study.stats["fallbacks"] == 0
    assert len(study.best_trials) <= len(told)


@cases(12)
@given(space_cases(), histories, seeds, st.data())
def test_what_is_enqueued_comes_first(
    case: SpaceCase, history: History, seed: int, data: st.DataObject
) -> None:
    study = study_of(case, history, seed, n_startup_trials=2)
    whole = History(1, seed % 2**32, history.outcomes).configurations(case.space)[0]
    kept = data.draw(st.sets(st.sampled_from([*whole]))) if whole else set()
    study.enqueue({name: whole[name] for name in kept})
    number, configuration = study.ask()
    assert all(repr(configuration[name]) == repr(whole[name]) for name in kept & {*configuration})
    assert study.explain(number).source == "enqueued"
