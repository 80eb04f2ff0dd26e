"""Coverage of predicted ranks, and that what is predicted is honest."""

import numpy as np
import pytest

pytest.importorskip("optuna")

from dre_bench.calibration import Coverage, coverages, pooled
from dre_bench.runs import Sources


def test_the_factor_is_what_the_spread_lacks() -> None:
    errors = 3.0 * np.random.default_rng(0).standard_normal(20_000)
    too_sure = Coverage("x", 10, errors)
    assert too_sure.factor == pytest.approx(3.0, rel=0.03)
    assert too_sure.covered == pytest.approx((0.178, 0.331, 0.416), abs=0.01)
    honest = Coverage("x", 10, errors / too_sure.factor)
    assert honest.covered == pytest.approx((0.5, 0.8, 0.9), abs=0.01)


def test_true_ranks_lie_about_as_often_in_the_intervals_as_these_say() -> None:
    found = coverages(Sources(), ["mixed"], [20, 40], split="validation", prior=None, n_tasks=2)
    parts = [*found]
    assert [(part.scenario, part.trials) for part in parts] == [("mixed", 20), ("mixed", 40)]
    _, eighty, ninety = pooled(parts).covered
    assert 0.65 < eighty < ninety < 0.99
