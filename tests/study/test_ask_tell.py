import logging
import math
from unittest.mock import Mock

import numpy as np
import pytest
from presets import QUICK
from small_spaces import GRID, PLANE

from dre_plugins.recommend import Trial, TrialState
from dre_plugins.recommend.settings import Settings
from dre_plugins.space import Categorical, Condition, Constant, Float, Integer, SearchSpace
from dre_plugins.space.conditions import RangeCondition
from dre_plugins.study import AskTell


def study_of(space=PLANE, **arguments) -> AskTell:
    return AskTell(
        space,
        **{"seed": 0, "settings": Settings(preset=QUICK), "n_startup_trials": 4, **arguments},
    )


def test_it_speaks_the_users_language() -> None:
    study = AskTell({"x": [1, 2, 4], "y": Float(0.0, 1.0)}, direction="minimize", seed=0)
    number, configuration = study.ask()
    study.tell(number, 1.25)
    study.add({"x": 4, "y": 0.5}, 3.0)
    assert study.best.value == 1.25 and study.best.configuration == configuration
    assert [trial.value for trial in study.trials] == [1.25, 3.0]


def test_it_survives_failures_of_objective_and_surrogate(monkeypatch) -> None:
    broken = Mock(side_effect=MemoryError)
    monkeypatch.setattr("dre_plugins.engine.surrogate.fit", broken)
    monkeypatch.setattr("dre_plugins.recommend.universal_prior.load_network", broken)
    study = study_of(GRID, direction="maximize", seed=None)
    seen = []
    for i in range(18):
        number, configuration = study.ask()
        seen.append(tuple(configuration.values()))
        study.tell(number, None if i % 3 else float(i))
    assert len(set(seen)) == 18
    assert study.stats["fallbacks"] == 14


def test_a_failed_trial_is_not_the_best_and_is_told_once() -> None:
    study = AskTell({"x": Float(0.0, 1.0)}, direction="minimize", seed=0)
    with pytest.raises(ValueError, match="best needs a complete, feasible trial"):
        _ = study.best
    number, _ = study.ask()
    study.tell(number, None)
    with pytest.raises(ValueError, match="not told before"):
        study.tell(number, 1.0)
    study.add({"x": 0.5}, 1.0)
    assert study.best.configuration == {"x": 0.5}


def test_without_a_best_trial_it_names_the_constraints_that_each_must_state() -> None:
    study = AskTell({"x": Float(0.0, 1.0)}, seed=0)
    for name in ("memory", "memroy"):
        study.add({"x": 0.5}, 1.0, constraints={name: -1.0})
    with pytest.raises(ValueError, match=r"must state all constraints: \['memory', 'memroy'\]"):
        _ = study.best


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("seed", [-1, 1.5, "a", True], "a non-negative integer"),
        ("space", [None, "x", [("x", [1, 2])], {3: [1, 2]}], "a SearchSpace, or domains or lists"),
        (
            "direction",
            [None, 3, [["minimize"]], {"minimize"}],
            "'minimize' or 'maximize', or a list",
        ),
        ("direction", ["max", []], ""),
        ("logger", ["x", logging], "a logging.Logger, or None"),
    ],
)
def test_what_no_study_can_be_of_is_refused_by_name(name, wrong, message) -> None:
    for value in wrong:
        with pytest.raises(ValueError, match=f"{name} must be {message}"):
            AskTell(**{"space": PLANE, "seed": 0, name: value})


