"""What an ask costs is bounded whatever the study holds; `tests/recommend/test_pending.py` counts.

Bounds are generous, as test machines are slow and shared: a few times what was measured, and a
small part of what it was before there was a bound.
"""

from __future__ import annotations

import pytest

from dre_bench.costs import CASES, cost_of

MEGABYTE = 2**20
# Seconds of the processor for a whole batch, or the slowest of several asks.
SECONDS = {
    "batch of 10": 3.0,
    "batch of 16": 5.0,
    "batch of 30": 7.0,
    "batch of 100": 12.0,
    "batch of 400": 40.0,
}
# The others take minutes; `make test-slow` has them.
IN_CI = "plain"
ANY_SECONDS, ANY_MEMORY = 2.0, 300 * MEGABYTE


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "case",
    [case if case == IN_CI else pytest.param(case, marks=pytest.mark.long) for case in CASES],
)
def test_an_ask_is_bounded(case: str) -> None:
    cost = cost_of(case)
    assert cost.seconds < SECONDS.get(case, ANY_SECONDS)
    assert cost.memory < ANY_MEMORY
