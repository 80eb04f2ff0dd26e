"""Every domain and argument of Syne Tune: what is suggested, and what is refused."""

import inspect
import math
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

import pytest
from marks import label_of
from presets import TINY
from syne_tune import config_space as cs
from syne_tune.optimizer.scheduler import TrialScheduler
from syne_tune.optimizer.schedulers.single_objective_scheduler import SingleObjectiveScheduler
from syne_tune_loop import ashadre, dre
from syne_tune_rows import FINITE, INFINITE, SPACE, evaluations

from dre_plugins.adapters.syne_tune import (
    ASHADRE,
    DRE,
    MODRE,
    DRESearcher,
    DRETransfer,
    MultiObjectiveDRESearcher,
    prior_from_evaluations,
    recommend,
)
from dre_plugins.adapters.syne_tune.conversion import cast, hyperparameters
from dre_plugins.recommend.settings import Settings
from dre_plugins.space import UnsupportedDomainError
from dre_plugins.space.base import match_key


def config_of(scheduler: TrialScheduler) -> dict[str, Any] | None:
    """Return what a trial would get, after all that the scheduler does to a suggestion."""
    suggestion = scheduler.suggest()
    return None if suggestion is None else suggestion.config


@pytest.mark.parametrize(("domain", "values"), FINITE, ids=[repr(row[0]) for row in FINITE])
def test_every_value_of_a_finite_domain_is_suggested_once(domain: Any, values: list[Any]) -> None:
    scheduler = DRE({"x": domain, "epochs": 3}, "loss", random_seed=0, n_startup_trials=99)
    suggested = []
    while (config := config_of(scheduler)) is not None:
        assert config["epochs"] == 3 and type(config["x"]) is domain.value_type
        suggested.append(config["x"])
        assert len(suggested) <= len(values)
    assert {match_key(value) for value in suggested} == {match_key(value) for value in values}
    assert len(suggested) == len(values)


@pytest.mark.parametrize("domain", INFINITE, ids=label_of)
def test_values_of_a_range_are_in_it(domain: Any) -> None:
    searcher = DRESearcher(
        {"x": domain}, random_seed=1, n_startup_trials=6, settings=Settings(preset=TINY)
    )
    low, high = domain.lower, domain.upper
    for number in range(14):  # the last ones are the model's, which goes for a bound
        value = searcher.suggest()["x"]
        assert low <= value <= high and domain.is_valid(value)
        assert type(value) is domain.value_type and domain.cast(value) == value
        searcher.on_trial_complete(number, {"x": value}, -value)
    assert searcher.stats["model"] == 8 and searcher.stats["fallbacks"] == 0


def test_a_space_of_constants_gives_them_for_ever() -> None:
    space = {"epochs": 3, "nested": {"a": [1, {"b": 2}]}, "nothing": None}
    scheduler = DRE(space, "loss", random_seed=0, settings=Settings(preset=TINY))
    for number in range(13):
        config = config_of(scheduler)
        assert config == space
        scheduler.searcher.on_trial_complete(number, config, 1.0)


REFUSED: list[tuple[Any, str]] = [
    ({"lr": cs.uniform(0, 1)}, "'opt/lr'|top level"),
    ([cs.uniform(0, 1)], "top level"),
    (cs.Float(0, 1).normal(), "normal"),
    (cs.Domain(), "Float, Integer"),
    (cs.choice([max, min]), "names of"),
    (cs.choice([None]), "names of"),
    (cs.qrandint(0, 10, 2.5), r"step 2\.5"),  # type: ignore[arg-type]
    (cs.qrandint(0, 10, 0), "step 0"),
    (cs.qrandint(1, 2, 5), "no multiple of 5 from 1 to 2"),
    (cs.reverseloguniform(0, 0.5).quantized(0.25), "reverse-log"),
]


@pytest.mark.parametrize(("domain", "message"), REFUSED, ids=[label_of(row[0]) for row in REFUSED])
@pytest.mark.parametrize(
    ("kind", "arguments"), [(DRESearcher, ()), (DRE, ("loss",)), (ASHADRE, ("loss", "epoch", 9))]
)
def test_what_cannot_be_searched_is_refused_at_once(domain, message, kind, arguments) -> None:
    with pytest.raises(UnsupportedDomainError, match=rf"(?s)'x'.*({message})"):
        kind({"x": domain, "y": cs.uniform(0, 1)}, *arguments)


