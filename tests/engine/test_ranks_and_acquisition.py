import math

import pytest
import torch
from scipy.stats import norm, rankdata
from spies import spy
from torch_defaults import torch_defaults

from dre_plugins.engine import ranks
from dre_plugins.engine.acquisition import ACQUISITIONS
from dre_plugins.engine.ranks import ranks_against
from dre_plugins.engine.settings import ACQUISITION_NAMES


def test_ranks_in_a_table_are_average_ranks() -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randint(0, 6, (4, 30), generator=generator).float()
    expected = torch.from_numpy(rankdata(-scores.numpy(), axis=1)).float()
    torch.testing.assert_close(ranks_against(scores, scores).float(), expected)


def test_ranks_against_an_outside_reference_stay_positive_and_ordered_beyond_it() -> None:
    reference = torch.tensor([[3.0, 1.0, 2.0]])
    scores = torch.tensor([[4.0, 2.5, 2.0, 0.0]])
    # Beyond the best by (4 - 3), in units of its lead over the last one, (3 - 1).
    beyond = 0.5 * math.exp(-0.5)
    torch.testing.assert_close(
        ranks_against(scores, reference), torch.tensor([[beyond, 1.5, 2.0, 3.5]])
    )
    reference = torch.zeros(1, 20)
    ranks = ranks_against(torch.tensor([[1e-30, 1e30, 0.0]]), reference)
    assert (ranks > 0).all() and ranks[0, 1] <= ranks[0, 0] < ranks[0, 2]
    steps = ranks_against(torch.tensor([[1.0, 2.0, 3.0]]), torch.arange(20.0)[None] / 19)
    assert steps[0].diff().max() < 0


def test_ranks_do_not_depend_on_other_candidates_or_the_default_type() -> None:
    scores, reference = torch.rand(3, 700, generator=torch.Generator().manual_seed(0)).chunk(2, 1)
    whole = ranks_against(scores, reference)
    with torch_defaults():
        some = ranks_against(scores[:, :70], reference)
    assert torch.equal(whole[:, :70], some)


def test_many_candidates_are_ranked_a_chunk_at_a_time(monkeypatch) -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(3, 100, generator=generator)
    reference = scores[:, ::3]
    whole = ranks_against(scores, reference)
    monkeypatch.setattr(ranks, "CHUNK", 16)
    chunks = spy(monkeypatch, ranks, "_ranks")
    assert torch.equal(whole, ranks_against(scores, reference))
    assert [call.args[0].shape[-1] for call in chunks.call_args_list] == [16] * 6 + [4]


def test_ranks_ignore_monotone_transformations() -> None:
    scores, reference = torch.rand(3, 70, generator=torch.Generator().manual_seed(0)).split(50, 1)
    inside = scores < reference.max(-1, keepdim=True).values
    torch.testing.assert_close(
        ranks_against(scores, reference)[inside],
        ranks_against(scores.exp(), reference.exp())[inside],
    )


def test_expected_improvement_is_the_integral_over_a_normal_rank() -> None:
    ranks = torch.tensor([[10.0, 30.0], [14.0, 50.0]])
    incumbent = torch.tensor([10.0, 14.0])  # its mean counts
    ei = ACQUISITIONS["ei"](ranks, incumbent)
    for column in range(2):
        mean, spread = ranks[:, column].mean().item(), ranks[:, column].std(correction=0).item()
        grid = torch.linspace(mean - 8 * spread, mean + 8 * spread, 200_001, dtype=torch.float64)
        density = torch.from_numpy(norm.pdf(grid.numpy(), mean, spread))
        integral = torch.trapezoid((12.0 - grid).clamp_min(0) * density, grid).item()
        assert ei[column].item() == pytest.approx(integral, rel=1e-4, abs=1e-5)


def test_log_rank_ei_is_ei_of_scaled_log_ranks() -> None:
    ranks, incumbent = torch.tensor([[2.0], [4.0]]), torch.tensor([5.0, 3.0])
    value = ACQUISITIONS["log-rank-ei"](ranks, incumbent).item()
    low, high = 10 * math.log(2), 10 * math.log(4)
    gain = 5 * (math.log(5) + math.log(3)) - (low + high) / 2
    spread = (high - low) / 2
    u = gain / spread
    assert value == pytest.approx(gain * norm.cdf(u) + spread * norm.pdf(u), rel=1e-5)


def test_other_acquisitions_by_hand() -> None:
    ranks, incumbent = torch.tensor([[2.0], [4.0]]), torch.tensor([5.0, 3.0])
    assert ACQUISITIONS["pi"](ranks, incumbent).item() == pytest.approx(norm.cdf(1.0), abs=1e-6)
    assert ACQUISITIONS["lcb"](ranks, incumbent).item() == pytest.approx(-(3.0 - 0.1 * 1.0))
    assert ACQUISITIONS["average-rank"](ranks, incumbent).item() == -3.0
    assert ACQUISITIONS["thompson"](ranks, incumbent).item() == -2.0


def test_members_that_agree_leave_finite_values() -> None:
    ranks = torch.full((10, 4), 3.0)
    for name in ACQUISITIONS:
        assert torch.isfinite(ACQUISITIONS[name](ranks, torch.full((10,), 3.0))).all()
    assert ACQUISITIONS["ei"](ranks, torch.full((10,), 1.0)).max() < 1e-3
    assert math.isclose(ACQUISITIONS["ei"](ranks, torch.full((10,), 9.0))[0].item(), 6.0)


def test_names_known_without_torch_are_the_functions_names() -> None:
    assert tuple(ACQUISITIONS) == ACQUISITION_NAMES
