"""Derivatives in closed form, by which candidates are refined."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from dre_plugins.recommend.evidence import Constraint
from dre_plugins.recommend.gain_weights import ConstraintModel, CostModel, GainWeights
from dre_plugins.recommend.universal_prior import Conditioned, network_for
from dre_plugins.space import Float, SearchSpace
from dre_plugins.space.base import Array
from dre_plugins.universal.derivatives import DifferentiablePosterior

SPACE = SearchSpace({f"x{i}": Float(0.0, 1.0) for i in range(4)})
STEP = 1e-6


def conditioned(n_trials: int) -> tuple[Array, Conditioned]:
    """Return trials `[N, D]`, and likely processes that are conditioned on them."""
    trials = np.random.default_rng(n_trials).random((n_trials, 4))
    values = torch.from_numpy(-np.square(trials - 0.4).sum(1))
    targets = (values - values.mean()) / values.std()
    features, variance = torch.from_numpy(trials)[None], torch.tensor([4.0])
    processes, log_weights = network_for(SPACE)(features, targets[None], variance)
    return trials, Conditioned(targets, *processes.likely(log_weights))


def candidates(trials: Array) -> Array:
    """Return candidates `[K, D]`: anywhere, near a trial, near bounds, and beyond these."""
    found = np.random.default_rng(1).random((5, 4))
    found[1] = trials[0] + 1e-3
    found[2, :2] = 2e-4, 1.0 - 2e-4
    found[3, :2] = -0.3, 1.2  # of ranges that were narrowed
    return found


def differences(values: Callable[[Array], Array], features: Array) -> Array:
    """Return derivatives `[K, D]` of values `[K]`, each of its own row, by central differences."""
    steps = STEP * np.eye(features.shape[1])
    columns = [
        (values(features + step) - values(features - step)) / (2.0 * STEP) for step in steps
    ]
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("n_trials", [3, 40])
def test_predictions_are_those_of_the_processes(n_trials: int) -> None:
    trials, objective = conditioned(n_trials)
    features, processes = candidates(trials), objective.processes
    means, variances, derivatives = DifferentiablePosterior(processes)(features)
    expected = processes.posterior(torch.from_numpy(features)[None])
    np.testing.assert_allclose(means, expected[0][0].numpy(), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(variances, expected[1][0].numpy(), rtol=1e-5, atol=1e-8)
    by_mean, by_variance = np.random.default_rng(2).normal(size=(2, *means.shape))

    def total(features: Array) -> Array:
        means, variances = processes.posterior(torch.from_numpy(features)[None])
        return (by_mean * means[0].numpy() + by_variance * variances[0].numpy()).sum(0)

    found, wanted = derivatives(by_mean, by_variance), differences(total, features)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


# Below, among and far beyond the targets of the trials, which have a variance of 1.
@pytest.mark.parametrize("best", [-1.0, 2.0, 60.0])
def test_improvements_are_those_of_the_proposer(best: float) -> None:
    trials, objective = conditioned(12)
    features = candidates(trials)

    def logs(features: Array) -> Array:
        return objective.log_improvements(torch.from_numpy(features), best)

    found, derivatives = objective.log_improvements_with_derivatives(features, best)
    np.testing.assert_allclose(found, logs(features), rtol=1e-6)
    wanted = differences(logs, features)
    np.testing.assert_allclose(derivatives, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


def test_weights_of_gains() -> None:
    trials = np.random.default_rng(0).random((20, 4))
    rows = np.arange(20)
    limits = [Constraint(rows, trials[:, 0] - 0.6), Constraint(rows, 0.3 - trials[:, 1])]
    models = [ConstraintModel(SPACE, trials, limit) for limit in limits]
    costs = CostModel(SPACE, trials, np.exp(3.0 * trials[:, 2]))
    features = candidates(trials)
    for weights in (GainWeights(SPACE, models, None), GainWeights(SPACE, (), costs)):
        found = weights.with_derivatives(features)

        def values(features: Array, weights=weights) -> Array:
            asked = torch.from_numpy(features)
            return sum(model.log_weights(asked) for model in weights.models)

        np.testing.assert_allclose(found[0], values(features), rtol=1e-6)
        wanted = differences(values, features)
        np.testing.assert_allclose(found[1], wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())
