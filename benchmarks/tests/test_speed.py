"""The speed that docs/benchmarks.md states (slow)."""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import pytest

from dre_bench import speed


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_suggestion_is_fast_and_stays_fast() -> None:
    def seconds(n_trials: int) -> float:
        make = partial(speed.DRESampler, seed=0)
        taken = speed.suggestion_seconds(make, n_trials, repeats=3, clock=time.process_time)
        return float(np.median(taken))

    at_100, at_1000 = seconds(100), seconds(1000)
    assert at_100 <= 1.0  # 0.26 on a quiet core
    assert at_1000 <= 2.0 * at_100
    assert speed.paper_procedure_seconds(100, time.process_time) >= 20.0 * at_100
