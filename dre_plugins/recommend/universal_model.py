"""The ensemble's partner: every second suggestion is the universal prior's.

Both see the same trials and search the same candidates. What one of them is sure and wrong of, the
other tries, which is worth more than either alone (docs/decisions.md, Search). What priors of past
tasks expect is one more feature to it, of which its processes learn how much it tells.

Notation: see docs/architecture.md; `H` processes of the prior's mixture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from dre_plugins.engine.acquisition import log_expected_improvement
from dre_plugins.engine.ranks import ranks_against
from dre_plugins.recommend.branches import is_within
from dre_plugins.recommend.expectation import Expectation
from dre_plugins.recommend.pending import believed
from dre_plugins.recommend.placing import final_scale, one_list, places
from dre_plugins.recommend.prior import AlignedPrior, Universal, UniversalFile
from dre_plugins.recommend.search import N_PARENTS, CandidateSearch, Choice
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.recommend.trials import Trial
from dre_plugins.recommend.width import narrowed
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.space.seen import Seen
from dre_plugins.universal.file import ready
from dre_plugins.universal.processes import Processes
from dre_plugins.universal.targets import blended

Units = NDArray[np.float64]

# Gauss-Hermite quadrature of three nodes: deviations from the mean of a normal distribution, and
# their shares.
_NODES = (-math.sqrt(3.0), 0.0, math.sqrt(3.0))
_SHARES = (1 / 6, 2 / 3, 1 / 6)


# Candidates judged at once: those of a whole table of the search, with 128 trials 130 MB.
BLOCK = 4096


class UniversalModel:
    """Choose configurations by the processes that the universal prior proposes.

    Args:
        prior: The universal prior that ships, or the file of another one.
        space: The search space.
        settings: The recommender's settings.
        history: Trials, larger values are better, of which one can be ranked at least. Pruned ones
            are read by their places, see `placing`.
        units: Canonical coordinates of their configurations `[N, P]`.
        priors: Meta-trained scorers of past tasks.
        candidates: All that may be chosen `[C, P]`; None searches the space.
        reference_seed: Seed of the reference points, see `CandidateSearch.reference`.
        rng: Source of all randomness of this suggestion.
    """

    needs_contrast = False
    prior_weight = None

    def __init__(
        self,
        prior: Universal,
        space: SearchSpace,
        settings: RecommenderSettings,
        history: Sequence[Trial],
        units: Units,
        *,
        priors: Sequence[AlignedPrior | None],
        candidates: Units | None,
        reference_seed: int,
        rng: np.random.Generator,
    ) -> None:
        self._space = space
        self._search = CandidateSearch(space, candidates, rng)
        placed = places(history)
        observed = one_list(
            history, placed, failed=settings.failed, max_length=settings.max_history
        )
        self._units = units[observed.trials]
        order = np.argsort(-observed.ranks, kind="stable")
        self._elite = self._units[order[:N_PARENTS]]
        spread = self._search.reference(reference_seed)
        self._expectation = Expectation(priors, spread, settings)
        self._reference = self._search.resolving(spread, self._units)
        known = final_scale(history, placed)[observed.trials]
        self._targets = targets(known, observed.ranks)
        self._best = float(self._targets.max())
        if isinstance(prior, UniversalFile):  # states of older versions have no digest
            network = ready(prior.path, getattr(prior, "digest", ""))
        else:
            network = ready()
        self._processes, self._weights = network(
            self._features(self._units)[None], self._targets[None]
        )
        # A pool, its judgement, and what is expected of the reference points.
        self._kept: tuple[Units, torch.Tensor, torch.Tensor] | None = None

    @property
    def n_reference(self) -> int:
        """Return the number of points that ranks are taken against."""
        return len(self._reference)

    def believe(self, units: Units) -> None:
        """Believe unfinished trials where the processes expect them.

        Args:
            units: Canonical coordinates of the unfinished trials `[U, P]`, of which at most
                `pending.N_BELIEVED` are believed.
        """
        units = believed(
            units, lambda all_units: self._mixed(self._posterior(all_units))[0].numpy()
        )
        expected, _ = self._mixed(self._posterior(units))
        self._units = np.concatenate([self._units, units])
        self._targets = torch.cat([self._targets, expected])
        self._processes = Processes.conditioned(
            self._processes.hypotheses, self._features(self._units)[None], self._targets[None]
        )
        self._kept = None

    def choose(
        self,
        seen: Seen,
        fixed: Units,
        index: int,
        *,
        taken: Units | None = None,
        branch: Units | None = None,
    ) -> Choice:
        """Choose the candidate of the largest expected improvement, see `RankingModel.choose`."""
        value = partial(self._value, best=self._incumbent_target(branch))
        if branch is not None or taken is None or self._kept is None:
            elite = self._elite if branch is None else self._elite[is_within(self._elite, branch)]
            pool, judged = self._search.pool(
                self._judge,
                value,
                elite=elite,
                favourites=self._units[:0],
                fixed=fixed,
                branch=branch,
            )
            self._kept = pool, judged, self._posterior(self._reference).chunk(2)[0]
        pool, judged, reference = self._kept
        units, judged, is_new = self._search.best(
            pool, judged, self._judge, value, seen=seen, fixed=fixed, taken=taken
        )
        rank, spread = self._rank(judged, reference)
        return Choice(units, rank, spread, is_new, "universal-prior")

    def _rank(self, judged: torch.Tensor, reference: torch.Tensor) -> tuple[float, float]:
        """Return mean and deviation of the rank of one candidate, over all that it may be worth.

        It is chosen for what few processes may hope of it, of which its mean value alone would
        say nothing.

        Args:
            judged: What the processes say of it `[2 H, 1]`.
            reference: What they expect of the reference points `[H, K]`.
        """
        means, deviations = judged.chunk(2)
        nodes = means + deviations * torch.tensor(_NODES, dtype=means.dtype)
        ranks = ranks_against(nodes, reference)
        shares = self._weights[0, :, None].exp() * torch.tensor(_SHARES, dtype=means.dtype)
        mean = (shares * ranks).sum()
        spread = (shares * (ranks - mean).square()).sum().sqrt()
        return float(mean), float(spread)

    def _judge(self, pool: Units) -> torch.Tensor:
        return self._posterior(self._space.canonical(pool))

    def _posterior(self, units: Units) -> torch.Tensor:
        """Return means, then deviations, of all processes `[2 H, C]`."""
        parts = []
        for block in np.split(units, range(BLOCK, len(units), BLOCK)):
            means, variances = self._processes.posterior(self._features(block)[None])
            parts.append(torch.cat([means[0], variances[0].sqrt()]))
        return parts[0] if len(parts) == 1 else torch.cat(parts, -1)

    def _mixed(self, judged: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return mean and deviation of the mixture `[C]`."""
        means, deviations = judged.chunk(2)
        weights = self._weights[0, :, None].exp()
        mean = (weights * means).sum(0)
        square = (weights * (deviations.square() + means.square())).sum(0)
        return mean, (square - mean.square()).clamp_min(0.0).sqrt()

    def _incumbent_target(self, branch: Units | None) -> float:
        """Return the target of the incumbent, of a branch that of its own if it has any trial."""
        if branch is not None and (within := is_within(self._units, branch)).any():
            return float(self._targets[torch.from_numpy(within)].max())
        return self._best

    def _value(self, judged: torch.Tensor, best: float) -> torch.Tensor:
        """Return the logarithm of the expected improvement of the mixture on `best` `[C]`."""
        means, deviations = judged.chunk(2)
        each = log_expected_improvement(means, deviations, best)
        return torch.logsumexp(self._weights[0, :, None] + each, 0)

    def _features(self, units: Units) -> torch.Tensor:
        own, expected = narrowed(self._space.features(units)), self._expectation.features(units)
        return torch.from_numpy(np.concatenate([own, expected], axis=1)).double()


def targets(values: Units, ranks: Units) -> torch.Tensor:
    """Return what the processes are conditioned on, see `universal.targets`, `[N]`.

    Infinities are as good as the largest finite value on their side, and failures as bad as the
    worst.

    Args:
        values: Final values `[N]`, larger is better; NaN for failures.
        ranks: Their dense ranks `[N]`.
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return blended(torch.from_numpy(ranks), torch.zeros(len(ranks), dtype=torch.float64))[0]
    low, high = finite.min(), finite.max()
    known = np.clip(np.where(np.isnan(values), low, values), low, high)
    # By the largest first: sums and squares of 1e300 are no floats.
    known = known / max(abs(low), abs(high), np.finfo(np.float64).tiny)
    return blended(torch.from_numpy(ranks), torch.from_numpy(known))[0]
