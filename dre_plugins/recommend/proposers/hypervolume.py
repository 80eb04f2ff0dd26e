"""The proposals of the universal prior with several objectives: the largest gain of hypervolume.

Each objective has its processes. Samples of their predictions are compared with the Pareto front
along random directions, see `gain`.

Notation: see docs/architecture.md; `O` objectives.
"""

from functools import partial

import numpy as np
import torch

from dre_plugins.engine.ranks import ranks_against
from dre_plugins.recommend.inputs import ModelInputs
from dre_plugins.recommend.lists import FAILED_RANK, dense_ranks
from dre_plugins.recommend.pareto import non_dominated
from dre_plugins.recommend.prior import Universal
from dre_plugins.recommend.proposers.gain import Gain, Samples
from dre_plugins.recommend.proposers.processes import ProcessProposer
from dre_plugins.recommend.requests import Choice, Request
from dre_plugins.recommend.universal_prior import BLOCK
from dre_plugins.space.base import Array, Units


class HypervolumeProposer(ProcessProposer):
    """Propose the candidate of the largest expected gain of hypervolume under the universal prior.

    Hypervolumes are of the targets of the processes, in which each objective has a variance of 1.
    """

    FANTASIES_LEAD = True

    def __init__(self, prior: Universal, inputs: ModelInputs, rng: np.random.Generator) -> None:
        ranked, _ = inputs.evidence.joint_list
        values = inputs.evidence.objective_values(ranked.trials)
        is_valued = ~np.isnan(values).any(axis=1)
        is_best = inputs.evidence.may_be_incumbent_in(ranked) & is_valued
        is_best[is_best] = non_dominated(values[is_best])
        objectives = [
            (column, np.nan_to_num(dense_ranks(column), nan=FAILED_RANK)) for column in values.T
        ]
        super().__init__(prior, inputs, objectives, is_best, rng)
        self._samples = Samples.drawn(self._objectives, rng)

    def propose(self, request: Request) -> Choice:
        """Return the candidate of the largest expected gain of hypervolume."""
        targets = self._incumbent_targets(request)
        front = targets[non_dominated(targets)]
        gain = Gain.beyond(front, self._targets, self._samples.directions)

        def log_gains(features: torch.Tensor) -> Array:
            parts = features.split(BLOCK)
            logs = [gain.logs(self._samples.of(self._objectives, part)) for part in parts]
            return np.concatenate(logs)

        return self._choose(request, log_gains, partial(self._rank, gain))

    @torch.inference_mode()
    def _rank(self, gain: Gain, units: Units) -> tuple[float, float]:
        """Return mean and standard deviation of the rank of a candidate `[1, P]`.

        Each sample ranks it along its direction, among expectations of the reference.
        """
        samples = self._samples.of(self._objectives, self._features(units))
        along = gain.along(samples)
        means = self._expected(self._reference).T[:, None]
        ranks = ranks_against(torch.from_numpy(along), torch.from_numpy(gain.along(means)))
        return float(ranks.mean()), float(ranks.std(correction=0))
