"""Start-up suggestions: a learner's portfolio, or points of a scrambled Sobol sequence.

The configurations of a portfolio complement each other: on most data sets at least one of them is
good. If more than three trials begin before a model proposes, as with many workers, every fourth
one is a point of the Sobol sequence, in case the names of the parameters mislead
(lab/2026-11-24-portfolio.md).
"""

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from dre_plugins.recommend.batch import Batch
from dre_plugins.recommend.explanation import Explanation, of_portfolio
from dre_plugins.recommend.schedule import Choice, Request, Turn, stream
from dre_plugins.space.base import Units
from dre_plugins.space.candidates import sobol_point, start_up_point, with_fixed
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.space.seen import Seen, distinct

# Draws among which a new configuration is looked for, before a finite space is enumerated.
N_DRAWS = 64
# Where there is a portfolio, the last one of this many suggestions is a Sobol point.
SOBOL_EVERY = 4
# Configurations of a portfolio that differ by less than this in all coordinates count as equal.
APART = 0.05


class SpaceFilling:
    """Propose configurations that fill a space."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    def choices(self, turn: Turn) -> list[Choice]:
        """Return a choice for each suggestion of the batch, different from each other."""
        batch, seen = self._batch, self._batch.seen()
        choices = []
        for number in batch.numbers:
            choice = self.propose(Request(number, turn, seen, batch.fixed))
            choices.append(choice)
            if not batch.settings.allow_duplicates:
                seen.include(batch.space.canonical(choice.units[None]))
        return choices

    def fantasize(self, pending: Units) -> None:
        """Do nothing, as a request says what was seen."""

    def propose(self, request: Request) -> Choice:
        """Return the Sobol point of the suggestion's number, or another one if that was tried."""
        batch, portfolio = self._batch, self._batch.portfolio
        if request.turn == "random" and portfolio and request.index in self._portfolio_trials:
            units = self._portfolio_point(request)
            if units is not None:
                return Choice(units, True, of_portfolio(portfolio.learner))
        units, is_new = self._point(request.index, request.seen, request.fixed)
        source = request.turn if is_new else "exhausted"
        weight = batch.expectation.prior_weight if request.turn == "contrast" else None
        return Choice(units, is_new, Explanation(source, prior_weight=weight))

    @cached_property
    def _portfolio_trials(self) -> Mapping[int, Units]:
        """Return a recognised learner's portfolio by the numbers of start-up suggestions."""
        batch, portfolio = self._batch, self._batch.portfolio
        if portfolio is None:
            return {}
        return portfolio_trials(portfolio.units, batch.evidence.units, batch.numbers)

    def _portfolio_point(self, request: Request) -> Units | None:
        """Return a point of the portfolio `[P]`; None if it was tried, or breaks the rule."""
        rule, favourite = self._batch.rule, self._portfolio_trials[request.index]
        space = rule.space
        point = start_up_point(space, request.index, self._batch.seed)
        units = with_fixed(np.where(np.isnan(favourite), point, favourite)[None], request.fixed)
        units = rule.kept(units)
        is_new = distinct(space.canonical(units), request.seen)
        return units[0] if is_new.any() else None

    def _point(self, index: int, seen: Seen, fixed: Units) -> tuple[Units, bool]:
        rule, candidates, seed = self._batch.rule, self._batch.candidates, self._batch.seed
        rng, space = stream("space-filling", seed, index), rule.space
        if candidates is not None:
            draws = rng.permutation(candidates)
        else:
            first = with_fixed(start_up_point(space, index, seed)[None], fixed)
            # If the point is not valid, the next one of those that were found to be valid.
            examples = np.roll(rule.examples(fixed), -index, axis=0)
            others = rule.spread(N_DRAWS, rng, fixed)
            draws = np.concatenate([rule.kept(first), examples, others])
        draws = with_fixed(draws, fixed)
        new = distinct(space.canonical(draws), seen)
        if new.any():
            return draws[np.argmax(new)], True
        if candidates is not None:
            return draws[0], False
        left = rule.unseen(fixed, seen, rng, 1)
        return (left[0], True) if len(left) else (draws[0], False)


def portfolio_trials(portfolio: Units, tried: Units, numbers: range) -> dict[int, Units]:
    """Return the portfolio's coordinates `[P]` for suggestions, by number; Sobol points have none.

    Configurations that are near a trial or near an earlier one of the portfolio are left out. The
    others are assigned to suggestions in order, so that workers which ask at the same time get
    different ones.

    Args:
        portfolio: Coordinates in order `[F, P]`, NaN where one leaves a parameter open.
        tried: Coordinates of the trials that have begun `[N, P]`, NaN for inactive parameters.
        numbers: Numbers of the suggestions.
    """
    remaining = np.empty((0, tried.shape[1]))
    for units in portfolio:
        is_given = ~np.isnan(units)
        others = np.concatenate([tried, remaining])[:, is_given]
        is_near = np.abs(others - units[is_given]) < APART
        # A trial of the portfolio lacks what is inactive by the parameters that were left open.
        trials = is_near[: len(tried)]
        trials |= np.isnan(tried[:, is_given]) & trials.any(axis=1, keepdims=True)
        if not is_near.all(axis=1).any():
            remaining = np.concatenate([remaining, units[None]])
    free = [n for n in range(len(tried), numbers.stop) if n % SOBOL_EVERY != SOBOL_EVERY - 1]
    assigned = zip(free, remaining, strict=False)
    return {number: units for number, units in assigned if number in numbers}


def completed(space: SearchSpace, units: Units, number: int, seed: int) -> Units:
    """Return coordinates `[P]`, those of inactive parameters from the Sobol point of the number.

    Enumerated configurations lack them, but a define-by-run trial may ask for them.
    """
    lacking = np.isnan(units) & ~space.active(units[None])[0]
    if not lacking.any():
        return units
    return np.where(lacking, sobol_point(len(units), number, seed), units)
