"""What all baselines share, and those that need PyTorch only."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from smooth_tables import PAST, RANDOM, ROWS, VALUES, check_degenerate_tables, first_choice, regret

from dre_bench.rivals import deep_ensemble
from dre_bench.rivals.deep_ensemble import DeepEnsemble, mixture_moments
from dre_bench.rivals.protocol import log_expected_improvement, past_tables, sampled, standardised
from dre_bench.rivals.random_search import Random
from dre_plugins.space import Float, SearchSpace
from dre_plugins.transfer.metadata import MetaDataset, Task


def quick_ensemble(seed=0):
    return DeepEnsemble(n_steps=300, seed=seed)


@pytest.mark.slow
@pytest.mark.long
def test_a_deep_ensemble_beats_random_search():
    assert regret(quick_ensemble()) < np.quantile(RANDOM, 0.2)


@pytest.mark.parametrize("make", [Random, lambda seed: DeepEnsemble(n_steps=30, seed=seed)])
def test_choices_repeat_with_the_seed_and_leave_global_state_alone(make):
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    n_threads = torch.get_num_threads()
    chosen = first_choice(make(seed=1))
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert (np.random.get_state()[1] == numpy_state).all()  # noqa: NPY002
    assert torch.get_num_threads() == n_threads
    torch.rand(3)
    method = make(seed=1)
    assert first_choice(method) == first_choice(method) == chosen
    assert first_choice(make(seed=0).with_seed(1)) == chosen


@pytest.mark.parametrize("make", [Random, lambda: DeepEnsemble(n_steps=30)])
def test_degenerate_tables_are_no_error(make):
    check_degenerate_tables(make())


def test_members_that_disagree_are_unsure():
    means, variances = (
        torch.tensor([[0.0, 5.0], [2.0, 5.0]]),
        torch.tensor([[1.0, 0.5], [2.0, 0.1]]),
    )
    mean, variance = mixture_moments(means, variances)
    assert mean.tolist() == [1.0, 5.0]
    assert variance.tolist() == pytest.approx([1.5 + 1.0, 0.3])


def test_a_deep_ensemble_uses_that_variance(monkeypatch):
    """Of two rows of equal mean, the one that members disagree about is worth more."""

    def predicted(parameters, rows):
        means = torch.tensor([[0.0, 1.0, 0.0], [0.0, -1.0, 0.0]])
        return means, torch.full((2, 3), 0.01)

    monkeypatch.setattr(deep_ensemble, "_predicted", predicted)
    assert first_choice(DeepEnsemble(n_members=2, n_steps=0), pending=ROWS[5:8]) == 1


def test_random_search_depends_on_seed_and_number_of_observations():
    by_seed = {first_choice(Random(seed=seed)) for seed in range(20)}
    by_number = {first_choice(Random(seed=0), VALUES[:n], ROWS[:n]) for n in range(1, 21)}
    assert len(by_seed) > 15
    assert len(by_number) > 15
    # Each row has its chance.
    pending = ROWS[5:8]
    chosen = [first_choice(Random(seed=seed), pending=pending) for seed in range(90)]
    assert min(np.bincount(chosen, minlength=3)) > 15


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": -1}, "seed"),
        ({"seed": 0.5}, "seed"),
        ({"n_threads": 0}, "n_threads"),
        ({"n_members": 0}, "n_members"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        DeepEnsemble(**arguments)


@pytest.mark.parametrize(
    ("y", "X", "pending", "message"),
    [
        ([1.0], ROWS[:2], ROWS[2:], r"X_observed.*\(1, 2\).*\(2, 2\)"),
        ([1.0], ROWS[:1, :1], ROWS[2:], r"X_observed.*\(1, 2\).*\(1, 1\)"),
        ([1.0], [[np.nan, 1.0]], ROWS[2:], "X_observed.*finite"),
        ([1.0], ROWS[:1], ROWS[0], "X_pending.*matrix"),
        ([1.0], ROWS[:1], ROWS[:0], "X_pending.*at least one row"),
    ],
)
def test_arrays_that_do_not_fit_are_named(y, X, pending, message):
    with pytest.raises(ValueError, match=message):
        Random().observe_and_suggest(X, y, pending)


def test_the_logarithm_of_the_expected_improvement():
    means = torch.linspace(-30.0, 3.0, 40, dtype=torch.float64)
    gains = log_expected_improvement(means, torch.full_like(means, 1.3), 0.7)
    for mean, got in zip(means.tolist(), gains.tolist(), strict=True):
        normal = stats.norm(mean, 1.3)
        expected, _ = integrate.quad(
            lambda y, normal=normal: (y - 0.7) * normal.pdf(y), 0.7, 0.7 + 40, points=[1.0, 3.0]
        )
        assert got == pytest.approx(np.log(expected), rel=1e-6)
    far = log_expected_improvement(
        torch.tensor([-1e8, -1e5, -1e3, 0.0]).double(), torch.ones(4), 0
    )
    assert torch.isfinite(far).all()
    assert (far.diff() > 0).all()
    sure = log_expected_improvement(torch.tensor([0.0, 1.0, 2.0]), torch.zeros(3), 0.5)
    assert sure.argmax() == 2
    assert sure[2].exp() == pytest.approx(1.5, rel=1e-4)


def test_standardised_values_of_equal_ones_are_zero():
    assert (standardised(torch.full((3,), 0.1, dtype=torch.float64)) == 0.0).all()
    values = standardised(torch.tensor([[1.0, 2.0, 6.0], [5.0, 5.0, 5.0]]))
    assert values.mean(-1).abs().max() < 1e-6
    assert values[0].square().mean() == pytest.approx(1.0)


def test_past_tasks_are_metadata_or_pairs():
    space = SearchSpace({"a": Float(0.0, 1.0), "b": Float(0.0, 1.0)})
    values = PAST[0][1].copy()
    values[3] = np.nan
    tasks = [
        Task("one", space, PAST[0][0], values, np.isnan(values)),
        Task("failed", space, ROWS[:2], np.full(2, np.nan), np.ones(2, dtype=bool)),
    ]
    tables = past_tables(MetaDataset.of(tasks))
    (from_pairs,) = past_tables([(PAST[0][0], values[:, None])])
    assert len(tables) == 1
    np.testing.assert_allclose(tables[0][0], from_pairs[0], atol=1e-7)
    assert torch.equal(tables[0][1], from_pairs[1])
    assert len(tables[0][1]) == 59


def test_past_tasks_that_do_not_fit_are_named():
    spaces = [SearchSpace({name: Float(0.0, 1.0)}) for name in "ab"]
    tasks = [
        Task(f"{space}", space, ROWS[:2, :1], VALUES[:2], np.zeros(2, dtype=bool))
        for space in spaces
    ]
    with pytest.raises(ValueError, match=r"past.*one search space"):
        past_tables(MetaDataset.of(tasks))
    with pytest.raises(ValueError, match=r"past.*at least one task"):
        past_tables([])
    with pytest.raises(ValueError, match=r"past\[1\].*\(3, 2\).*\(3, 1\)"):
        past_tables([(ROWS[:2], [0.0, 1.0]), (ROWS[:3, :1], [0.0, 1.0, 2.0])])


def test_short_tables_are_repeated_rather_than_cut():
    table = (torch.arange(5.0)[:, None], torch.arange(5.0))
    rows, values = sampled(table, 12, np.random.default_rng(0))
    assert rows.shape == (12, 1)
    assert torch.equal(rows[:, 0], values)
    assert sorted(set(values.tolist())) == [0.0, 1.0, 2.0, 3.0, 4.0]
    few = sampled(table, 3, np.random.default_rng(0))[1]
    assert len(set(few.tolist())) == 3
