"""The order in which the incumbents of past studies are tried."""

from __future__ import annotations

import numpy as np

from dre_plugins import MetaDataset, Prior
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space import Float, SearchSpace
from dre_plugins.transfer.metadata import Task
from dre_plugins.transfer.portfolio import MIN_STUDIES, greedy_order, with_portfolio

SPACE = SearchSpace({"x": Float(0.0, 1.0)})


def test_each_next_one_is_good_where_those_before_are_not() -> None:
    regrets = np.array([[0.2, 0.0, 1.0, 0.9], [0.2, 0.1, 1.0, 0.9], [0.5, 1.0, 0.0, 0.9]])
    assert greedy_order(regrets).tolist() == [0, 2, 1, 3]


def test_a_portfolio_needs_many_tasks_and_is_kept_with_its_prior(tmp_path) -> None:
    """Most tasks have their optimum at .2, three at .8: one of each kind comes first."""
    optima = np.where(np.arange(MIN_STUDIES) % 4 == 3, 0.8, 0.2)
    tasks = []
    for number, optimum in enumerate(optima):
        drawn = np.random.default_rng(number).random(20)
        trials = [Trial({"x": x}, TrialState.COMPLETE, -abs(x - optimum)) for x in drawn]
        tasks.append(Task.from_trials(f"task {number}", SPACE, trials))
    few, all_ = MetaDataset(tuple(tasks[:-1])), MetaDataset(tuple(tasks))
    prior = Prior.of_few(few)
    assert with_portfolio(prior, few).portfolio is None
    with_portfolio(prior, all_).save(tmp_path / "p.safetensors")
    kept = Prior.load(tmp_path / "p.safetensors")
    first, second = kept.portfolio[:2, 0]
    assert abs(first - 0.2) < 0.1 and abs(second - 0.8) < 0.1
    assert optima[int(kept.portfolio_tasks[0].removeprefix("task "))] == 0.2
    assert sorted(kept.portfolio_tasks) == sorted(task.name for task in tasks)
