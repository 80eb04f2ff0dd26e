"""Whatever happened in whatever space, `AskTell` suggests what can be tried, and says why."""

import math
import pickle
from typing import Any

from cases import cases
from histories import History, histories, values
from hypothesis import given, strategies as st
from small import SETTINGS, SMALL
from spaces import SpaceCase, space_cases

from dre_plugins.recommend.settings import Settings
from dre_plugins.study import AskTell

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