def test_choices_that_cannot_be_searched_are_refused_by_the_name_of_their_parameter() -> None:
    with pytest.raises(ValueError, match="Parameter 'x': 1 is listed twice"):
        AskTell({"y": [1, 2], "x": [1, 1]})
    # A pair may be a range; other libraries have domains of their own.
    for wrong in ((0.0, 1.0), (1, 9), {"low": 0.0, "high": 1.0}, "ab", object()):
        with pytest.raises(
            ValueError, match=r"'x' must be a domain .*Float\(0\.0, 1\.0\), or a list"
        ):
            AskTell({"x": wrong})
    assert AskTell({"idx": [0, 1, 2]}).space.domains["idx"] == Categorical((0, 1, 2))
    settings = Settings(order_numeric_choices=False)
    assert AskTell({"x": [1, 2]}, settings=settings).space.domains["x"] == Categorical((1, 2))


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("tell", ("0", 1.0), "number must be a number that ask returned, got '0'"),
        ("tell", (0.0, 1.0), "number must be a number that ask returned, got 0.0"),
        ("tell", (9, 1.0), "number must be a number that ask returned, got 9"),
        ("tell", (0, "bad"), "value must be a number or None, got 'bad'"),
        ("report", (None, 1, 1.0), "number must be a number that ask returned, got None"),
        ("explain", (False,), "number must be a number that ask returned, got False"),
        ("ask_batch", (1.5,), "count must be an integer of at least 1, got 1.5"),
        ("ask_batch", ("2",), "count must be an integer of at least 1, got '2'"),
        ("expected_gain", (None,), "n_ahead must be an integer from 1 to 1000000, got None"),
        ("enqueue", (None,), "configuration must be values by name, got None"),
        ("enqueue", ({"z": 1.0},), r"made of \['x', 'y'\]"),
        ("add", ([1.0], 1.0), r"configuration must be values by name, got \[1.0\]"),
        ("add", ({"x": 0.5, "y": 0.5}, "bad"), "value must be a number or None, got 'bad'"),
        ("add", ({"x": "high"}, 1.0), "x must be in"),
        ("add", ({}, 1.0), r"complete, it lacks \['x', 'y'\]"),
    ],
)
def test_what_a_study_cannot_use_is_refused_by_name(method, arguments, message) -> None:
    study = AskTell(PLANE, seed=0)
    study.ask()
    with pytest.raises(ValueError, match=message):
        getattr(study, method)(*arguments)
    assert not study.is_running(None) and study.is_running(0) and len(study.trials) == 1


def test_what_is_done_to_a_trial_that_is_shown_changes_no_study() -> None:
    study = AskTell(PLANE, seed=0)
    study.add({"x": 0.5, "y": 0.5}, 1.0)
    for trial in (*study.trials, study.best):
        trial.configuration.clear()
    assert study.best.configuration == {"x": 0.5, "y": 0.5}


def test_constraints_and_rungs_are_numbers_by_name() -> None:
    study = AskTell(PLANE, seed=0)
    number, configuration = study.ask()
    for constraints in (3, [1.0], "ab"):
        with pytest.raises(ValueError, match="constraints must be numbers by name"):
            study.tell(number, 1.0, constraints=constraints)
    for rungs in (3, [1.0], {math.nan: 1.0}):
        with pytest.raises(ValueError, match="rungs must be numbers by"):
            study.add(configuration, 1.0, rungs=rungs)
    assert study.is_running(number) and len(study.trials) == 1


