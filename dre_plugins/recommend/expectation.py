"""What priors expect of configurations before they see anything of a study.

Notation: see docs/architecture.md; `A` priors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dre_plugins.engine.settings import get_preset
from dre_plugins.recommend.mixture import Mixture, Part
from dre_plugins.recommend.prior import AlignedPrior
from dre_plugins.recommend.settings import RecommenderSettings

Units = NDArray[np.float64]


class Expectation:
    """Rank configurations by priors alone.

    Args:
        priors: Meta-trained scorers; None is left out.
        reference: Canonical coordinates that ranks are taken against `[K, P]`.
        settings: The recommender's settings.
    """

    def __init__(
        self,
        priors: Sequence[AlignedPrior | None],
        reference: Units,
        settings: RecommenderSettings,
    ) -> None:
        device, n_threads = settings.device, settings.n_threads
        fitting = get_preset(settings.preset).from_prior
        parts = [
            Part(prior.ensemble.to(device, n_threads), prior.encode, fitting)
            for prior in priors
            if prior is not None
        ]
        self._mixtures = [Mixture([part], reference) for part in parts]
        self._n_reference = len(reference)

    def shares(self, units: Units) -> Units:
        """Return ranks as a share of the reference, 0 = best, `[A, N]`.

        Args:
            units: Canonical coordinates `[N, P]`.
        """
        if not len(units):
            return np.empty((len(self._mixtures), 0))
        ranks = [mixture.mean_ranks(units) for mixture in self._mixtures]
        return np.reshape(ranks, (len(self._mixtures), len(units))) / self._n_reference

    def features(self, units: Units) -> Units:
        """Return logarithms of ranks, on a scale from 0 = best to 1, `[N, A]`.

        As logarithms, what a prior likes best differs as much as all the rest, which is what a
        search asks about (docs/decisions.md, Search).

        Args:
            units: Canonical coordinates `[N, P]`.
        """
        ranks = self._n_reference * self.shares(units).T
        return np.asarray(np.log1p(ranks) / np.log1p(self._n_reference))
