"""The proposals of the universal prior with several objectives: the largest gain of hypervolume.

Each objective has its processes. Samples of their predictions are compared with the Pareto front
along random directions, see `gain`.

Notation: see docs/architecture.md; `O` objectives.
"""

from functools import partial

import numpy as np
import torch

from dre_plugins.engine.ranks import ranks_against
from dre_plugins.recommend.branches import is_within
from dre_plugins.recommend.lists import FAILED_RANK, dense_ranks, select_fantasies
from dre_plugins.recommend.pareto import non_dominated
from dre_plugins.recommend.prior import Universal
from dre_plugins.recommend.proposers.gain import Gain, Samples
from dre_plugins.recommend.proposers.improvement_search import ImprovementSearch
from dre_plugins.recommend.requests import Choice, Request
from dre_plugins.recommend.search import N_PARENTS
from dre_plugins.recommend.universal_prior import BLOCK, Conditioned, network_for, with_broken
from dre_plugins.space.base import Array, Units
from dre_plugins.space.candidates import with_fixed


class HypervolumeProposer:
    """Propose the candidate of the largest expected gain of hypervolume under the universal prior.

    Hypervolumes are of the targets of the processes, in which each objective has a variance of 1.
    At least one trial of the evidence must be ranked.
    """

    def __init__(self, prior: Universal, search: ImprovementSearch) -> None:
        self._search, self._space = search, search.evidence.space
        ranked, _ = search.evidence.joint_list
        self._eligible = search.evidence.may_be_incumbent_in(ranked)
        values = search.evidence.objective_values(ranked.trials)
        is_best = np.zeros(len(values), dtype=np.bool_)
        valued = np.flatnonzero(self._eligible & ~np.isnan(values).any(axis=1))
        is_best[valued] = non_dominated(values[valued])
        self._elite = search.observed[np.lexsort([-ranked.ranks, ~is_best])[:N_PARENTS]]
        self._units = with_broken(search.observed, search.base.rule, self._elite, search.rng)
        missing = np.full((len(self._units) - len(values), values.shape[1]), np.nan)
        self._eligible = np.append(self._eligible, np.zeros(len(missing), dtype=np.bool_))
        features, network = search.features(self._units), network_for(self._space, prior)
        self._objectives = [
            Conditioned.on(network, features, column, _ranks(column))
            for column in np.concatenate([values, missing]).T
        ]
        self._samples = Samples.drawn(self._objectives, search.rng)
        self._means: Array | None = None  # of the reference points `[O, 1, K]`

    def fantasize(self, pending: Units) -> None:
        """Condition the processes on pending trials `[U, P]` at their predicted values.

        At most `lists.MAX_FANTASIES` of them are used.
        """
        pending = select_fantasies(pending, lambda units: self._expected(units).sum(axis=1))
        expected = torch.from_numpy(self._expected(pending))
        self._units = np.concatenate([self._units, pending])
        self._eligible = np.append(self._eligible, np.ones(len(pending), dtype=np.bool_))
        features = self._search.features(self._units)
        self._objectives = [
            objective.with_fantasies(features, targets)
            for objective, targets in zip(self._objectives, expected.T, strict=True)
        ]
        self._search.forget()
        self._means = None

    def propose(self, request: Request) -> Choice:
        """Return the candidate of the largest expected gain of hypervolume."""
        gain = Gain.beyond(self._front(request), self._targets, self._samples.directions)

        def log_gains(features: torch.Tensor) -> torch.Tensor:
            parts = features.split(BLOCK)
            logs = [gain.logs(self._samples.of(self._objectives, part)) for part in parts]
            return torch.from_numpy(np.concatenate(logs))

        return self._search.choose(request, self._elite, log_gains, partial(self._rank, gain))

    @property
    def _targets(self) -> Array:
        """Return the targets of all trials `[N, O]`."""
        return torch.stack([objective.targets for objective in self._objectives], 1).numpy()

    def _front(self, request: Request) -> Array:
        """Return the targets of the trials on the Pareto front `[F, O]`; none if none may be.

        In a branch these are trials of that branch, if there are any. With given values they are
        the expectations of trials that are moved to these values.
        """
        eligible = self._eligible
        if request.branch is not None:
            within = eligible & is_within(self._units, request.branch)
            eligible = within if within.any() else eligible
        targets = self._targets[eligible]
        if not np.isnan(request.fixed).all():
            moved = with_fixed(self._units[eligible], request.fixed)
            targets = self._expected(self._space.canonical(moved))
        return targets[non_dominated(targets)] if len(targets) else targets

    @torch.inference_mode()
    def _expected(self, units: Units) -> Array:
        """Return the expected targets at canonical coordinates `[C, P]`, `[C, O]`."""
        features = self._search.features(units)
        expected = [objective.expected(features) for objective in self._objectives]
        return torch.stack(expected, 1).numpy()

    @torch.inference_mode()
    def _rank(self, gain: Gain, units: Units) -> tuple[float, float]:
        """Return mean and standard deviation of the rank of a candidate `[1, P]`.

        Each sample ranks it along its direction, among expectations of the reference.
        """
        samples = self._samples.of(self._objectives, self._search.features(units))
        along = gain.along(samples)
        if self._means is None:
            self._means = self._expected(self._search.reference).T[:, None]
        reference = torch.from_numpy(gain.along(self._means))
        ranks = ranks_against(torch.from_numpy(along), reference)
        return float(ranks.mean()), float(ranks.std(correction=0))


def _ranks(values: Array) -> Array:
    """Return dense ranks of values `[N]`, NaN as failures."""
    ranks = np.full(len(values), FAILED_RANK)
    is_valued = ~np.isnan(values)
    ranks[is_valued] = dense_ranks(values[is_valued])
    return ranks
