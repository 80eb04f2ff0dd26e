"""Constraints are met, violated or unknown, and what that means for the search."""

import math
from functools import partial

import numpy as np
import optuna
import pytest
from test_feasibility import PLANE, QUICK

from dre_plugins.adapters.optuna import DRESampler
from dre_plugins.recommend import RecommenderSettings, Trial, TrialState
from dre_plugins.recommend.evidence import Evidence
from dre_plugins.recommend.settings import Settings
from dre_plugins.recommend.trials import ConstraintState, constraint_states
from dre_plugins.study import AskTell

MET, VIOLATED, UNKNOWN = ConstraintState.MET, ConstraintState.VIOLATED, ConstraintState.UNKNOWN
SETTINGS = RecommenderSettings(preset=QUICK, n_startup_trials=4)


def trial(value: float | None = 0.0, **constraints: float) -> Trial:
    state = TrialState.FAILED if value is None else TrialState.COMPLETE
    return Trial({"x": 0.5, "y": 0.5}, state, value, constraints=constraints)


def leaders(history: list[Trial]) -> list[int]:
    evidence = Evidence.of(PLANE, history, weights=np.ones(1), failed="worst")
    return sorted(evidence.lists[0].trials[evidence.may_be_incumbent].tolist())


def test_absent_and_not_a_number_are_both_unknown() -> None:
    history = [trial(a=-1.0, b=0.0), trial(a=-1.0), trial(a=-1.0, b=math.nan), trial()]
    assert constraint_states(history) == [MET, UNKNOWN, UNKNOWN, UNKNOWN]
    history = [trial(a=1.0), trial(a=1.0, b=math.nan), trial(b=-1.0)]
    assert constraint_states(history) == [VIOLATED, VIOLATED, UNKNOWN]
    assert constraint_states([trial(), trial(None)]) == [MET, MET]


def test_who_may_be_the_incumbent() -> None:
    assert leaders([trial(1.0), trial(2.0), trial(None)]) == [0, 1]
    for crashed in (trial(None), trial(None, a=math.nan)):
        assert leaders([trial(1.0, a=1.0), trial(2.0, a=2.0), crashed]) == []
    assert leaders([trial(1.0, a=1.0), trial(2.0, a=-2.0), trial(3.0)]) == [1]
    # Constraints may be stated by those only that violate them.
    assert leaders([trial(1.0, a=1.0), trial(2.0), trial(3.0)]) == [1, 2]
    # A trial that failed has no value to improve on, whatever it met.
    assert leaders([trial(1.0, a=1.0), trial(None, a=-1.0)]) == []


def test_success_is_a_constraint_if_failures_are_modelled() -> None:
    running = Trial({"x": 0.5, "y": 0.5}, TrialState.RUNNING)
    history = [trial(1.0), running, trial(None), trial(math.nan)]
    of = partial(Evidence.of, PLANE, weights=np.ones(1))
    (failure,) = of(history, failed="model").violated_constraints
    assert failure.trials.tolist() == [0, 2, 3] and failure.is_met.tolist() == [True, False, False]
    assert not of(history[:2], failed="model").violated_constraints
    for failed in ("worst", "ignore"):
        assert not of(history, failed=failed).violated_constraints


@pytest.mark.usefixtures("few_candidates")
def test_a_search_for_something_feasible_is_not_misled_by_crashes() -> None:
    """Trials crash where y is large, and nothing but small x is feasible."""

    def found(seed: int) -> float:
        options = {"settings": Settings(preset=QUICK), "n_startup_trials": 8}
        study = AskTell(PLANE, direction="maximize", seed=seed, **options)
        for _ in range(20):
            number, c = study.ask()
            crashes = c["y"] > 0.8
            limit = {} if crashes else {"limit": c["x"] - 0.05}
            study.tell(number, None if crashes else c["x"] + c["y"], constraints=limit)
        late = study.trials[8:]
        return float(np.mean([t.constraints.get("limit", 1.0) <= 0.0 for t in late]))

    assert np.mean([found(seed) for seed in range(3)]) > 0.3


def test_what_is_best_meets_all_constraints() -> None:
    study = AskTell(PLANE, direction="maximize", seed=0)
    for value, constraints in [(1.0, {"c": -1.0}), (2.0, {"c": 1.0}), (3.0, {}), (4.0, None)]:
        number, _ = study.ask()
        study.tell(number, value, constraints=constraints)
    assert study.best.value == 1.0 and len(study.best_trials) == 1


@pytest.mark.skipif(not hasattr(optuna.Trial, "set_constraint"), reason="new in Optuna 5")
def test_a_crash_in_optuna_has_unknown_constraints() -> None:
    """A trial that raises states no constraint: the search goes on for a feasible one."""
    sampler = DRESampler(seed=0, settings=Settings(preset=QUICK), n_startup_trials=6)
    study = optuna.create_study(direction="maximize", sampler=sampler)

    def objective(trial: optuna.Trial) -> float:
        x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
        if trial.number == 3:
            raise RuntimeError("out of memory")
        trial.set_constraint("limit", x + 0.1)  # never met
        return x + y

    study.optimize(objective, n_trials=14, catch=RuntimeError)
    assert np.mean([trial.params["x"] for trial in study.trials[8:]]) < 0.2
