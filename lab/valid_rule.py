"""Best value of 30 trials: a rule given as `valid`, the same rule as failed trials, and no rule.

python lab/valid_rule.py [FIRST_SEED LAST_SEED]
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from dre_plugins.space import Domain, Float, Integer
from dre_plugins.study import AskTell

N_TRIALS = 30


class Case(NamedTuple):
    """Hold a search space, a rule, and what is minimised, 0 at best."""

    space: dict[str, Domain]
    rule: Callable[[dict[str, Any]], bool]
    value: Callable[[dict[str, Any]], float]


def pair(c: dict[str, Any]) -> float:
    """Return 0 at (20, 25, .3)."""
    return abs(math.log(c["low"] / 20)) + abs(math.log(c["high"] / 25)) + (c["x"] - 0.3) ** 2


def shares(c: dict[str, Any]) -> float:
    """Return 0 at (.5, .4, .1)."""
    return (c["a"] - 0.5) ** 2 + (c["b"] - 0.4) ** 2 + (c["c"] - 0.1) ** 2


CASES = {
    "pair": Case(
        {"low": Integer(1, 64, "log"), "high": Integer(1, 64, "log"), "x": Float(0.0, 1.0)},
        lambda c: c["low"] <= c["high"],
        pair,
    ),
    "shares": Case(
        {name: Float(0.0, 1.0) for name in "abc"},
        lambda c: 0.95 <= c["a"] + c["b"] + c["c"] <= 1.05,
        shares,
    ),
}


def values_of(case: Case, how: str, seed: int) -> list[float]:
    """Return the values of a study, infinite where the rule is broken and that is a failure."""
    study = AskTell(case.space, seed=seed, valid=case.rule if how == "valid" else None)
    values = []
    for _ in range(N_TRIALS):
        number, configuration = study.ask()
        is_fine = how == "no rule" or case.rule(configuration)
        study.tell(number, case.value(configuration) if is_fine else math.nan)
        values.append(case.value(configuration) if is_fine else math.inf)
    return values


if __name__ == "__main__":
    first, last = map(int, sys.argv[1:3] or (0, 4))
    for name, case in CASES.items():
        for how in ("valid", "failed", "no rule"):
            for seed in range(first, last + 1):
                values = values_of(case, how, seed)
                print(
                    f"{name}, {how}, seed {seed}: after 10 {min(values[:10]):.5f}, after 30 "
                    f"{min(values):.5f}, broken {sum(map(math.isinf, values))}",
                    flush=True,
                )
