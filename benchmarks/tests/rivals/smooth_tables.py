"""Small smooth tables, and how far a method gets on one."""

from __future__ import annotations

import numpy as np

from dre_bench.rivals.random_search import Random

ROWS = np.random.default_rng(3).random((200, 2))
OPTIMUM = np.array([0.31, 0.62])


def hill(optimum, X=ROWS):
    """Values of a hill at the rows of a table, larger is better."""
    return -((X - optimum) ** 2 * [1.0, 2.0]).sum(1)


VALUES = hill(OPTIMUM)
# Hills nearby, on other scales.
PAST = [
    (ROWS[:60], 5.0 * hill(optimum, ROWS[:60]) + 3.0)
    for optimum in np.random.default_rng(1).uniform(0.2, 0.7, (3, 2))
]
START = [0, 1, 2, 3, 4]


def regret(method, steps=12):
    """Distance to the best row after so many choices, as a share of the range."""
    rows = list(START)
    for _ in range(steps):
        if VALUES.argmax() in rows:
            break
        pending = np.delete(np.arange(len(ROWS)), rows)
        chosen = method.observe_and_suggest(ROWS[rows], VALUES[rows, None], ROWS[pending])
        rows.append(int(pending[chosen]))
    return (VALUES.max() - VALUES[rows].max()) / np.ptp(VALUES)


RANDOM = [regret(Random(seed=seed)) for seed in range(50)]


def first_choice(method, y=VALUES[START], X=ROWS[START], pending=ROWS[5:]):
    return method.observe_and_suggest(X, y, pending)


def check_degenerate_tables(method):
    """Check that a method chooses some row whatever the observations are."""
    cases = {
        "nothing was observed": ([], np.empty((0, 2))),
        "one observation": ([1.0], ROWS[:1]),
        "two observations": ([1.0, 2.0], ROWS[:2]),
        "equal values": (np.ones((5, 1)), ROWS[:5]),
        "ties": ([1.0, 1.0, 0.0, 0.0, 1.0], ROWS[:5]),
        "repeated rows": ([1.0, 0.5, 0.7], ROWS[[0, 0, 0]]),
        "failures": ([np.nan, 1.0, -np.inf, 2.0, np.nan], ROWS[:5]),
        "all failed": (np.full(5, np.nan), ROWS[:5]),
        "an outlier": ([1.0, 1.1, 0.9, 1.05, -1e9], ROWS[:5]),
    }
    for name, (y, X) in cases.items():
        chosen = first_choice(method, y, X)
        assert type(chosen) is int and 0 <= chosen < 195, name
    assert first_choice(method, pending=ROWS[7:8]) == 0  # nothing else is left
    assert 0 <= first_choice(method, pending=ROWS[:5]) < 5  # all of it was observed
