"""Choices that open branches: what a search does there."""

from __future__ import annotations

from collections import Counter

import optuna
import pytest

from dre_bench.conditional import conditional_scenario
from dre_plugins import DRESampler


@pytest.mark.slow
@pytest.mark.long
def test_the_best_branch_is_found_where_it_looks_worst() -> None:
    scenario = conditional_scenario("branches-4", None)
    n_found = 0
    for task in range(10):
        study = optuna.create_study(direction="maximize", sampler=DRESampler(seed=task))
        study.optimize(lambda trial, task=task: scenario.objective(trial, task), n_trials=60)
        tried = Counter(trial.params["branch"] for trial in study.trials)
        assert min(tried.values()) >= 6
        n_found += study.best_value > -0.1  # the other branches end below −0.13
        if n_found >= 3:  # 7 of 15 on two versions
            return
    pytest.fail(f"The best branch was found in {n_found} of 10 studies.")
