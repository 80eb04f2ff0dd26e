"""Past tasks are drawn by how well they explain what was observed."""

import numpy as np
import pytest
import torch
from torch_defaults import torch_defaults

from dre_plugins.recommend.ensemble.initial_members import SHARPNESS, disagreement, draw_tasks

RANKS = torch.tensor([0.0, 1.0, 1.0, 2.0])


def test_disagreement_is_the_share_of_pairs_in_the_wrong_order() -> None:
    scores = torch.tensor(
        [
            [0.0, 1.0, 2.0, 3.0],  # right; the tie is no pair
            [3.0, 2.0, 1.0, 0.0],  # all five pairs wrong
            [0.0, 1.0, 3.0, 2.0],  # one of five wrong
            [0.0, 0.0, 0.0, 0.0],  # says nothing, so nothing wrong
        ]
    )
    with torch_defaults():
        assert disagreement(scores, RANKS).tolist() == pytest.approx([0.0, 1.0, 0.2, 0.0])


def test_values_that_are_all_alike_prefer_no_task() -> None:
    scores = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    assert disagreement(scores, torch.zeros(2)).tolist() == [0.0, 0.0]


def test_every_task_is_drawn_while_nothing_tells_them_apart() -> None:
    drawn = draw_tasks(torch.zeros(10), 0, 10, np.random.default_rng(0))
    assert sorted(drawn) == [*range(10)]
    assert [*drawn] != [*range(10)]  # which member gets which is random


@pytest.mark.parametrize("n_trials", [1, 10, 100])
def test_shares_follow_the_weights(n_trials: int) -> None:
    wrong = torch.tensor([0.1, 0.2, 0.5])
    weights = np.exp(-SHARPNESS * n_trials * wrong.numpy())
    drawn = draw_tasks(wrong, n_trials, 1000, np.random.default_rng(1))
    shares = np.bincount(drawn, minlength=3) / 1000
    assert np.abs(shares - weights / weights.sum()).max() <= 0.002


def test_a_draw_is_a_function_of_the_generator() -> None:
    wrong = torch.rand(20, generator=torch.Generator().manual_seed(0))
    first, again = (draw_tasks(wrong, 3, 10, np.random.default_rng(7)) for _ in range(2))
    assert (first == again).all()
    assert (first != draw_tasks(wrong, 3, 10, np.random.default_rng(8))).any()