def test_the_branch_of_an_enqueued_configuration_is_kept() -> None:
    space = SearchSpace(
        {"kind": Categorical(("a", "b")), "depth": Integer(1, 9), "seed": Constant(7)},
        [Condition("depth", "kind", ("b",))],
    )
    study = study_of(space)
    depths = range(1, 7)
    given = [{"kind": "a"}, {"kind": "b"}, {"kind": "a", "depth": 3, "seed": 7}]
    for wanted in [*given, *({"depth": depth} for depth in depths)]:  # of the branch that has it
        study.enqueue(wanted)
    configurations = [configuration for _, configuration in study.ask_batch(3 + len(depths))]
    assert configurations[0] == configurations[2] == {"kind": "a", "seed": 7}
    assert configurations[1].keys() == {"kind", "depth", "seed"}
    assert configurations[3:] == [{"kind": "b", "depth": d, "seed": 7} for d in depths]
    with pytest.raises(ValueError, match="seed must be 7"):
        study.enqueue({"kind": "a", "seed": 8})
    wider = SearchSpace({**space.domains, "x": Float(0.0, 1.0)}, space.conditions)
    partial = study_of(wider, valid=lambda c: c["x"] < 3)
    partial.enqueue({"kind": "a", "depth": 3})
    partial.enqueue({"x": 9.0})
    assert partial.ask_batch(2)[0][1].keys() == {"kind", "seed", "x"}
    number = partial.add({"kind": "a", "depth": 3, "x": 0.5}, 1.0)
    assert partial.trials[number].configuration == {"kind": "a", "x": 0.5}
    assert partial.stats["invalid"] == 1
    layers = {"n": Integer(1, 3), "width": Integer(1, 99)}
    deep = study_of(SearchSpace(layers, [RangeCondition("width", "n", low=2)]))
    for _ in range(4):
        deep.enqueue({"n": 7})  # out of range
    assert all("width" in configuration for _, configuration in deep.ask_batch(4))


def test_a_stopped_trial_counts_by_what_it_reported() -> None:
    study = study_of(direction="minimize")
    study.ask_batch(4)
    for number, last in enumerate([9, 3, 9]):
        for step in (1, 3, 9):
            if step <= last:
                study.report(number, step, step + number)
    study.stop(0)
    study.stop(1)
    study.tell(2, 20.0)
    study.stop(3)
    states = [trial.state.value for trial in study.trials]
    assert states == ["complete", "pruned", "complete", "pruned"]
    assert [trial.value for trial in study.trials] == [9.0, None, 20.0, None]
    assert study.trials[1].rungs == {1.0: 2.0, 3.0: 4.0}
    assert study.best.value == 9.0
    for number in range(4):
        assert not study.is_running(number)
        with pytest.raises(ValueError, match="not told before"):
            study.report(number, 1, 0.0)
    # As soon as another trial gets further, the one that was furthest is a stopped one.
    study.ask()
    study.report(4, 27, 1.0)
    assert study.trials[0].state is TrialState.PRUNED
    assert study.trials[4].state is TrialState.RUNNING and study.is_running(4)


def test_what_was_evaluated_elsewhere_is_known() -> None:
    study = study_of(GRID, direction="minimize")
    study.add({"a": 0, "b": "u"}, 1.5, state="complete")
    study.add({"a": 1, "b": "u"}, None)
    study.add({"a": 2, "b": "u"}, 3.0, state=TrialState.PRUNED, rungs={1: 2.0})
    study.add({"a": 2, "b": "v"}, math.nan, rungs={1: 4.0})
    study.add({"a": 7, "b": "v"}, 0.5)  # out of range
    states = "complete failed pruned failed complete"
    assert [trial.state.value for trial in study.trials] == states.split()
    assert study.best == Trial({"a": 7, "b": "v"}, TrialState.COMPLETE, 0.5)
    with pytest.raises(ValueError, match=r"state must be a TrialState, or one of .*'done'"):
        study.add({"a": 0, "b": "u"}, 1.0, state="done")
    asked = [tuple(study.ask()[1].values()) for _ in range(14)]
    assert len(set(asked)) == 14
    assert not set(asked) & {(0, "u"), (1, "u"), (2, "u"), (2, "v")}
    assert study.is_exhausted


def test_a_finite_space_is_exhausted_once_all_was_asked_for() -> None:
    study, repeating = study_of(GRID), study_of(GRID, allow_duplicates=True)
    for _ in range(18):
        assert not study.is_exhausted
        study.ask()
        repeating.ask()
    assert study.is_exhausted and not repeating.is_exhausted
    study.enqueue({"a": 0, "b": "u"})
    assert not study.is_exhausted


def test_a_space_without_parameters_is_never_exhausted() -> None:
    study = study_of(SearchSpace({"seed": Constant(7)}))
    for _ in range(6):
        number, configuration = study.ask()
        assert configuration == {"seed": 7}
        study.tell(number, 1.0)
    assert not study.is_exhausted


