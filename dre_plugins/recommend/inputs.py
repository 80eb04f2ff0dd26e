"""What the models of a batch of suggestions read."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from dre_plugins.recommend import schedule
from dre_plugins.recommend.ensemble.expectation import Expectation
from dre_plugins.recommend.evidence import Evidence
from dre_plugins.recommend.gain_weights import GainWeights
from dre_plugins.recommend.past_gains import PastGains
from dre_plugins.recommend.prior import UNIVERSAL, AlignedPrior, PastTask, Universal
from dre_plugins.recommend.requests import Batch
from dre_plugins.recommend.search import CandidateSearch
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.recommend.sketch import sketched
from dre_plugins.space.base import Array, Features, Units


@dataclass(frozen=True, eq=False)
class ModelInputs:
    """Hold what the models read; what only some of them need is computed on first use."""

    batch: Batch
    settings: RecommenderSettings
    # trained priors: one for all objectives, or one for each, None where there is none
    priors: Sequence[AlignedPrior | None] = ()
    past_tasks: Sequence[PastTask] = ()  # what past studies tell of the search space
    universal: Universal = UNIVERSAL

    @property
    def evidence(self) -> Evidence:
        """Return what follows from the trials."""
        return self.batch.evidence

    @cached_property
    def search(self) -> CandidateSearch:
        """The candidates, and the points that ranks are taken against."""
        return CandidateSearch(self.batch.rule, self.batch.candidates, self.batch.seed)

    @cached_property
    def expectation(self) -> Expectation:
        """What the trained priors expect."""
        return Expectation(self.priors, self.search.reference, self.settings, self.evidence)

    @cached_property
    def past_gains(self) -> PastGains | None:
        """What past tasks expect to gain; None without any, or if the trials contradict all."""
        if not self.past_tasks:
            return None
        gains = PastGains(self.past_tasks, self.evidence, self.search.some_reference)
        return gains if len(gains.weights) else None

    @property
    def contradicts_past_tasks(self) -> bool:
        """Whether the trials contradict all past studies, if there are any."""
        return len(self.past_tasks) > 0 and self.past_gains is None

    @property
    def reads_past(self) -> bool:
        """Whether what past tasks expect is a feature of the universal prior."""
        return self.past_gains is not None and schedule.reads_past_tasks(self.evidence)

    def features(self, units: Units) -> Features:
        """Return what untrained members read of canonical coordinates `[C, P]`, `[C, D]`."""
        # Units are not snapped: observations outside the present range keep their place.
        return sketched(self.evidence.space.features(units))

    def expected_features(self, units: Units) -> Array:
        """Return what trained priors or past tasks expect, as features, `[N, P]` -> `[N, A]`."""
        if self.reads_past and self.past_gains is not None:
            return self.past_gains.features(units)
        return self.expectation.features(units)

    @cached_property
    def gain_weights(self) -> GainWeights:
        """What share of an expected improvement counts."""
        return GainWeights.of(self.evidence)
