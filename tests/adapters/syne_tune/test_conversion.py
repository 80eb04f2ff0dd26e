"""Every domain of Syne Tune: what is suggested, and what is refused."""

from typing import Any

import pytest
from labels import label_of
from presets import TINY
from syne_tune import config_space as cs
from syne_tune.optimizer.scheduler import TrialScheduler
from syne_tune.optimizer.schedulers.single_objective_scheduler import SingleObjectiveScheduler
from syne_tune_rows import FINITE, INFINITE

from dre_plugins.adapters.syne_tune import ASHADRE, DRE, DRESearcher
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
