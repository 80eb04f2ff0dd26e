"""The ensemble's partner: every second suggestion without a prior is a Gaussian process's.

Both see the same trials and search the same candidates. What one of them is sure and wrong of, the
other tries, which is worth more than either alone (docs/decisions.md, Search).

Notation: see docs/architecture.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import norm, rankdata

from dre_plugins.engine.acquisition import log_expected_improvement
from dre_plugins.engine.ranks import ranks_against
from dre_plugins.recommend.gaussian_process import GaussianProcess
from dre_plugins.recommend.lists import final_value, trial_lists
from dre_plugins.recommend.search import N_PARENTS, CandidateSearch, Choice
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.recommend.trials import Trial
from dre_plugins.space.search_space import SearchSpace

Units = NDArray[np.float64]


class GaussianModel:
    """Choose configurations by a Gaussian process of one list.

    Args:
        space: The search space.
        settings: The recommender's settings.
        history: Trials, larger values are better, whose final values make one list.
        units: Canonical coordinates of their configurations `[N, P]`.
        candidates: All that may be chosen `[C, P]`; None searches the space.
        reference_seed: Seed of the reference points, see `CandidateSearch.reference`.
        rng: Source of all randomness of this suggestion.
    """

    needs_contrast = False
    prior_weight = None

    def __init__(
        self,
        space: SearchSpace,
        settings: RecommenderSettings,
        history: Sequence[Trial],
        units: Units,
        *,
        candidates: Units | None,
        reference_seed: int,
        rng: np.random.Generator,
    ) -> None:
        self._space = space
        self._search = CandidateSearch(space, candidates, rng)
        (observed,) = trial_lists(history, failed=settings.failed, max_length=settings.max_history)
        self._units = units[observed.trials]
        order = np.argsort(-observed.ranks, kind="stable")
        self._elite = self._units[order[:N_PARENTS]]
        spread = self._search.reference(reference_seed)
        self._reference = self._search.resolving(spread, self._units)
        values = [final_value(history[trial]) for trial in observed.trials]
        known = np.array([np.nan if value is None else value for value in values])
        self._targets = torch.from_numpy(targets(known, observed.ranks))
        self._best = float(self._targets.max())
        self._process = GaussianProcess.fit(self._features(self._units), self._targets)

    @property
    def n_reference(self) -> int:
        """Return the number of points that ranks are taken against."""
        return len(self._reference)

    def believe(self, units: Units) -> None:
        """Believe unfinished trials where the process expects them.

        Args:
            units: Canonical coordinates of the unfinished trials `[U, P]`.
        """
        expected, _ = self._process.posterior(self._features(units))
        self._units = np.concatenate([self._units, units])
        self._targets = torch.cat([self._targets, expected])
        self._process = self._process.conditioned(self._features(self._units), self._targets)

    def choose(self, seen: set[bytes], fixed: Units, index: int) -> Choice:
        """Choose the candidate of the largest expected improvement, see `RankingModel.choose`."""
        pool, judged = self._search.pool(
            self._judge,
            self._value,
            elite=self._elite,
            favourites=self._units[:0],
            fixed=fixed,
        )
        units, (mean, deviation), is_new = self._search.best(
            pool, judged, self._judge, self._value, seen=seen, fixed=fixed
        )
        reference, _ = self._process.posterior(self._features(self._reference))
        around = torch.cat([mean, mean - deviation, mean + deviation])
        rank, worse, better = ranks_against(around[None], reference[None])[0].tolist()
        return Choice(units, rank, 0.5 * (worse - better), is_new, "gaussian-process")

    def _judge(self, pool: Units) -> torch.Tensor:
        """Return means and standard deviations `[2, C]` of coordinates `[C, P]`."""
        return torch.stack(self._process.posterior(self._features(self._space.canonical(pool))))

    def _value(self, judged: torch.Tensor) -> torch.Tensor:
        return log_expected_improvement(judged[0], judged[1], self._best)

    def _features(self, units: Units) -> torch.Tensor:
        return torch.from_numpy(self._space.features(units))


def targets(values: Units, ranks: Units) -> Units:
    """Return what the process is fitted to: half values, half their order, standardised `[N]`.

    Values tell how flat an optimum is, normal scores of their order keep outliers and decades
    from hiding all else. Infinities are as good as the largest finite value on their side, and
    failures as bad as the worst.

    Args:
        values: Final values `[N]`, larger is better; NaN for failures.
        ranks: Their dense ranks `[N]`.
    """
    scores = norm.ppf(rankdata(ranks) / (len(ranks) + 1))
    finite = values[np.isfinite(values)]
    if not len(finite):
        return _standardised(scores)
    low, high = finite.min(), finite.max()
    known = np.clip(np.where(np.isnan(values), low, values), low, high)
    # By the largest first: sums and squares of 1e300 are no floats.
    known = known / max(abs(low), abs(high), np.finfo(np.float64).tiny)
    return _standardised(_standardised(scores) + _standardised(known))


def _standardised(numbers: Units) -> Units:
    """Return numbers with mean 0 and variance 1; zeros if they are all the same."""
    centred = numbers - numbers.mean()
    spread = centred.std()
    standardised: Units = centred / spread if spread > 0 else np.zeros_like(centred)
    return standardised