POINTS: list[tuple[Any, Any, Any]] = [
    (cs.uniform(0, 1), 1, 1.0),
    (cs.uniform(0, 1), 7.0, 7.0),  # out of its range: as it is
    (cs.randint(0, 5), 3.0, 3),
    (cs.randint(0, 5), -2, -2),
    (cs.quniform(0, 1, 0.25), 0.3, 0.3),
    (cs.finrange(0.0, 1.0, 5), 0.3, 0.25),  # Syne Tune hands out the nearest value
    (cs.logordinal([1, 2, 8]), 100, 8),
    (cs.choice([0.1, 0.2]), "0.1", 0.1),
    (cs.choice([[1], [2]]), (2,), [2]),
    (cs.choice(["a", "b"]), "b", "b"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("domain", "given", "expected"), POINTS, ids=label_of)
def test_points_become_what_the_scheduler_hands_out(domain, given, expected) -> None:
    space = {"x": domain, "y": cs.randint(0, 9), "c": 3}
    point = {"x": given, "y": 4, "c": 3}
    config = config_of(DRE(space, "loss", points_to_evaluate=[point]))
    assert config == {"x": expected, "y": 4, "c": 3} and type(config["x"]) is type(expected)
    theirs = SingleObjectiveScheduler(
        space, "loss", searcher="random_search", searcher_kwargs={"points_to_evaluate": [point]}
    )
    assert config_of(theirs) == config


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([{}, {"z": 1}], r"\['x', 'k', 'c'\].*'z'"),
        ([{}, {"k": "c"}], r"k must be .*choice\(\['a', 'b'\]\).*'c'"),
        ([{}, {"x": "fast"}], r"x must be .*uniform.*'fast'"),
        ([{}, {"x": None}], r"x must be .*uniform.*None"),
        ([{}, {"x": float("nan")}], "nan"),
        ([{}, {"c": 4}], "c must be 3, which is a constant, got 4"),
        *(
            (points, "points_to_evaluate must be a list of dictionaries")
            for points in ({"x": 0.5}, {}, "x", ["x"], 3)
        ),
    ],
    ids=label_of,
)
def test_points_that_can_never_be_are_refused_at_once(points: Any, message: str) -> None:
    space = {"x": cs.uniform(0, 1), "k": cs.choice(["a", "b"]), "c": 3}
    with pytest.raises(ValueError, match=message):
        DRE(space, "loss", points_to_evaluate=points)


def test_cast_keeps_what_is_no_domain() -> None:
    space = {"x": cs.randint(0, 5), "k": cs.choice(["a"]), "c": 3}
    assert cast({"x": 2.0, "c": "z", "other": 1}, space) == {"x": 2, "c": "z", "other": 1}
    assert hyperparameters({"x": 2.0, "c": 3, "other": 1}, space) == {"x": 2}


def test_log_scales_are_searched_as_such() -> None:
    space = {"lr": cs.loguniform(1e-6, 1.0), "m": cs.reverseloguniform(0.0, 0.999999)}
    searcher = DRESearcher(space, random_seed=0, n_startup_trials=99)
    drawn = [searcher.suggest() for _ in range(64)]
    assert 28 <= sum(configuration["lr"] < 1e-3 for configuration in drawn) <= 36
    assert 28 <= sum(configuration["m"] < 0.999 for configuration in drawn) <= 36


# ---- arguments: bad ones are refused, and their order is Syne Tune's

PAST = {"t": evaluations()}
modre = partial(MODRE, SPACE, ["loss", "time"])


