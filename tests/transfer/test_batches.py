"""What meta-training draws: lists, supports and queries, also for validation."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from lists_of_tasks import PLAIN, QUICK, SCORER, numbered
from torch import Tensor

from dre_plugins.engine import ScorerSettings
from dre_plugins.transfer import meta_training, task_lists
from dre_plugins.transfer.meta_training import MetaTrainingSettings
from dre_plugins.transfer.task_lists import TaskLists, training_batches, validation_batch


def draws_of(lists: TaskLists, scorer: ScorerSettings, settings: MetaTrainingSettings, seed=0):
    state = meta_training._initial_state(scorer, lists.n_features, seed, "cpu")
    return training_batches(lists, scorer, settings, state), state


def entries(features: Tensor, mask: Tensor) -> list[int]:
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
            support = entries(batch.support_features[at], support_mask)
            query = entries(batch.features[at], mask)
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
