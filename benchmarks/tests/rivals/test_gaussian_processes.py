"""Baselines with Gaussian processes, on tables small enough for a test."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

with warnings.catch_warnings():
    # torch 2.13 deprecates a decorator that linear_operator uses when it is imported.
    warnings.simplefilter("ignore")
    pytest.importorskip("gpytorch")
    pytest.importorskip("botorch")

from smooth_tables import (
    PAST,
    RANDOM,
    ROWS,
    VALUES,
    check_degenerate_tables,
    first_choice,
    hill,
    regret,
)

from dre_bench.rivals.deep_kernel_gp import DKGP, FSBO
from dre_bench.rivals.gaussian_process import GP
from dre_bench.rivals.past_models import PastModels, gaussian_process, marginals
from dre_bench.rivals.protocol import log_expected_improvement, standardised
from dre_bench.rivals.rgpe import RGPE, leave_one_out, misranked, shares
from dre_bench.rivals.two_stage import TAF, TST, epanechnikov

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    # Rows that were observed twice make a singular covariance, of which gpytorch warns.
    pytest.mark.filterwarnings("ignore:.*jitter"),
]

METHODS = {
    "gp": GP,
    "dkgp": lambda **seed: DKGP(n_steps=30, learning_rate=0.03, **seed),
    "fsbo": lambda **seed: FSBO(PAST, n_training_steps=150, n_steps=10, **seed),
    "rgpe": lambda **seed: RGPE(PAST, n_rows=15, n_draws=32, **seed),
    "tst": lambda **seed: TST(PAST, n_rows=15, **seed),
    "taf": lambda **seed: TAF(PAST, n_rows=15, **seed),
}


@pytest.fixture(scope="module")
def methods():
    return {name: make(seed=0) for name, make in METHODS.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_each_beats_random_search(methods, name):
    assert regret(methods[name]) < np.quantile(RANDOM, 0.2)


@pytest.mark.parametrize("name", METHODS)
def test_choices_repeat_and_leave_global_state_alone(methods, name):
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    chosen = first_choice(methods[name])
    again = METHODS[name](seed=0)
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert (np.random.get_state()[1] == numpy_state).all()  # noqa: NPY002
    torch.rand(3)
    assert first_choice(again) == first_choice(methods[name]) == chosen


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_degenerate_tables_are_no_error(methods, name):
    check_degenerate_tables(methods[name])


@pytest.mark.parametrize("name", ["fsbo", "rgpe", "tst", "taf"])
def test_past_tasks_must_have_the_columns_of_the_table(methods, name):
    with pytest.raises(ValueError, match="2 columns"):
        first_choice(methods[name], X=ROWS[:5, :1], pending=ROWS[5:, :1])
    with pytest.raises(ValueError, match="past"):
        type(methods[name])([])


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", ["rgpe", "tst", "taf", "fsbo"])
@pytest.mark.parametrize(
    "past",
    [PAST[:1], [*PAST[:2], (ROWS[:20], np.ones(20)), (ROWS[:1], [2.0])]],
    ids=["a single one", "equal values and one row"],
)
def test_odd_past_tasks_are_no_error(name, past):
    make = {"rgpe": RGPE, "tst": TST, "taf": TAF}.get(name)
    method = make(past, n_rows=20) if make else FSBO(past, n_training_steps=20, n_steps=10)
    assert 0 <= first_choice(method) < 195


def test_what_past_tasks_share_is_chosen_at_once():
    """With one observation, only who learnt of past tasks knows where to look."""
    past = [(ROWS, hill(np.array([0.8, 0.2])) + shift) for shift in (0.0, 5.0)]
    for method in (RGPE(past, n_rows=30), TST(past, n_rows=30), TAF(past, n_rows=30)):
        chosen = ROWS[5:][first_choice(method, VALUES[:1], ROWS[:1])]
        assert np.abs(chosen - [0.8, 0.2]).max() < 0.15


def test_the_models_of_past_tasks_are_those_of_single_ones():
    """One batch of Gaussian processes predicts as each of them does alone."""
    rng = np.random.default_rng(0)
    past = [(X[:20], y[:20] + rng.normal(scale=0.2, size=20)) for X, y in PAST[:3]]
    together = PastModels(past, 20, rng)
    rows = torch.from_numpy(ROWS[60:90])
    means, variances = together.marginals(rows)
    for mean, variance, (X, y) in zip(means, variances, past, strict=True):
        single = gaussian_process(torch.from_numpy(X), standardised(torch.from_numpy(y)))
        expected_mean, expected_variance = marginals(single, rows)
        np.testing.assert_allclose(mean, expected_mean, atol=0.02)
        np.testing.assert_allclose(variance, expected_variance, atol=0.02)
    draws = together.draws(rows, 400)
    assert draws.shape == (400, 3, 30)
    np.testing.assert_allclose(draws.mean(0), means, atol=0.15)
    np.testing.assert_allclose(draws.var(0), variances, atol=0.05)


def test_leaving_one_out_is_what_conditioning_on_the_rest_says():
    X, y = torch.from_numpy(ROWS[:8]), torch.from_numpy(VALUES[:8])
    y = (y - y.mean()) / y.std()
    model = gaussian_process(X, y)
    mean, variance = leave_one_out(model, X, y)
    prior = model.likelihood(model.forward(X))
    K, m = prior.covariance_matrix.detach(), prior.mean.detach()
    noise = model.likelihood.noise.detach()
    for i in range(8):
        rest = [j for j in range(8) if j != i]
        gain = torch.linalg.solve(K[rest][:, rest], K[rest, i])
        assert mean[i] == pytest.approx(float(m[i] + gain @ (y[rest] - m[rest])), abs=1e-6)
        expected = max(float(K[i, i] - gain @ K[rest, i] - noise), 1e-9)
        assert variance[i] == pytest.approx(expected, abs=1e-6)


def test_misranked_pairs_by_hand():
    values = torch.tensor([1.0, 2.0, 3.0])
    draws = torch.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [2.0, 1.0, 3.0]])
    assert misranked(draws, draws, values).tolist() == [0.0, 6.0, 2.0]


def test_shares_go_to_the_best_rankers_and_ties_are_shared():
    # Three models by four draws; the last is the new task's own.
    losses = torch.tensor([[0.0, 2.0, 1.0, 1.0], [9.0, 9.0, 9.0, 0.0], [2.0, 2.0, 2.0, 2.0]])
    # The second one's median is far above all of the own losses: it is dropped.
    assert shares(losses).tolist() == [0.875, 0.0, 0.125]


def test_a_past_task_that_ranks_otherwise_has_no_weight():
    assert epanechnikov(torch.tensor([0.0, 0.5, 1.0, 3.0])).tolist() == [0.75, 0.5625, 0.0, 0.0]
    past = [(ROWS[:60], -scale * VALUES[:60]) for scale in (1.0, 5.0)]
    observed, values, pending = ROWS[:12], VALUES[:12], ROWS[12:]
    model = gaussian_process(torch.from_numpy(observed), standardised(torch.from_numpy(values)))
    mean, variance = marginals(model, torch.from_numpy(pending))
    best = standardised(torch.from_numpy(values)).max()
    improvement = log_expected_improvement(mean, variance.sqrt(), best)
    for make in (TST, TAF):
        assert (
            first_choice(make(past, n_rows=20), values, observed, pending) == improvement.argmax()
        )
    # With a weight, they would choose what past tasks liked.
    wide = TAF(past, n_rows=20, bandwidth=5.0)
    assert first_choice(wide, values, observed, pending) != improvement.argmax()