@pytest.mark.usefixtures("small_priors")
@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: DRE(SPACE, ["loss", "time"]), r"metric must be the name of one metric.*time"),
        (lambda: ASHADRE(SPACE, ["loss"], "epoch", 9), "metric must be the name of one metric"),
        (lambda: DRE(SPACE, "loss", random_seed=-1), "random_seed must be"),
        (lambda: ashadre(grace_period=0), "grace_period must be a number above 0, got 0"),
        (lambda: ashadre(grace_period=10), "max_t must be .* at least grace_period=10, got 9"),
        (lambda: ashadre(reduction_factor=1), "reduction_factor must be a number above 1, got 1"),
        (lambda: ashadre(brackets=0), "brackets must be an integer of at least 1, got 0"),
        (lambda: ASHADRE(SPACE, "loss", "epoch", "9"), "max_t must be a number .* got '9'"),
        (
            lambda: ASHADRE(SPACE, "loss", "epoch", math.inf),
            "max_t must be a number below infinity.* got inf",
        ),
        (lambda: recommend("wine"), "experiment must be what load_experiment returns, got 'wine'"),
        (lambda: DRE({3: SPACE["lr"]}, "loss"), "config_space must be domains by name, got {3:"),
        (lambda: ASHADRE(SPACE, "loss", None, 9), "time_attr must be the name .* got None"),
        (lambda: DRE(["lr"], "loss"), r"config_space must be domains by name, got \['lr'\]"),
        (lambda: ashadre(grace_period="1"), "grace_period must be a number above 0, got '1'"),
        (lambda: ashadre(reduction_factor="3"), "reduction_factor must be a number .* got '3'"),
        (lambda: ashadre(brackets=1.5), "brackets must be an integer of at least 1, got 1.5"),
        (lambda: dre(prior="nowhere"), "nowhere"),
        (lambda: dre(do_minimize="max"), "do_minimize must be True or False, got 'max'"),
        (lambda: dre(do_minimize=None), "do_minimize must be True or False, got None"),
        (lambda: ashadre(do_minimize="min"), "do_minimize must be True or False, got 'min'"),
        (lambda: DRETransfer(SPACE, "loss", {}, "max"), "do_minimize must be True or False"),
        *(
            (partial(prior_from_evaluations, PAST, "loss", wrong), "do_minimize must be True or F")
            for wrong in (None, "max", 0)
        ),
        (lambda: DRETransfer(SPACE, "loss", {}), "nothing to learn"),
        (
            lambda: DRETransfer(SPACE, "loss", {"past": 3}),
            "must be TransferLearningTaskEvaluations",
        ),
        (
            lambda: DRETransfer({"momentum": SPACE["lr"]}, "loss", PAST),
            r"(?s)lr.*momentum|momentum.*lr",  # nothing in common
        ),
        (lambda: MODRE(SPACE, "loss"), r"metrics must be .*two.*DRE.*got 'loss'"),
        (lambda: MODRE(SPACE, ["loss"]), r"metrics must be .*two.*DRE.*got \['loss'\]"),
        (lambda: MODRE(SPACE, ["loss", 3]), "metrics must be"),
        (lambda: MODRE(SPACE, ["loss", "size", "loss"]), "metrics must be .*different"),
        (lambda: modre(do_minimize=[True]), r"do_minimize must be .*'loss', 'time'.*\[True\]"),
        (lambda: modre(do_minimize=["min", "max"]), "do_minimize must be"),
        (lambda: modre(do_minimize=None), "do_minimize must be"),
        (lambda: modre(prior=["nowhere", None]), "nowhere"),
        (lambda: modre(points_to_evaluate=[{"lr": "far"}]), "lr must be"),
        (lambda: MultiObjectiveDRESearcher(SPACE, n_objectives=1), "n_objectives.*DRESearcher"),
    ],
)
def test_bad_arguments_are_refused_at_once(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize("build", [dre, ashadre, modre])
def test_unknown_options_are_refused_in_the_name_of_the_scheduler(build: Any) -> None:
    with pytest.raises(TypeError, match=r"^(ASHA|MO)?DRE has no arguments \['n_start'\]"):
        build(n_start=3)


@pytest.mark.skipif(
    version("syne-tune").startswith("0.15."), reason="other orders before Syne Tune 0.16"
)
def test_arguments_stand_as_in_the_baselines() -> None:
    from syne_tune.optimizer.baselines import ASHABORE, BORE, EHVI

    for mine, theirs in ((DRE, BORE), (ASHADRE, ASHABORE), (MODRE, EHVI)):
        wanted = [*inspect.signature(theirs).parameters.values()]
        found = [*inspect.signature(mine).parameters.values()][: len(wanted)]
        assert [(p.name, p.default) for p in found] == [(p.name, p.default) for p in wanted]
