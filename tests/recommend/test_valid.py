"""`valid=` in `AskTell`: all that is suggested satisfies the rule, whoever proposes it."""

import math
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from marks import LONG
from presets import FAST
from small_spaces import rising, told

from dre_plugins.recommend import Recommender, Settings, Trial, TrialState
from dre_plugins.space import Categorical, Condition, Float, Integer, SearchSpace
from dre_plugins.space.rules import Rule, RuleError
from dre_plugins.study import AskTell
from dre_plugins.transfer.prior import Prior

pytestmark = pytest.mark.usefixtures("few_candidates")
SPACE = {
    "low": Integer(1, 64),
    "high": Integer(1, 64),
    "x": Float(0.0, 1.0),
    "y": Float(0.0, 1.0),
    "rate": Float(1e-4, 1.0, "log"),
    "kind": Categorical(("a", "b", "c")),
}
TREE = SearchSpace(
    {
        "kernel": Categorical(("linear", "rbf", "poly")),
        "C": Float(0.0, 1.0),
        "gamma": Float(0.0, 1.0),
        "degree": Integer(1, 5),
    },
    [Condition("gamma", "kernel", ("rbf", "poly")), Condition("degree", "kernel", ("poly",))],
)
FINITE = SearchSpace({"low": Integer(1, 4), "high": Integer(1, 4)})


def is_shared(c: dict[str, Any]) -> bool:
    return 0.99 <= c["x"] + c["y"] <= 1.01 and rising(c)


def loss(c: dict[str, Any]) -> float:
    return (c["x"] - 0.2) ** 2 + (math.log10(c["rate"]) + 2) ** 2 + c["low"] / 64


def tuned(study: AskTell, n: int, value: Any = loss) -> list[dict[str, Any]]:
    return [trial.configuration for trial in told(study, n, value).trials[-n:]]


@pytest.mark.parametrize("valid", [rising, is_shared])
@pytest.mark.parametrize("prior", ["universal", None, "xgboost"])
def test_every_suggestion_satisfies_the_rule(valid, prior) -> None:
    if prior == "xgboost":
        prior = Prior.load(prior, mapping={"rate": "eta", "x": "alpha"})
    study = AskTell(SPACE, seed=0, valid=valid, prior=prior, n_startup_trials=4, settings=FAST)
    found = tuned(study, 14)
    assert all(map(valid, found)), [c for c in found if not valid(c)]
    assert len({tuple(c.values()) for c in found}) == 14
    assert study.stats["fallbacks"] == study.stats["invalid"] == 0
    sources = {"random", "model"} if prior is None else {"model", "universal-prior"}
    assert sources <= {study.explain(number).source for number in range(14)}


def test_explorations_and_fallbacks_and_batches_satisfy_it() -> None:
    study = AskTell(SPACE, seed=0, valid=is_shared, prior=None, settings=FAST)
    values = iter(range(100))
    found = tuned(study, 30, lambda c: float(next(values)))
    assert study.stats["exploration"] > 0
    batch = [c for _, c in study.ask_batch(20)]
    assert all(map(is_shared, found + batch))


def test_a_surrogate_that_fails_is_replaced_by_valid_points(monkeypatch) -> None:
    fails = Mock(side_effect=FloatingPointError("broken"))
    monkeypatch.setattr("dre_plugins.recommend.choices.choices_of", fails)
    study = AskTell(SPACE, seed=0, valid=is_shared, settings=FAST)
    assert all(map(is_shared, tuned(study, 20))) and study.stats["fallbacks"] > 8


def test_branches_with_nothing_valid_are_left_alone() -> None:
    def valid(c: dict[str, Any]) -> bool:
        return c["kernel"] != "rbf" and c.get("gamma", 1.0) >= c["C"]

    study = AskTell(TREE, seed=0, valid=valid, settings=FAST)
    found = tuned(study, 30, lambda c: c["C"] + c.get("gamma", 0.0))
    assert all(map(valid, found))
    assert min(sum(c["kernel"] == kernel for c in found) for kernel in ("linear", "poly")) >= 4
    assert study.stats["fallbacks"] == 0


@pytest.mark.parametrize("settings", [FAST, pytest.param(Settings(preset="paper"), marks=LONG)])
def test_a_finite_space_is_exhausted_by_what_is_valid(settings) -> None:
    study = AskTell(FINITE, seed=0, valid=rising, n_startup_trials=4, settings=settings)
    found = []
    while not study.is_exhausted:
        assert len(found) < 10
        found += tuned(study, 1, lambda c: c["low"] - c["high"] / 3)
    assert sorted((c["low"], c["high"]) for c in found) == [
        (low, high) for low in range(1, 5) for high in range(low, 5)
    ]
    assert rising(study.ask()[1]) and study.explain(10).source == "exhausted"


def test_what_the_user_gives_is_kept_with_one_warning(caplog) -> None:
    study = AskTell(SPACE, seed=0, valid=rising, settings=FAST)
    whole = {"low": 9, "high": 3, "x": 0.1, "y": 0.1, "rate": 0.1, "kind": "a"}
    for configuration in (whole, {"low": 60, "high": 2}, {"low": 60}, whole):
        study.enqueue(configuration)
    found = tuned(study, 5)
    assert found[0] == found[3] == whole
    assert (found[1]["low"], found[1]["high"]) == (60, 2)
    assert found[2]["low"] == 60 and rising(found[2]) and rising(found[4])
    assert study.stats["invalid"] == 3
    assert [record.message for record in caplog.records if "valid" in record.message] == [
        "A configuration that you gave breaks the rule `valid`; it is tried all the same. "
        "Further ones are only counted."
    ]
    study.add({**whole, "low": 50}, 0.0)  # evaluated elsewhere: nothing is asked
    assert study.stats["invalid"] == 3


def test_a_rule_that_raises_later_is_no_failure_of_the_surrogate() -> None:
    armed = []

    def valid(c: dict[str, Any]) -> bool:
        if armed and c["kind"] == "c":
            raise RuntimeError("no such kind")
        return True

    study = AskTell(SPACE, seed=0, valid=valid, settings=FAST)
    tuned(study, 12)
    armed.append(True)
    with pytest.raises(RuleError, match=r"RuntimeError: no such kind, for .*'kind': 'c'"):
        tuned(study, 3)
    assert study.stats["fallbacks"] == 0


def test_a_thin_rule_is_warned_of_once(caplog) -> None:
    study = AskTell(SPACE, seed=0, valid=lambda c: abs(c["x"] - 0.5) < 2e-4, settings=FAST)
    tuned(study, 3)
    assert len([r for r in caplog.records if "configurations that were tried" in r.message]) == 1


def test_given_candidates_are_filtered() -> None:
    space = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
    recommender = Recommender(space, seed=0, rule=Rule(space, lambda c: c["x"] < c["y"]))
    table = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.4]])
    history = [Trial({"x": 0.1, "y": 0.2}, TrialState.COMPLETE, 1.0)]
    suggestion = recommender.suggest(history, index=1, candidates=table)[0]
    assert suggestion.units.tolist() == [0.2, 0.8]
    with pytest.raises(ValueError, match="candidates must be some that satisfy"):
        recommender.suggest(history, index=1, candidates=table[:1])


def test_a_rule_that_all_satisfy_changes_no_model_suggestion_away_from_bounds() -> None:
    """Rejection draws from the same streams, so that only what is refined may differ."""
    plain, ruled = (
        AskTell(SPACE, seed=3, valid=v, prior=None, settings=FAST) for v in (None, bool)
    )
    assert tuned(plain, 16) == tuned(ruled, 16)
