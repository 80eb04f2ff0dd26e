"""Start-up suggestions: members of a portfolio, or points of a scrambled Sobol sequence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.proposers import Choice, Request, stream
from dre_plugins.space.base import Units
from dre_plugins.space.candidates import sobol_point, with_fixed
from dre_plugins.space.rules import Rule
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.space.seen import Seen, distinct

# Draws among which a new configuration is looked for, before a finite space is enumerated.
N_DRAWS = 64


@dataclass(frozen=True, slots=True)
class SpaceFilling:
    """Propose configurations that fill a space."""

    rule: Rule  # which configurations of the search space may be tried
    seed: int  # of the study
    # canonical coordinates of all configurations that may be suggested `[C, P]`; None: any
    candidates: Units | None = None
    # members of a portfolio, see `Batch`
    portfolio: Mapping[int, Units] = field(default_factory=dict)

    def fantasize(self, pending: Units) -> None:
        """Do nothing, as space-filling points do not depend on outcomes."""

    def propose(self, request: Request) -> Choice:
        """Return the Sobol point of the suggestion's number, or another one if that was tried."""
        if request.turn == "random" and request.index in self.portfolio:
            units = self._portfolio_point(request)
            if units is not None:
                return Choice(units, True, Explanation("prior"))
        units, is_new = self._point(request.index, request.seen, request.fixed)
        return Choice(units, is_new, Explanation(request.turn if is_new else "exhausted"))

    def _portfolio_point(self, request: Request) -> Units | None:
        """Return the portfolio's member `[P]`; None if it was tried, or breaks the rule."""
        space, member = self.rule.space, self.portfolio[request.index]
        point = sobol_point(space.n_parameters, request.index, self.seed)
        units = with_fixed(np.where(np.isnan(member), point, member)[None], request.fixed)
        units = self.rule.kept(units)
        is_new = distinct(space.canonical(units), request.seen)
        return units[0] if is_new.any() else None

    def _point(self, index: int, seen: Seen, fixed: Units) -> tuple[Units, bool]:
        rng, rule, space = stream("space-filling", self.seed, index), self.rule, self.rule.space
        if self.candidates is not None:
            draws = rng.permutation(self.candidates)
        else:
            first = with_fixed(sobol_point(space.n_parameters, index, self.seed)[None], fixed)
            # If the point is not valid, the next one of those that were found to be valid.
            found = np.roll(rule.examples(fixed), -index, axis=0)
            others = rule.spread(N_DRAWS, rng, fixed)
            draws = np.concatenate([rule.kept(first), found, others])
        draws = with_fixed(draws, fixed)
        new = distinct(space.canonical(draws), seen)
        if new.any():
            return draws[np.argmax(new)], True
        if self.candidates is not None:
            return draws[0], False
        left = rule.unseen(fixed, seen, rng, 1)
        return (left[0], True) if len(left) else (draws[0], False)


def completed(space: SearchSpace, units: Units, number: int, seed: int) -> Units:
    """Return coordinates `[P]`, those of inactive parameters from the Sobol point of the number.

    Enumerated configurations lack them, but a define-by-run trial may ask for them.
    """
    lacking = np.isnan(units) & ~space.active(units[None])[0]
    if not lacking.any():
        return units
    return np.where(lacking, sobol_point(len(units), number, seed), units)
