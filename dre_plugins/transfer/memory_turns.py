"""When the prior of a memory is used, whose past studies the user did not choose.

Of the first ten suggestions those with even numbers use it. The odd ones belong to the universal
prior, which makes most of the progress of these trials, so that misleading past studies only
replace space-filling points (lab/2026-11-24-memory-harm.md). Later on, studies end better without
it, be the past ones related or misleading (lab/2026-11-25-memory-later-turns.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dre_plugins.recommend.ensemble.trust import agreement
from dre_plugins.recommend.lists import final_value, final_values, has_failed
from dre_plugins.recommend.schedule import N_PRIOR_TRIALS, is_universal_turn
from dre_plugins.recommend.trials import Trial
from dre_plugins.space.search_space import SearchSpace

if TYPE_CHECKING:
    from dre_plugins.transfer.prior import Prior

# Number of random configurations among which a prior ranks the trials of a study.
N_REFERENCE = 256
# Counter of suggestions that do not use past studies because trials contradict them.
CONTRADICTED = "memory_contradicted"


def count_memory_turns(
    prior: Prior,
    space: SearchSpace,
    history: Sequence[Trial],
    numbers: range,
    stats: Counter[str],
) -> int:
    """Return how many of the suggestions use the prior of past studies.

    These are the ones with even numbers below 10, in a batch the first ones; none as long as
    trials contradict the prior more than they agree.
    """
    n_turns = sum(not is_universal_turn(number) for number in numbers if number < N_PRIOR_TRIALS)
    if not n_turns or concordance(prior, space, history) >= 0.0:
        return n_turns
    stats[CONTRADICTED] += n_turns
    return 0


def concordance(prior: Prior, space: SearchSpace, history: Sequence[Trial]) -> float:
    """Return how far the order of a study's trials agrees with the predictions of a prior.

    Args:
        history: Its trials, larger values are better; those without a value count if they failed.

    Returns:
        The concordance from -1 to 1, see `agreement`; 0 where there is nothing to compare.
    """
    ended = [trial for trial in history if final_value(trial) is not None or has_failed(trial)]
    if len(ended) < 2:
        return 0.0
    drawn = np.random.default_rng(0).random((N_REFERENCE, space.n_parameters))
    observed = space.to_units([trial.configuration for trial in ended])
    try:
        scores = prior.scores(space, np.concatenate([space.canonical(drawn), observed]))
    except ValueError:  # no parameter in common so far
        return 0.0
    reference, expected = scores[:N_REFERENCE], scores[N_REFERENCE:]
    shares = (reference[None, :] > expected[:, None]).mean(axis=1)
    finals = final_values(ended)
    values = np.where(np.isnan(finals), -math.inf, finals)
    return agreement(shares, values)[0]
