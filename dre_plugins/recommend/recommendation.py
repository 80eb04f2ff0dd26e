"""Which trial of a study to use, where values are noisy: the best by the model.

The best observed value is that of a lucky trial. What the trials around it reached tells how
lucky it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from dre_plugins.engine.settings import require
from dre_plugins.recommend.results import valid_positions
from dre_plugins.recommend.trials import Trial
from dre_plugins.space.search_space import SearchSpace

T = TypeVar("T")
U = TypeVar("U")

# Up to this share of noise in the variance of values the best observed trial is the best one: the
# processes also take for noise what is only rough (lab/2026-11-24-recommend.md).
MIN_NOISE_SHARE = 0.08


@dataclass(frozen=True, slots=True)
class Recommendation(Generic[T]):
    """Hold the trial of a study that is best by the model, and the doubt.

    Args:
        trial: The trial, as its framework has it.
        value: What is expected there of the metric without noise, in its unit and sign.
        deviation: Standard deviation of that expectation, as the model sees it: too small where
            noise is as large as the differences between trials.
        noise: Standard deviation of the noise of one evaluation, likewise.
    """

    trial: T
    value: float
    deviation: float
    noise: float

    def as_of(self, trial: U, sign: float) -> Recommendation[U]:
        """Return the same of a framework's trial; sign -1: its metric is minimised."""
        return Recommendation(trial, sign * self.value, self.deviation, self.noise)


def recommended(
    space: SearchSpace,
    history: Sequence[Trial],
    trials: Sequence[Trial] | None = None,
    *,
    n_objectives: int = 1,
) -> Recommendation[int]:
    """Return where in a history the complete, feasible trial of the largest expected value is.

    Where values have hardly any noise it is the best observed one. Under noise the trial was as
    good as that in 149 test studies, and its expected value a quarter nearer the truth than the
    observed one (lab/2026-11-24-recommend.md).

    Args:
        space: The search space.
        history: The trials as they count, see `trials.as_of_now`; larger values are better.
        trials: The same trials as they are: those that still run are not recommended.
        n_objectives: Number of objectives.

    Raises:
        ValueError: If there is no such trial, or there are several objectives.
    """
    require(n_objectives == 1, "the number of objectives", n_objectives, "1")
    require(space.n_parameters > 0, "study", "trials without parameters", "of some parameters")
    valid = valid_positions(history, trials)
    found = f"{len(valid)} complete trials that meet all constraints"
    require(bool(valid), "study", found, "one with such a trial")
    from dre_plugins.engine.runtime import isolated  # torch: only when it is needed
    from dre_plugins.recommend.posterior import ValuePosterior

    values = np.array([history[place].value for place in valid], dtype=np.float64)
    with isolated():
        posterior = ValuePosterior.of(space, history)
        units = space.to_units([history[place].configuration for place in valid])
        means, deviations = posterior.predicted(units)
        noise, is_noisy = posterior.noise, posterior.noise_share > MIN_NOISE_SHARE
    best = int(np.lexsort([values, means])[-1] if is_noisy else values.argmax())
    return Recommendation(valid[best], float(means[best]), float(deviations[best]), noise)
