"""What was best in past studies: tried as it was, one after the other, before a model is asked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dre_plugins.recommend.explanation import Explanation, some_of
from dre_plugins.recommend.prior import AlignedPrior
from dre_plugins.recommend.proposers import Choice, Request
from dre_plugins.space.base import Units
from dre_plugins.space.candidates import with_fixed
from dre_plugins.space.rules import Rule
from dre_plugins.space.seen import Seen, distinct

# Distances of coordinates are told apart down to this many decimals.
_DECIMALS = 6


class PastBest:
    """Propose the first favourites of past studies that were not tried yet, in their order.

    Args:
        rule: Which configurations of the search space may be tried.
        priors: What past studies taught, with some favourites to be tried first.
    """

    def __init__(self, rule: Rule, priors: Sequence[AlignedPrior | None]) -> None:
        self._rule = rule
        first = [p for p in priors if p is not None]
        self._past_studies = some_of([name for p in first for name in p.past_studies]) or None
        self._favourites = np.concatenate([_filled(p.favourites)[: p.n_first] for p in first])

    def fantasize(self, pending: Units) -> None:
        """Do nothing: the order does not depend on outcomes."""

    def untried(self, seen: Seen, fixed: Units) -> Units:
        """Return what is left `[F, P]`, what agrees best with the given coordinates first.

        A define-by-run study that shows parameters in the midst of a trial gets those that belong
        to the ones it has.
        """
        given = ~np.isnan(fixed)
        canonical = self._rule.space.canonical(self._favourites)
        apart = np.nan_to_num(np.abs(canonical[:, given] - fixed[given]), nan=1.0).sum(axis=1)
        order = np.argsort(apart.round(_DECIMALS), kind="stable")
        left = self._rule.kept(with_fixed(self._favourites[order], fixed))
        return left[distinct(self._rule.space.canonical(left), seen)]

    def propose(self, request: Request) -> Choice:
        """Return the first configuration that is left; there must be one."""
        units = self.untried(request.seen, request.fixed)[0]
        return Choice(units, True, Explanation(request.turn, past_studies=self._past_studies))


def _filled(favourites: Units) -> Units:
    """Return favourites `[F, P]` with the median of the others where they say nothing."""
    lacking = np.isnan(favourites)
    known = np.where(lacking.all(axis=0), 0.5, favourites)
    return np.where(lacking, np.nanmedian(known, axis=0), favourites)
