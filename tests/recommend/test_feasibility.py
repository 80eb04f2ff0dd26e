import logging
import math

import numpy as np
import pytest
import torch
from presets import QUICK

from dre_plugins.recommend import Recommender, RecommenderSettings, Trial, TrialState
from dre_plugins.recommend.evidence import (
    MAX_MODELLED,
    Constraint,
    constraints_of,
    merged_constraints,
)
from dre_plugins.recommend.gain_weights import ConstraintModel, GainWeights, targets_of
from dre_plugins.recommend.settings import Settings
from dre_plugins.recommend.trials import feasible
from dre_plugins.space import Float, SearchSpace
from dre_plugins.study import AskTell

PLANE = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})


def trial(**constraints: float) -> Trial:
    return Trial({"x": 0.5, "y": 0.5}, TrialState.COMPLETE, 0.0, constraints=constraints)


def spread(n: int, violations_of) -> list[Trial]:
    """Return trials anywhere, whose values are x + y."""
    rows = np.random.default_rng(0).random((n, 2)).tolist()
    return [
        Trial({"x": x, "y": y}, TrialState.COMPLETE, x + y, constraints=violations_of(x, y))
        for x, y in rows
    ]


def tuned(violation_of, n: int = 30, seed: int = 0, **settings) -> AskTell:
    """Maximise x + y, under constraints."""
    options = {"settings": Settings(preset=QUICK), "n_startup_trials": 8, **settings}
    study = AskTell(PLANE, direction="maximize", seed=seed, **options)
    for _ in range(n):
        number, c = study.ask()
        study.tell(number, c["x"] + c["y"], constraints=violation_of(c))
    return study


def test_what_is_known_of_each_constraint() -> None:
    history = [trial(b=-1.0, a=math.nan), trial(a=1.0), trial(), trial(a=-2.0, b=0.0)]
    a, b = constraints_of(history)  # by name, whatever the order in which trials state them
    assert a.trials.tolist() == [1, 3] and a.is_met.tolist() == [False, True]
    assert b.trials.tolist() == [0, 3] and b.is_met.all()
    assert feasible(history).tolist() == [False, False, False, True]


def test_many_constraints_are_joined_where_they_order_trials_alike() -> None:
    rng = np.random.default_rng(0)
    planes = rng.normal(size=(5, 40)) + 0.1
    # Eight copies of each, of scales of their own.
    copies = [
        Constraint(np.arange(40), scale * np.sinh(plane))
        for scale in 10.0 ** rng.uniform(-3.0, 3.0, 8)
        for plane in planes
    ]
    several = merged_constraints(copies, 40)
    assert len(several) == len(planes)
    for alone in copies[:5]:
        assert any(
            np.array_equal(np.argsort(alone.violations), np.argsort(other.violations))
            and np.array_equal(alone.is_met, other.is_met)
            for other in several
        )
    assert merged_constraints(copies[:MAX_MODELLED], 40) == copies[:MAX_MODELLED]


def test_joined_constraints_are_met_where_all_are() -> None:
    rng = np.random.default_rng(1)
    told = rng.normal(size=(100, 30)) - 1.0
    told[rng.random(told.shape) < 0.01] = math.nan
    history = [trial(**{f"c{i}": v for i, v in enumerate(column)}) for column in told.T]
    several = merged_constraints(constraints_of(history), 30)
    assert len(several) == MAX_MODELLED
    violated = {t for each in several for t in each.trials[~each.is_met].tolist()}
    assert violated == set(np.flatnonzero((told > 0.0).any(axis=0)).tolist())
    met = set.intersection(*(set(each.trials[each.is_met].tolist()) for each in several))
    assert met == set(np.flatnonzero((told <= 0.0).all(axis=0)).tolist())


def test_a_constraint_is_learnt() -> None:
    study = tuned(lambda c: {"ball": (c["x"] ** 2 + c["y"] ** 2) - 0.25})
    late = study.trials[20:]
    # The optimum lies on the boundary, 0.5 * sqrt(2) = 0.707.
    assert np.mean([abs(t.constraints["ball"]) < 0.01 for t in late]) >= 0.5
    assert study.best.value > 0.70
    assert study.best.constraints["ball"] <= 0.0


def test_feasibility_comes_first() -> None:
    """Two percent of the space is feasible, where the objective is worst."""
    study = tuned(lambda c: {"corner": max(c["x"], c["y"]) - 0.14})
    assert any(t.constraints["corner"] <= 0 for t in study.trials)
    assert study.best.constraints["corner"] <= 0


