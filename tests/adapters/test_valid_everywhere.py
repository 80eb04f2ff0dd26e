"""`valid=` in every framework: all that is suggested satisfies the rule.

What only one framework has is in `optuna/test_valid.py`, `ray_tune/test_search.py` and
`syne_tune/test_schedulers.py`.
"""

from typing import Any

import pytest
from presets import FAST
from searches import EVERY, MakeSearch, OptunaSearch, every_framework

from dre_plugins.space.rules import RuleError

# Optuna shows its space as trials ask for it.
space_is_given = pytest.mark.parametrize(
    "framework", [case for case in EVERY if case.values[0] is not OptunaSearch]
)


def is_low(configuration: dict[str, Any]) -> bool:
    return configuration["n"] <= 1 + 8 * configuration["x"]


@every_framework
def test_every_suggestion_satisfies_the_rule(framework: MakeSearch) -> None:
    outcome = framework(valid=is_low, settings=FAST).run(16)
    assert all(map(is_low, outcome.configurations))
    assert outcome.stats["model"] and outcome.stats["universal-prior"] and outcome.stats["random"]
    assert not outcome.stats["invalid"] and not outcome.stats["fallbacks"]


@space_is_given
def test_a_rule_that_nothing_satisfies_is_refused_at_set_up(framework: MakeSearch) -> None:
    for valid, message in [
        (lambda c: c["x"] > 1, r"valid holds for none of .* x, n"),
        (lambda c: c["width"] > 1, r"valid raised KeyError: 'width'"),
        (lambda c: None, "valid returned None"),
        (3, "valid must be a function of a configuration, or None, got 3"),
    ]:
        with pytest.raises(RuleError, match=message):
            framework(valid=valid)


@every_framework
@pytest.mark.parametrize("as_lambda", [False, True])
def test_a_search_that_another_process_restores_keeps_its_rule(
    framework: MakeSearch, as_lambda: bool
) -> None:
    if as_lambda and framework is OptunaSearch:
        pytest.skip("pickle itself takes no lambda")
    valid = (lambda c: is_low(c)) if as_lambda else is_low
    search = framework(valid=valid)
    search.run(6)
    configurations = search.restarted().run(3).configurations
    assert all(map(is_low, configurations))
    assert configurations == framework(valid=valid).run(9).configurations


@every_framework
def test_points_that_break_it_are_tried_and_counted(framework: MakeSearch, caplog) -> None:
    points = [{"x": 0.1, "n": 9}, {"n": 8}, {"x": 0.0, "n": 2}]
    outcome = framework(valid=is_low, points=points).run(6)
    found = outcome.configurations
    assert [configuration["n"] for configuration in found[:3]] == [9, 8, 2]
    assert [is_low(configuration) for configuration in found] == [False, True, False, *[True] * 3]
    assert outcome.stats["invalid"] == 2
    messages = [record.getMessage() for record in caplog.records]
    assert len([text for text in messages if "A configuration that you gave" in text]) == 1
