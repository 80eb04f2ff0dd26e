import numpy as np
import pytest
import torch
from blends import blended
from scipy.stats import norm, rankdata
from torch_defaults import torch_defaults

from dre_plugins.universal.targets import both_targets, normal_scores


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("n", [2, 3, 30, 300])
def test_targets_have_mean_0_and_variance_1(n: int) -> None:
    targets = blended(draw(5, n).exp())
    torch.testing.assert_close(targets.mean(-1), torch.zeros(5).double(), atol=1e-12, rtol=0)
    torch.testing.assert_close(targets.var(-1, correction=0), torch.ones(5).double())


def test_they_are_half_values_and_half_order() -> None:
    values = torch.tensor([3.0, -1.0, 50.0, 0.5], dtype=torch.float64)
    scores = torch.from_numpy(norm.ppf(rankdata(values) / 5))
    by_hand = sum((half - half.mean()) / half.std(correction=0) for half in (values, scores))
    torch.testing.assert_close(blended(values), by_hand / by_hand.std(correction=0))


def test_the_factor_is_that_of_the_slopes_of_targets_by_values() -> None:
    quantiles = torch.from_numpy(norm.ppf((np.arange(400) + 0.5) / 400))
    values = quantiles.mul(0.5).exp()
    blend, plain = both_targets(values, values)
    slopes = torch.gradient(blend.values, spacing=(plain.values,))[0]
    assert blend.log_factor == pytest.approx(slopes.log().sum().item(), abs=0.04 * 400)
    assert both_targets(quantiles, quantiles)[0].log_factor == pytest.approx(0.0, abs=0.02 * 400)


@pytest.mark.parametrize("unit", [1e-9, 3.0, 1e9])
@pytest.mark.parametrize("shift", [0.0, -7.0, 1e4])
def test_units_and_shifts_do_not_matter(unit: float, shift: float) -> None:
    values = draw(30)
    torch.testing.assert_close(
        blended(unit * (values + shift)), blended(values), atol=1e-9, rtol=1e-9
    )


def test_an_outlier_leaves_the_others_apart() -> None:
    values = torch.cat([torch.linspace(0, 1, 20), torch.tensor([1e6])]).double()
    standardised = (values - values.mean()) / values.std(correction=0)
    assert standardised[:20].diff().max() < 1e-6
    assert blended(values)[:20].diff().min() > 0.05


def test_scores_of_ties_are_those_of_mean_ranks() -> None:
    numbers = draw(4, 25).mul(2.0).round()
    expected = norm.ppf(rankdata(numbers, axis=1) / 26)
    torch.testing.assert_close(
        normal_scores(numbers), torch.from_numpy(expected), atol=1e-6, rtol=1e-6
    )


@pytest.mark.parametrize("value", [0.0, 0.1, -1 / 3, 1e-30, 1e6])
@pytest.mark.parametrize("n", [1, 3, 7, 60])
def test_values_that_are_all_the_same_say_nothing(value: float, n: int) -> None:
    values = torch.full((2, n), value, dtype=torch.float64)
    assert torch.equal(blended(values), torch.zeros(2, n).double())
    assert torch.equal(blended(values.float()), torch.zeros(2, n))


def test_a_batch_equals_its_tasks() -> None:
    values = draw(4, 20).exp()
    values[2] = 0.1
    single = torch.stack([blended(row) for row in values])
    torch.testing.assert_close(blended(values), single, atol=1e-12, rtol=0)


def test_order_may_tell_apart_what_values_do_not() -> None:
    targets = both_targets(torch.arange(5.0), torch.zeros(5))[0].values
    assert (targets.diff() > 0).all() and targets.std(correction=0).item() == pytest.approx(1.0)


def test_the_users_default_type_does_not_matter() -> None:
    values = draw(30)
    expected = blended(values)
    with torch_defaults():
        found = blended(values)
    assert torch.equal(found, expected)
