"""Conversion: distributions → domains → values, Optuna's trials → the recommender's, absences."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState as OptunaState, create_trial

from dre_plugins.adapters.optuna import DRESampler, claims, conversion
from dre_plugins.adapters.optuna.history import trial_of
from dre_plugins.recommend.define_by_run import Absences, absences_of
from dre_plugins.recommend.trials import TrialState
from dre_plugins.space import UnsupportedDomainError

UNIT = FloatDistribution(0.0, 1.0)


def frozen(
    params: dict[str, tuple[Any, BaseDistribution]],
    state: OptunaState = OptunaState.COMPLETE,
    value: float | None = 0.0,
    claim: Any = None,
    **arguments: Any,
) -> FrozenTrial:
    attributes = {} if claim is None else {"dre:suggestion": claim}
    return create_trial(
        state=state,
        value=value if state is OptunaState.COMPLETE else None,
        params={name: pair[0] for name, pair in params.items()},
        distributions={name: pair[1] for name, pair in params.items()},
        system_attrs=attributes,
        **arguments,
    )


# Whatever Optuna accepts.
ACCEPTED: list[BaseDistribution] = [
    FloatDistribution(-1.0, 3.0),
    FloatDistribution(1e-9, 1e3, log=True),
    FloatDistribution(0.0, 1.0, step=0.1),
    FloatDistribution(-10.2, 10.2, step=0.1),
    FloatDistribution(0.3, 0.3),
    FloatDistribution(-1e300, 1e300),
    IntDistribution(-5, 7),
    IntDistribution(1, 1000, log=True),
    IntDistribution(0, 10, step=5),
    IntDistribution(-3, -3),
    IntDistribution(0, 10**20),
    CategoricalDistribution([None, True, 1, 2.5, "a"]),
    CategoricalDistribution([1, True, 1.0]),
    CategoricalDistribution([16, 32, 64, 128]),
    CategoricalDistribution([float("nan"), 0.0, float("inf")]),
    CategoricalDistribution(["only"]),
    CategoricalDistribution(list(range(100))),
    CategoricalDistribution([str(i) for i in range(100)]),
]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    ACCEPTED.append(FloatDistribution(0.0, 1.0, step=0.3))  # Optuna lowers the upper end to 0.9
    ACCEPTED.append(CategoricalDistribution([(1, 2), [3], {"k": 4}]))  # unhashable, in memory


def is_exact(distribution: BaseDistribution, value: Any) -> bool:
    """Return whether Optuna would accept the value, and its type is the native one."""
    if isinstance(distribution, CategoricalDistribution):
        return any(value is choice for choice in distribution.choices)
    wanted = int if isinstance(distribution, IntDistribution) else float
    return type(value) is wanted and distribution._contains(distribution.to_internal_repr(value))


@pytest.mark.parametrize("distribution", ACCEPTED, ids=repr)
@pytest.mark.parametrize("unit", [0.0, 0.3, 0.5, 0.77, 1.0])
def test_every_unit_gives_a_value_that_optuna_accepts(
    distribution: BaseDistribution, unit: float
) -> None:
    value = conversion.domain_of("x", distribution).from_unit(unit)
    assert is_exact(distribution, value), value


def test_unknown_distributions_are_refused_by_name() -> None:
    class Strange(BaseDistribution):
        def to_internal_repr(self, param_value_in_external_repr: Any) -> float:
            return 0.0

        def single(self) -> bool:
            return False

        def _contains(self, param_value_in_internal_repr: float) -> bool:
            return True

    with pytest.raises(UnsupportedDomainError, match=r"'x'.*FloatDistribution"):
        conversion.domain_of("x", Strange())


def test_both_ends_of_an_integer_range_are_as_likely_as_the_middle() -> None:
    study = optuna.create_study(sampler=DRESampler(seed=0, n_startup_trials=10**6))
    for _ in range(128):
        study.tell(study.ask({"x": IntDistribution(0, 3), "y": UNIT}), 0.0)
    counts = [sum(trial.params["x"] == value for trial in study.trials) for value in range(4)]
    assert all(abs(count - 32) <= 0.05 * 32 for count in counts), counts


# --- trials ------------------------------------------------------------------------------------


def test_one_is_not_true_and_nan_is_a_choice() -> None:
    choices = CategoricalDistribution([1, True, 1.0])
    numbers = [conversion.internal_number(choices, value) for value in (1, True, 1.0)]
    assert numbers == [0.0, 1.0, 2.0]
    with_nan = CategoricalDistribution([0.0, float("nan")])
    assert conversion.internal_number(with_nan, float("nan")) == 1.0
    # Optuna's storages keep 1 for True; the claim knows better.
    trial = frozen({"x": (1, choices)}, claim={"x": 1.0})
    assert conversion.configuration_of(trial, {"x": choices})["x"] is True


def test_a_running_trial_holds_what_it_has_claimed() -> None:
    space = {"x": UNIT, "y": UNIT}
    trial = frozen({"x": (0.5, UNIT)}, OptunaState.RUNNING, claim={"x": 0.1, "y": 0.2})
    assert conversion.configuration_of(trial, space) == {"x": 0.5, "y": 0.2}
    trial.state = OptunaState.COMPLETE
    assert conversion.configuration_of(trial, space) == {"x": 0.5}


def test_long_claims_are_read_whole_and_those_of_others_not_at_all() -> None:
    study = optuna.create_study(storage="sqlite://")
    study.ask()
    numbers = {f"parameter_{i}": i / 7 for i in range(300)}
    trial = study.get_trials(deepcopy=False)[0]
    assert claims.claim(study, trial, numbers) == ""
    assert conversion.internal_numbers(study.trials[0]) == numbers
    claims.claim(study, trial, {"x": 1.0})
    assert conversion.internal_numbers(study.trials[0]) == {"x": 1.0}
    for strange in ("x", [1.0], {"x": "a"}):
        assert conversion.internal_numbers(frozen({}, OptunaState.RUNNING, claim=strange)) == {}


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (OptunaState.COMPLETE, TrialState.COMPLETE),
        (OptunaState.PRUNED, TrialState.PRUNED),
        (OptunaState.FAIL, TrialState.FAILED),
        (OptunaState.RUNNING, TrialState.RUNNING),
    ],
)
@pytest.mark.parametrize(("direction", "sign"), [("MINIMIZE", -1.0), ("MAXIMIZE", 1.0)])
def test_states_values_and_rungs(
    state: OptunaState, expected: TrialState, direction: str, sign: float
) -> None:
    trial = frozen({"x": (0.5, UNIT)}, state, value=3.0, intermediate_values={0: 1.0, 4: 2.0})
    converted = trial_of(trial, {"x": UNIT, "y": UNIT}, [StudyDirection[direction]])
    assert converted.configuration == {"x": 0.5}
    assert converted.state is expected
    assert converted.value == (sign * 3.0 if state is OptunaState.COMPLETE else None)
    assert converted.rungs == {0: sign * 1.0, 4: sign * 2.0}


def test_the_union_keeps_order_and_takes_the_newest_range() -> None:
    wide = FloatDistribution(0.0, 5.0)
    trials = [
        frozen({"b": (0.1, UNIT), "a": (0.2, UNIT), "one": (1, IntDistribution(1, 1))}),
        frozen({}, OptunaState.FAIL),
        frozen({"c": (0.3, UNIT)}, OptunaState.RUNNING),
        frozen({"b": (3.0, wide)}, OptunaState.FAIL),
    ]
    union = conversion.union_of_distributions(trials)
    assert list(union) == ["b", "a", "c"]
    assert union["b"] == wide


def test_a_parameter_of_one_value_is_a_constant_after_ten_trials() -> None:
    point = FloatDistribution(0.5, 0.5)

    def union(*distributions: FloatDistribution) -> dict[str, FloatDistribution]:
        trials = [frozen({"x": (d.low, d)}) for d in distributions]
        return conversion.union_of_distributions(trials)

    assert union(UNIT, *[point] * 9) == {"x": UNIT}
    assert union(UNIT, *[point] * 10) == union(point) == {}


def test_features_span_the_values_of_earlier_ranges_but_those_far_away() -> None:
    trials = [frozen({"x": (x, FloatDistribution(-99, 99))}) for x in (-0.9, -2.0, 6.0, 50.0)]
    history = [trial_of(trial, {"x": UNIT}, [StudyDirection.MINIMIZE]) for trial in trials]
    plain = conversion.learnt_space({"x": UNIT}, trials, history)[0]
    space, counts = conversion.spanning(plain, trials, history)
    assert (space.spans, counts.tolist()) == ({"x": (-2.0, 6.0)}, [True] * 3 + [False])
    units = space.to_units([{"x": x} for x in (-2.0, 0.0, 6.0)])
    assert space.features(units)[:, 0].tolist() == [0.0, 0.25, 1.0]
    assert conversion.spanning(plain, trials, history[:1])[0] is plain
    a, b, c = (frozen({"x": (0.5, FloatDistribution(0, high))}) for high in (1, 2, 3))
    for unsettled in ([a], [a, b], [a, b, a, a], [a, b, a, c, c]):
        assert conversion.spanning(plain, unsettled, history)[0] is plain
    space, counts = conversion.spanning(plain, trials, history[3:])
    assert space is plain and counts.all()


# --- conditions --------------------------------------------------------------------------------

FAMILY = CategoricalDistribution(["svm", "forest"])
DEPTH = IntDistribution(1, 9)
CONDITIONAL = {"family": FAMILY, "C": UNIT, "depth": DEPTH}
SVM = frozen({"family": ("svm", FAMILY), "C": (0.5, UNIT)})
FOREST = frozen({"family": ("forest", FAMILY), "depth": (3, DEPTH)})


def active_names(trials: list[FrozenTrial], **values: Any) -> set[str]:
    history = [trial_of(trial, CONDITIONAL, [StudyDirection.MINIMIZE]) for trial in trials]
    space = conversion.learnt_space(CONDITIONAL, trials, history)[0]
    configuration = {"C": 0.5, "depth": 3, **values}
    return set(space.to_configuration(space.to_units([configuration])[0]))


def test_conditions_are_learnt_from_what_trials_asked_for() -> None:
    assert active_names([SVM, FOREST], family="svm") == {"family", "C"}
    assert active_names([SVM, FOREST], family="forest") == {"family", "depth"}


@pytest.mark.parametrize(
    ("family", "state", "claim"),
    [
        ("svm", OptunaState.FAIL, None),
        ("svm", OptunaState.RUNNING, None),
        ("forest", OptunaState.RUNNING, {"family": 1.0, "C": 0.5, "depth": 3.0}),
    ],
)
def test_what_stopped_early_or_was_claimed_only_shows_no_conditions(family, state, claim) -> None:
    early = frozen({"family": (family, FAMILY)}, state, claim=claim)
    assert active_names([SVM, FOREST, early], family="svm") == {"family", "C"}


def test_a_branch_that_always_fails_is_known_too() -> None:
    failed = frozen({"family": ("svm", FAMILY), "C": (0.5, UNIT)}, OptunaState.FAIL)
    assert active_names([failed, FOREST], family="forest") == {"family", "depth"}


# --- what trials show by the parameters that they did not ask for ------------------------------

NAN = float("nan")
C, P, F, R = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAILED, TrialState.RUNNING)


def evidence(rows: Sequence[Sequence[float]], states: Sequence[TrialState]) -> Absences:
    return absences_of(np.array(rows, dtype=np.float64), states)


def test_nothing_and_no_parameters() -> None:
    nothing = absences_of(np.empty((0, 2)), [])
    assert not len(nothing.is_whole) and nothing.since.tolist() == [0, 0]
    assert absences_of(np.empty((2, 0)), [C, F]).is_whole.tolist() == [True, True]


@pytest.mark.parametrize("state", [P, F, R])
def test_what_stopped_before_it_asked_for_more_shows_nothing(state: TrialState) -> None:
    rows = [[0.1, NAN], [0.1, 0.5], [0.9, 0.5]]
    for order in ([0, 1, 2], [2, 1, 0]):  # whether or not others asked for more before
        states = [state if row == 0 else C for row in order]
        found = evidence([rows[row] for row in order], states)
        assert found.shows_absence.tolist() == [row != 0 for row in order]
        assert not found.since.any()


@pytest.mark.parametrize(
    ("rows", "states", "is_whole", "since"),
    [
        # Those that part at a shared parameter stand for all that agrees with them.
        ([[0.1, NAN, 0.4], [0.9, 0.5, NAN], [0.9, 0.7, NAN]], [C, P, C], [0, 1, 2], [0, 0, 0]),
        # Pruned where all others go on.
        ([[0.1, NAN], [0.9, 0.5]], [P, C], [0, 1], [0, 0]),
        # A second failure of a kind confirms the first, unless it was an accident.
        ([[0.1, NAN], [0.9, 0.5]], [F, C], [1], [0, 0]),
        ([[0.1, NAN], [0.9, 0.5], [0.3, NAN]], [F, C, F], [0, 1, 2], [0, 0]),
        ([[0.1, NAN], [0.9, 0.5], [0.3, NAN], [0.3, 0.2]], [F, C, F, C], [1, 3], [0, 0]),
        # A failure that asked for as much as any.
        ([[0.1, 0.5, NAN], [0.9, NAN, 0.5]], [F, C], [0, 1], [0, 0, 0]),
        # A running trial counts while none asked for more.
        ([[0.1, 0.5], [0.2, 0.5]], [C, R], [0, 1], [0, 0]),
        ([[0.1, 0.5], [0.2, NAN]], [C, R], [0], [0, 0]),
        # Those before a larger space stand for nothing else; the last of several changes counts.
        ([[0.1, NAN], [0.5, NAN], [0.9, NAN], [0.5, 0.3]], [C] * 4, [3], [0, 3]),
        ([[0.1, NAN, NAN], [0.1, 0.5, NAN], [0.1, 0.5, 0.9]], [C] * 3, [2], [0, 2, 2]),
        # One parameter in place of another.
        ([[0.1, 0.2, NAN], [0.9, 0.2, NAN], [0.1, NAN, 0.7]], [C] * 3, [2], [0, 2, 2]),
    ],
)
def test_which_trials_are_whole_and_since_when_a_parameter_may_be_absent(
    rows: Any, states: list[TrialState], is_whole: list[int], since: list[int]
) -> None:
    found = evidence(rows, states)
    assert np.flatnonzero(found.is_whole).tolist() == is_whole
    assert found.since.tolist() == since


def test_an_objective_that_asks_at_random_shows_little() -> None:
    rng = np.random.default_rng(0)
    rows = [[0.5, rng.choice([NAN, 0.1, 0.9])] for _ in range(200)]
    assert evidence(rows, [C] * 200).is_whole.sum() < 10


def test_agreement_is_found_whatever_the_rough_comparison_says() -> None:
    """Against all pairs, one by one."""
    rng = np.random.default_rng(1)
    for _ in range(100):
        units = rng.choice([0.0, 0.01, 0.02, 1.0, NAN, NAN], size=(12, 3))
        states = [(C, P, F)[place] for place in rng.integers(3, size=12)]
        assert evidence(units.tolist(), states).shows_absence.tolist() == expected(units, states)


def expected(units: np.ndarray, states: Sequence[TrialState]) -> list[bool]:
    asked = [frozenset(np.flatnonzero(~np.isnan(row))) for row in units]

    def stopped(t: int) -> bool:
        return any(
            asked[t] < asked[s] and all(units[t, j] == units[s, j] for j in asked[t])
            for s in range(len(units))
        )

    short = [state is not C and stopped(t) for t, state in enumerate(states)]
    shown = []
    for t, state in enumerate(states):
        if state is F:
            alike = sum(
                asked[s] == asked[t] and states[s] is F and not short[s] for s in range(len(units))
            )
            is_largest = not any(other > asked[t] for other in asked)
            shown.append(not short[t] and (alike > 1 or is_largest))
        else:
            shown.append(not short[t])
    return shown
