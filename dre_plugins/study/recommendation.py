"""Which trial of a study to use if values are noisy: the one that the model expects to be best.

The trial with the best observed value is often one with favourable noise, which the model
estimates from the trials around it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from dre_plugins.checks import require
from dre_plugins.recommend.trials import Observed
from dre_plugins.space.search_space import SearchSpace

T = TypeVar("T")
U = TypeVar("U")

# Up to this share of noise in the variance of values, the best observed trial is recommended: the
# processes mistake roughness of the objective for noise (lab/2026-11-24-recommend.md).
MIN_NOISE_SHARE = 0.08


@dataclass(frozen=True, slots=True)
class Recommendation(Generic[T]):
    """Hold the recommended trial of a study, its expected value and how uncertain that is.

    Args:
        trial: The trial, in the framework's own type.
        value: Expected value of the metric without noise, in its unit and sign; infinite if the
            trial's own value is.
        deviation: Standard deviation of `value` by the model. It is too small if the noise is as
            large as the differences between trials, and NaN if `value` is infinite.
        noise: Standard deviation of the noise of one evaluation, by the model.
    """

    trial: T
    value: float
    deviation: float
    noise: float

    def as_of(self, trial: U, sign: float) -> Recommendation[U]:
        """Return the same of a framework's trial; sign -1: its metric is minimised."""
        return Recommendation(trial, sign * self.value, self.deviation, self.noise)


def recommended(
    space: SearchSpace, observed: Observed, *, n_objectives: int = 1
) -> Recommendation[int]:
    """Return the position of the complete, feasible trial with the largest expected value.

    If values have hardly any noise, this is the best observed trial. In 149 noisy test studies it
    was as good as that, and its expected value a quarter nearer the truth than the observed value
    (lab/2026-11-24-recommend.md).

    Larger values are better. A ValueError says that there is no such trial, or that there are
    several objectives.
    """
    require(n_objectives == 1, "the number of objectives", n_objectives, "1")
    if not space.n_parameters:
        raise ValueError("recommend needs trials with a parameter of at least two values.")
    valid = observed.valid_trials
    if not valid:
        raise ValueError(
            "recommend needs a complete trial that meets all constraints and whose value is a "
            "number."
        )
    from dre_plugins.engine.runtime import isolated  # torch: only when it is needed
    from dre_plugins.recommend.posterior import ValuePosterior

    values = np.array([trial.value for trial in valid], dtype=np.float64)
    with isolated():
        posterior = ValuePosterior.of(space, observed.history)
        units = space.to_units([trial.configuration for trial in valid])
        means, deviations = posterior.predicted(units)
        noise, is_noisy = posterior.noise, posterior.noise_share > MIN_NOISE_SHARE
    best = int(np.lexsort([values, means])[-1] if is_noisy else values.argmax())
    position = observed.valid[best]
    if math.isinf(values[best]):
        return Recommendation(position, float(values[best]), math.nan, noise)
    return Recommendation(position, float(means[best]), float(deviations[best]), noise)
