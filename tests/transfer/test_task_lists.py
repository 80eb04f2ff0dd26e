"""Lists of past tasks: what is ranked, left out and padded; the draws from them."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from lists_of_tasks import PLAIN, QUICK, SCORER, numbered
from torch import Tensor
from torch_defaults import torch_defaults

from dre_plugins.engine import ScorerSettings
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space import Float, SearchSpace
from dre_plugins.transfer import meta_training, task_lists
from dre_plugins.transfer.meta_training import MetaTrainingSettings
from dre_plugins.transfer.metadata import Task
from dre_plugins.transfer.task_lists import TaskLists, training_batches, validation_batch

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


def test_failures_are_tied_last_and_one_success_among_them_is_a_lesson() -> None:
    past = task(ended(COMPLETE, 1.0), ended(FAILED), ended(COMPLETE, math.nan), ended(COMPLETE, 2))
    lists = TaskLists.of([past], SPACE)
    assert entries(lists, 0) == pytest.approx({0: 0.25, 1: -0.5, 2: -0.5, 3: 0.75})
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
    with torch_defaults(torch.float64, "meta"), torch.inference_mode():
        lists = TaskLists.of(tasks, SPACE)
    for name in ("features", "values", "lengths", "weights"):
        found = getattr(lists, name)
        assert torch.equal(found, getattr(expected, name)) and not found.is_inference()


# ---- batches


def draws_of(lists: TaskLists, scorer: ScorerSettings, settings: MetaTrainingSettings, seed=0):
    state = meta_training._initial_state(scorer, lists.n_features, seed, "cpu")
    return training_batches(lists, scorer, settings, state), state


def entries_of(features: Tensor, mask: Tensor) -> list[int]:
    return features[mask][:, 1].long().tolist()


def test_support_and_query_are_different_entries_of_one_list() -> None:
    lists = numbered(30, 9, 3, 2)
    drawing, state = draws_of(lists, SCORER, replace(QUICK, list_length=12, max_support=8))
    found: dict[int, set[int]] = {n: set() for n in (1, 2, 3, 4)}
    sizes = set()
    for state.step in range(60):  # beyond a reshuffle
        batch = next(drawing)
        assert batch.features.shape == (2, 4, 12, 2)
        assert batch.support_features.shape == (2, 4, 8, 2)
        for at in np.ndindex(2, 4):
            support_mask, mask = batch.support_mask[at], batch.mask[at]
            support = entries_of(batch.support_features[at], support_mask)
            query = entries_of(batch.features[at], mask)
            (number,) = batch.features[at][mask][:, 0].long().unique().tolist()
            length = int(lists.lengths[number - 1])
            assert set(batch.support_features[at][support_mask][:, 0].tolist()) <= {number}
            assert len({*support, *query}) == len(support) + len(query)  # no entry twice
            assert 1 <= min([*support, *query]) and max([*support, *query]) <= length
            assert len(support) <= min(8, length // 2)
            assert len(query) == min(12, length - len(support))  # all that is left
            expected = lists.values[number - 1, torch.tensor(query) - 1]
            assert torch.equal(batch.values[at][mask], expected)
            found[number].update(support + query)
            sizes.add(len(support))
    assert sizes == set(range(9))
    assert [len(found[n]) for n in (1, 2, 3, 4)] == [30, 9, 3, 2]


def test_members_draw_different_lists_and_supports() -> None:
    drawing, _ = draws_of(numbered(*[30] * 20), SCORER, QUICK)
    batch = next(drawing)
    first, second = batch.features[:, :, 0, 0].tolist()
    assert first != second
    assert len(batch.support_mask.sum(-1).unique()) > 2


def test_weights_say_how_often_a_list_is_drawn() -> None:
    lists = replace(numbered(5, 5, 5), weights=torch.tensor([1.0, 0.25, 0.0]))
    drawing, _ = draws_of(lists, PLAIN, replace(QUICK, n_lists=2000))
    drawn = next(drawing).features[..., 0, 0].flatten().long().bincount(minlength=4)
    assert drawn[3] == 0
    assert float(drawn[1] / drawn[2]) == pytest.approx(4.0, rel=0.2)


def test_without_a_context_nothing_is_spent_on_supports() -> None:
    drawing, _ = draws_of(numbered(30), PLAIN, QUICK)
    batch = next(drawing)
    assert batch.support_features.shape[2] == 0
    assert batch.mask.all()


def test_validation_draws_are_the_same_every_time_and_of_all_lists() -> None:
    lists = numbered(30, 9, 20)
    batch, again = (validation_batch(lists, SCORER, QUICK, "cpu") for _ in range(2))
    assert torch.equal(batch.features, again.features)
    assert batch.features[0, :, 0, 0].tolist() == [1] * 4 + [2] * 4 + [3] * 4
    assert batch.support_mask.sum(-1)[0].tolist() == [0, 0, 3, 8, 0, 0, 1, 4, 0, 0, 3, 8]
    assert validation_batch(None, SCORER, QUICK, "cpu") is None


def test_validation_looks_at_a_bounded_number_of_lists(monkeypatch) -> None:
    monkeypatch.setattr(task_lists, "MAX_VALIDATION", 3)
    batch = validation_batch(numbered(*[9] * 20), PLAIN, QUICK, "cpu")
    assert batch.features[0, ::4, 0, 0].tolist() == [1, 11, 20]  # evenly spaced
    assert batch.features.shape[1] == 3 * len(task_lists.VALIDATION_SHARES)
