"""Members of several origins in one ensemble."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from lists_of_tasks import PLAIN
from scipy.stats import spearmanr

from dre_plugins.engine import FittingSettings
from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.recommend.lists import TrialList
from dre_plugins.recommend.members import Members, Mixture

FITTING = FittingSettings(n_steps=80, learning_rate=0.03)


def whole(units: np.ndarray) -> np.ndarray:
    return units.astype(np.float32)


def first_column(units: np.ndarray) -> np.ndarray:
    return units[:, :1].astype(np.float32)


def part(encode=whole, n_members: int = 2, seed: int = 0) -> Members:
    scorer = replace(PLAIN, n_members=n_members)
    n_features = encode(np.zeros((1, 2))).shape[1]
    ensemble = DeepRankingEnsemble.initialise(scorer, n_features, seed=seed)
    return Members(ensemble, encode, FITTING)


def points(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((n, 2))


def listed(ranks: np.ndarray, weight: float = 1.0) -> TrialList:
    return TrialList(np.arange(len(ranks)), ranks.argsort().argsort().astype(float), weight)


def agreement(ranks: torch.Tensor, values: np.ndarray) -> float:
    return -float(spearmanr(ranks.mean(0).numpy(), values).statistic)


def test_a_mixture_is_the_ranks_of_its_parts_one_below_the_other() -> None:
    parts = [part(n_members=3), part(first_column, n_members=1), part(seed=1)]
    reference, units = points(64), points(20, seed=1)
    ranks = Mixture(parts, reference).ranks(units)
    assert ranks.shape == (6, 20)
    separate = [Mixture([member], reference).ranks(units) for member in parts]
    assert torch.equal(ranks, torch.cat(separate))
    # Reference points have the ranks of a table.
    of_table = Mixture(parts, reference).ranks(reference).sort(dim=1).values
    torch.testing.assert_close(of_table, torch.arange(1.0, 65.0).expand(6, -1))


def test_parts_whose_scores_are_of_other_magnitudes_are_comparable() -> None:
    small = part()
    scaled = {
        name: value * 1000.0 if name.startswith("scorer.2.") else value
        for name, value in small.ensemble.parameters.items()
    }
    large = replace(small, ensemble=replace(small.ensemble, parameters=scaled))
    reference, units = points(64), points(20, seed=1)
    ranks = Mixture([small, large], reference).ranks(units)
    torch.testing.assert_close(ranks[:2], ranks[2:], rtol=1e-3, atol=1e-3)


def test_every_part_is_fitted_to_the_features_that_it_reads() -> None:
    units = points(40)
    lists = [listed(units[:, 1] + 0.1 * units[:, 0])]
    unseen = points(100, seed=1)
    both, first = (member.fit(lists, units, 0, 1.0) for member in (part(), part(first_column)))
    ranks = Mixture([both, first], units).ranks(unseen)
    assert agreement(ranks[:2], unseen[:, 1]) > 0.8
    assert abs(agreement(ranks[2:], unseen[:, 1])) < 0.4


def test_a_fit_takes_its_share_of_the_steps_and_leaves_the_part_alone() -> None:
    unfitted, units = part(), points(20)
    before = {name: value.clone() for name, value in unfitted.ensemble.parameters.items()}
    lists = [listed(units[:, 0])]
    quarter = unfitted.fit(lists, units, 3, 0.25)
    padded = unfitted.padded(lists, units)
    expected = unfitted.ensemble.fit(padded, replace(FITTING, n_steps=20), seed=3)
    for name, value in expected.parameters.items():
        assert torch.equal(quarter.ensemble.parameters[name], value)
        assert torch.equal(unfitted.ensemble.parameters[name], before[name])
    assert quarter.fitting == FITTING
    assert unfitted.fit([], units, 0, 1.0) is unfitted


def test_scores_that_are_not_finite_are_an_error() -> None:
    unfitted = part()
    broken = {name: value * float("nan") for name, value in unfitted.ensemble.parameters.items()}
    with pytest.raises(FloatingPointError, match="not finite"):
        Mixture(
            [replace(unfitted, ensemble=replace(unfitted.ensemble, parameters=broken))], points(4)
        )


def test_lists_are_padded_to_the_longest() -> None:
    units = np.arange(8.0)[:, None]
    lists = [
        TrialList(np.array([5, 1, 7]), np.array([2.0, 0.0, -1.0]), 1.0),
        TrialList(np.array([3]), np.array([0.0]), 0.25),
    ]
    made = part(first_column).padded(lists, units)
    assert made.features[0, :, :, 0].tolist() == [[5.0, 1.0, 7.0], [3.0, 0.0, 0.0]]
    assert made.values[0].tolist() == [[2.0, 0.0, -1.0], [0.0, 0.0, 0.0]]
    assert made.mask[0].tolist() == [[True] * 3, [True, False, False]]
    assert made.weights.tolist() == [1.0, 0.25]
