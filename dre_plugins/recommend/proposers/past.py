"""The proposals of past studies, before the study's own trials tell enough."""

from dataclasses import replace
from operator import itemgetter

import numpy as np
import torch

from dre_plugins.recommend.batch import Batch
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.proposers.space_filling import SpaceFilling
from dre_plugins.recommend.schedule import Choice, Request, stream
from dre_plugins.space.base import Units


class PastProposer:
    """Propose the candidate that past tasks expect to gain most.

    If none is expected to gain anything, it is a space-filling point. At least one past task must
    count, see `Batch.past_gains`.
    """

    def __init__(self, batch: Batch) -> None:
        assert batch.past_gains is not None
        self._batch, self._search, self._gains = batch, batch.search, batch.past_gains
        self._rng = stream("past-studies", batch.seed, batch.numbers[0])

    def fantasize(self, pending: Units) -> None:
        """Count pending trials `[U, P]` among those that were tried."""
        self._gains.fantasize(pending)

    def propose(self, request: Request) -> Choice:
        """Return the candidate of the largest gain."""
        search, favourites, acquisition = self._search, self._gains.favourites, itemgetter(0)
        pool = search.pool(
            self._predict, acquisition, request, self._rng, elite=favourites, favourites=favourites
        )
        units, gain, is_new = search.best(pool, self._predict, acquisition, request, self._rng)
        if self._gains.have_tried and not gain > 0.0:
            return SpaceFilling(self._batch).propose(replace(request, turn="random"))
        explanation = Explanation(
            request.turn if is_new else "exhausted",
            *self._rank(self._batch.space.canonical(units[None])),
            len(search.reference),
            past_studies=self._gains.names,
            expected_cost=self._batch.gain_weights.expected_cost(units),
        )
        return Choice(units, is_new, explanation)

    def _predict(self, candidates: Units) -> torch.Tensor:
        """Return the gains of candidates `[1, C]`."""
        units = self._batch.space.canonical(candidates)
        gains = self._gains.at(units) * np.exp(self._batch.gain_weights.logs_at(units))
        return torch.from_numpy(gains)[None]

    def _rank(self, units: Units) -> tuple[float, float | None]:
        """Return the mean rank of a candidate `[1, P]` over past tasks, and its deviation.

        A single task has no deviation.
        """
        expected = self._gains.expected(units)
        better = self._gains.expected(self._search.reference) > expected
        ranks, weights = 1.0 + better.sum(axis=1), self._gains.weights
        mean = float(np.average(ranks, weights=weights))
        spread = float(np.sqrt(np.average((ranks - mean) ** 2, weights=weights)))
        return mean, spread if len(ranks) > 1 else None