@pytest.mark.parametrize(
    ("violations", "least"),
    [
        (lambda c: {"x": c["x"] - 0.3, "y": 0.6 - c["y"], "both": c["y"] - 0.9}, 1.15),  # of 1.2
        (lambda c: {"crash": 1.0 if c["x"] > 0.7 else -1.0}, 1.69),  # a yes or no; of 1.7
    ],
)
def test_the_best_trial_meets_all_constraints(violations, least: float) -> None:
    study = tuned(violations)
    assert study.best.value > least
    assert all(violation <= 0.0 for violation in study.best.constraints.values())


@pytest.mark.parametrize(
    "violations",
    [
        # What everything meets.
        (lambda c: {"easy": -1.0}, lambda c: {}),
        # The unit.
        (lambda c: {"l": c["x"] - 0.7}, lambda c: {"l": 2.0**-600 * (c["x"] - 0.7)}),
    ],
)
def test_what_changes_nothing(violations) -> None:
    one, other = (tuned(violation_of, n=14).trials for violation_of in violations)
    assert [t.configuration for t in one] == [t.configuration for t in other]


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1e300])
def test_hard_violations_are_survived(value, caplog) -> None:
    study = tuned(lambda c: {"a": value if c["x"] > 0.5 else -1.0}, n=14)
    assert study.stats["fallbacks"] == 0
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


def test_nothing_feasible_is_no_best_trial() -> None:
    study = tuned(lambda c: {"never": 1.0}, n=3)
    with pytest.raises(ValueError, match="feasible"):
        _ = study.best
    assert study.best_trials == ()


def test_a_batch_under_constraints_is_diverse() -> None:
    history = spread(12, lambda x, y: {"ball": x * x + y * y - 0.5})
    settings = RecommenderSettings(preset=QUICK, n_startup_trials=4)
    suggestions = Recommender(PLANE, settings, seed=0).suggest(history, 4, index=12)
    assert {suggestion.source for suggestion in suggestions} == {"model", "universal-prior"}
    assert len({tuple(s.configuration.values()) for s in suggestions}) == 4


@pytest.mark.parametrize("acquisition", ["lcb", "average-rank", "thompson"])
def test_negative_acquisitions_respect_constraints_too(acquisition) -> None:
    settings = Settings(preset=QUICK, acquisition=acquisition)
    study = tuned(lambda c: {"half": c["x"] - 0.5}, n=20, settings=settings)
    assert study.stats["fallbacks"] == 0
    late = study.trials[12:]
    assert np.mean([t.constraints["half"] < 0.1 for t in late]) >= 0.5
    assert study.best.value > 1.2  # of 1.5


@pytest.mark.parametrize(
    ("violations", "meets"),
    [
        ([-3.0, -1.0, 2.0, 4.0], [True, True, False, False]),
        ([0.0, 1.0, 0.0, 1.0], [True, False, True, False]),  # of a yes or no
        ([-math.inf, -1.0, 1e300, math.inf], [True, True, False, False]),
        ([5.0, 5.0, 5.0], [False] * 3),
        ([math.inf, math.inf], [False] * 2),
        ([2.0**-1074, 0.0], [False, True]),
        # Between met ones that are as good as at the limit, and others far from it.
        ([0.0] * 9 + [1.0] + [-3.0] * 9, [True] * 9 + [False] + [True] * 9),
        ([1.0] * 9 + [-2.0] + [3.0] * 9, [False] * 9 + [True] + [False] * 9),
    ],
)
def test_what_meets_a_constraint_lies_beyond_the_boundary(violations, meets) -> None:
    constraint = Constraint(np.arange(len(violations)), np.array(violations))
    targets, boundary = targets_of(constraint)
    assert (targets > boundary).tolist() == meets
    assert bool(torch.isfinite(targets).all())
    for length in range(2, 9):  # however few are read
        assert {*constraint.nearest(length).is_met} == {*meets}


def test_of_many_trials_those_near_the_boundary_are_read() -> None:
    constraint = Constraint(np.arange(101), np.arange(-50.0, 51.0))
    nearest = constraint.nearest(20)
    assert len(nearest.trials) == 20 and set(range(-4, 5)) <= set(nearest.violations)
    assert np.abs(nearest.violations).max() == 50.0


@pytest.mark.parametrize("n_constraints", [1, 30])
def test_probabilities_are_learnt_from_margins(n_constraints) -> None:
    """With 2 of 16 trials feasible, all 16 tell where the boundary is."""
    units = np.random.default_rng(2).random((16, 2))
    violations = units.sum(1) - 0.45
    assert (violations <= 0.0).sum() == 2
    constraints = [Constraint(np.arange(16), violations)] * n_constraints
    models = [ConstraintModel(PLANE, units, constraint) for constraint in constraints]
    asked = np.array([[0.1, 0.1], [0.35, 0.3], [0.8, 0.7]])
    chances = np.exp(GainWeights(PLANE, models, None).logs_at(asked))
    assert chances[0] > 0.9**n_constraints
    assert chances[1] < 0.1 and chances[2] < 0.01
