"""Lists of past tasks: what is ranked, what is left out, how it is padded."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space import Float, SearchSpace
from dre_plugins.transfer.metadata import Task
from dre_plugins.transfer.task_lists import TaskLists

# A power of two, so that features are exact.
SPACE = SearchSpace({"place": Float(0.0, 4096.0), "other": Float(0.0, 1.0)})
COMPLETE, PRUNED, FAILED = TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAILED


def ended(state: TrialState, value: float | None = None, **rungs: float) -> Trial:
    return Trial({}, state, value, {float(step[1:]): v for step, v in rungs.items()})


def task(*trials: Trial) -> Task:
    """A task whose first feature numbers its evaluations, from 1."""
    placed = [
        replace(trial, configuration={"place": float(place), "other": 0.5})
        for place, trial in enumerate(trials, start=1)
    ]
    return Task.from_trials("task", SPACE, placed)


def entries(lists: TaskLists, row: int) -> dict[int, float]:
    """Number of each evaluation in a list and its normalised rank."""
    length = int(lists.lengths[row])
    numbers = (lists.features[row, :length, 0] * 4096.0 - 1.0).long().tolist()
    return dict(zip(numbers, lists.values[row, :length].tolist(), strict=True))


def values(*numbers: float) -> Task:
    return task(*(ended(COMPLETE, number) for number in numbers))


def test_values_become_ranks_between_minus_one_and_one() -> None:
    lists = TaskLists.of([values(3.0, -math.inf, 1e300, math.inf, 3.0)], SPACE)
    assert entries(lists, 0) == pytest.approx({0: -0.2, 1: -0.8, 2: 0.4, 3: 0.8, 4: -0.2})
    assert lists.values.dtype == lists.features.dtype == torch.float32
    assert lists.values.abs().max() < 1


def test_failures_are_tied_last() -> None:
    past = task(ended(COMPLETE, 1.0), ended(FAILED), ended(COMPLETE, math.nan), ended(COMPLETE, 2))
    lists = TaskLists.of([past], SPACE)
    assert entries(lists, 0) == pytest.approx({0: 0.25, 1: -0.5, 2: -0.5, 3: 0.75})


def test_one_success_among_failures_is_a_lesson() -> None:
    lists = TaskLists.of([task(ended(FAILED), ended(COMPLETE, -1.0))], SPACE)
    assert entries(lists, 0) == {0: -0.5, 1: 0.5}


def test_steps_at_which_trials_were_pruned_give_lists_with_smaller_weights() -> None:
    past = task(
        ended(COMPLETE, 10.0, s1=4.0, s2=7.0),
        ended(COMPLETE, 11.0, s1=3.0, s2=8.0),
        ended(PRUNED, s1=1.0),
        ended(PRUNED, s1=2.0, s2=6.0),
        ended(FAILED),
    )
    lists = TaskLists.of([past], SPACE)
    final, second, first = (entries(lists, row) for row in range(3))
    assert sorted(final, key=final.__getitem__) == [4, 0, 1]
    assert sorted(second, key=second.__getitem__) == [3, 0, 1]
    assert sorted(first, key=first.__getitem__) == [2, 3, 1, 0]
    assert lists.weights.tolist() == pytest.approx([1.0, 3 / 5, 4 / 5])


def test_lists_that_say_nothing_are_left_out() -> None:
    lists = TaskLists.of([values(2.0, 2.0), values(1.0), values(1.0, 2.0, 3.0)], SPACE)
    assert len(lists) == 1
    assert lists.lengths.tolist() == [3]


@pytest.mark.parametrize(
    "tasks",
    [[], [values(1.0)], [values(5.0, 5.0, 5.0)], [task(ended(FAILED), ended(FAILED))]],
    ids=["no task", "one value", "equal values", "failures"],
)
def test_nothing_to_learn_from_is_refused(tasks) -> None:
    with pytest.raises(ValueError, match=rf"None of {len(tasks)} past tasks.*add studies"):
        TaskLists.of(tasks, SPACE)


def test_only_the_order_of_values_counts() -> None:
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal(30)
    plain = TaskLists.of([values(*numbers)], SPACE)
    grown = TaskLists.of([values(*np.exp(20.0 * numbers))], SPACE)
    assert torch.equal(plain.values, grown.values)


def test_long_lists_are_kept_whole() -> None:
    lists = TaskLists.of([values(*range(3000))], SPACE)
    assert lists.lengths.tolist() == [3000]
    assert len(lists.values.unique()) == 3000


def test_the_users_torch_does_not_matter() -> None:
    tasks = [values(1.0, 2.0, 3.0)]
    expected = TaskLists.of(tasks, SPACE)
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    try:
        with torch.inference_mode():
            lists = TaskLists.of(tasks, SPACE)
    finally:
        torch.set_default_device(None)
        torch.set_default_dtype(torch.float32)
    for name in ("features", "values", "lengths", "weights"):
        found = getattr(lists, name)
        assert torch.equal(found, getattr(expected, name)) and not found.is_inference()