@pytest.mark.usefixtures("few_candidates")
def test_several_objectives_push_the_front() -> None:
    extremes = []
    for seed in range(3):
        study = study_of(direction=["minimize", "maximize"], seed=seed, n_startup_trials=6)
        for _ in range(20):
            number, c = study.ask()
            # What is best lies between (0, 0) and (1, 1), where x = y.
            near = c["x"] ** 2 + c["y"] ** 2
            far = (c["x"] - 1) ** 2 + (c["y"] - 1) ** 2
            study.tell(number, (near, -far))
        front = study.best_trials
        assert study.stats["model"] == study.stats["universal-prior"] == 7
        off = [abs(t.configuration["x"] - t.configuration["y"]) for t in front]
        assert len(front) >= 4 and sorted(off)[len(off) // 2] < 0.4
        nearness, farness = ([t.objectives[place] for t in front] for place in (0, 1))
        extremes.append((min(nearness), max(farness)))
    # The ends of the front are found in most studies of this length.
    nearest, farthest = (sorted(ends)[1] for ends in zip(*extremes, strict=True))
    assert nearest < 0.3 and farthest > -0.3
    with pytest.raises(ValueError, match="best_trials"):
        _ = study.best


def test_values_of_several_objectives_are_checked() -> None:
    study = AskTell(PLANE, direction=["minimize", "maximize"], seed=0)
    number, _ = study.ask()
    for value in (1.0, (1.0,), (1.0, "a"), (1.0, 2.0, 3.0)):
        with pytest.raises(ValueError, match="value must be 2 numbers"):
            study.tell(number, value)
    with pytest.raises(ValueError, match="directions must be one for a report"):
        study.report(number, 1, 0.5)
    study.tell(number, (1.0, math.nan))
    assert study.trials[0].state is TrialState.FAILED
    study.tell(study.ask()[0], np.array([1.0, 2.0]))
    assert study.trials[1].objectives == (1.0, 2.0)


def test_a_trial_can_run_again() -> None:
    study = study_of(direction="minimize")
    study.ask_batch(3)
    study.tell(0, None)
    study.report(1, 5, 0.5)
    study.stop(1)
    study.report(2, 5, 0.5)
    for number in range(3):
        study.restart(number)
        assert study.is_running(number)
    assert all(trial.rungs == {} for trial in study.trials)
    study.report(1, 1, 2.0)
    study.report(1, 2, 3.0)
    study.restart(1, 2)  # from a checkpoint of step 1
    assert study.trials[1].rungs == {1.0: 2.0}
    study.tell(0, 1.0)
    assert study.best.value == 1.0
    with pytest.raises(ValueError, match="number must be"):
        study.restart(3)


def test_a_trial_that_crashed_far_along_makes_no_other_pruned() -> None:
    study = study_of(direction="minimize")
    study.ask_batch(2)
    study.report(0, 3, 0.5)
    study.stop(0)
    study.report(1, 9, 0.1)
    study.tell(1, None)
    assert [trial.state.value for trial in study.trials] == ["complete", "failed"]
    assert study.best.value == 0.5


def test_integers_beyond_the_floats_are_infinite() -> None:
    study = study_of(direction=["minimize", "maximize"])
    study.add({"x": 0.0, "y": 0.0}, (10**400, -(10**400)), constraints={"memory": 10**400})
    assert study.trials[0].objectives == (math.inf, -math.inf)
    assert study.trials[0].constraints == {"memory": math.inf}

    study = study_of()
    number, _ = study.ask()
    study.report(number, 1, -(10**400))
    study.tell(number, 10**400)
    assert study.trials[number].value == math.inf
    assert study.trials[number].rungs == {1.0: -math.inf}
    number, _ = study.ask()
    with pytest.raises(ValueError, match="step must be a finite number"):
        study.report(number, 10**400, 0.0)
