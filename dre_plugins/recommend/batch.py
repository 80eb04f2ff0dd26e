"""A batch of suggestions: what the proposers of them read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dre_plugins.recommend import schedule
from dre_plugins.recommend.evidence import Evidence
from dre_plugins.recommend.prior import UNIVERSAL, AlignedPrior, PastTask, Portfolio, Universal
from dre_plugins.recommend.schedule import TurnRules
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.recommend.sketch import sketched
from dre_plugins.space.base import Array, Features, Mask, Units
from dre_plugins.space.rules import Rule
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.space.seen import Seen

if TYPE_CHECKING:
    from dre_plugins.recommend.gain_weights import GainWeights
    from dre_plugins.recommend.members import Expectation
    from dre_plugins.recommend.past_gains import PastGains
    from dre_plugins.recommend.search import CandidateSearch


@dataclass(frozen=True, eq=False)
class Batch:
    """Hold a call of `Recommender.suggest`, or the part of it that shares a fit.

    A call for 20 suggestions has two batches. In the first, of 16, each choice is a fantasy of the
    proposers before the next choice is made. In the second, of 4, those 16 are pending trials, and
    the choices share a fit: they keep a distance from each other instead.

    What only models read is computed on first use, and imports torch then.
    """

    evidence: Evidence
    numbers: range  # of the suggestions
    rule: Rule  # which configurations may be tried
    fixed: Units  # coordinates that are given `[P]`, NaN where they are free
    seed: int  # of the study
    settings: RecommenderSettings
    turns: TurnRules = field(default_factory=TurnRules)
    # trained priors: one for all objectives, or one for each, None where there is none
    priors: Sequence[AlignedPrior | None] = ()
    past_tasks: Sequence[PastTask] = ()  # what past studies tell of the search space
    universal: Universal = UNIVERSAL
    portfolio: Portfolio | None = None  # of a recognised learner, for start-up suggestions
    # canonical coordinates of all configurations that may be suggested `[C, P]`; None: any
    candidates: Units | None = None
    # trials that stand for all that agree with them `[N]`, see `Recommender.suggest`
    is_whole: Mask | None = None
    # trials whose configurations may not be suggested again `[N]`; None: all
    is_evaluated: Mask | None = None
    shares_fit: bool = False  # whether all suggestions come from one fit

    @property
    def space(self) -> SearchSpace:
        """Return the search space."""
        return self.rule.space

    def seen(self) -> Seen:
        """Return the configurations that may not be suggested again."""
        if self.settings.allow_duplicates:
            return Seen()
        units = self.evidence.units
        whole = np.zeros(len(units), dtype=np.bool_)
        evaluated = ~whole
        if self.is_whole is not None:
            whole[: len(self.is_whole)] = self.is_whole
        if self.is_evaluated is not None:
            evaluated[: len(self.is_evaluated)] = self.is_evaluated
        return Seen.of(self.space, units[evaluated], whole[evaluated])

    # ---- what models read

    @cached_property
    def search(self) -> CandidateSearch:
        """The candidates, and the points that ranks are taken against."""
        from dre_plugins.recommend.search import CandidateSearch

        return CandidateSearch(self.rule, self.candidates, self.seed)

    @cached_property
    def expectation(self) -> Expectation:
        """What the trained priors expect."""
        from dre_plugins.recommend.members import Expectation

        return Expectation(self.priors, self.search.reference, self.settings, self.evidence)

    @cached_property
    def past_gains(self) -> PastGains | None:
        """What past tasks expect to gain; None without any, or if the trials contradict all."""
        from dre_plugins.recommend.past_gains import PastGains

        if not self.past_tasks:
            return None
        gains = PastGains(self.past_tasks, self.evidence, self.search.some_reference)
        return gains if len(gains.weights) else None

    @cached_property
    def gain_weights(self) -> GainWeights:
        """What share of an expected improvement counts."""
        from dre_plugins.recommend.gain_weights import GainWeights

        return GainWeights.of(self.evidence)

    @property
    def reads_past(self) -> bool:
        """Whether what past tasks expect is a feature of the universal prior."""
        return self.past_gains is not None and schedule.reads_past_tasks(self.evidence)

    def features(self, units: Units) -> Features:
        """Return what untrained members read of canonical coordinates `[C, P]`, `[C, D]`."""
        # Units are not snapped: observations outside the present range keep their place.
        return sketched(self.space.features(units))

    def expected_features(self, units: Units) -> Array:
        """Return what trained priors or past tasks expect, as features, `[N, P]` -> `[N, A]`."""
        if self.reads_past and self.past_gains is not None:
            return self.past_gains.features(units)
        return self.expectation.features(units)
