"""A bound on the number of features that surrogates read: of more, a count sketch is taken.

A space of 300 categorical parameters with ten choices each has 3000 features, too many to learn
from a hundred trials. A count sketch (Charikar et al., 2002), which HeSBO uses in Bayesian
optimisation (Nayebi et al., 2019), adds features up in groups with random signs. It preserves
inner products in expectation.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dre_plugins.space.base import Features, Positions

# Features of the widest input. A fit of 128 trials takes twice the time of one with five.
MAX_FEATURES = 256
_SEED = 20231123


def sketched(features: Features) -> Features:
    """Return features `[C, D]` as they are, or sums of them `[C, MAX_FEATURES]` of too many.

    Sums are centred at 0.5 and vary about as much as single features do.
    """
    n_features = features.shape[1]
    if n_features <= MAX_FEATURES:
        return features
    columns, signs = _groups(n_features)
    sums = np.tile(np.float32(-0.5) * signs.sum(0), (len(features), 1))
    for of_round, sign in zip(columns, signs, strict=True):
        sums += features[:, of_round] * sign
    return np.asarray(0.5 + sums / np.float32(len(columns) ** 0.5), dtype=np.float32)


@lru_cache(maxsize=8)
def _groups(n_features: int) -> tuple[Positions, NDArray[np.float32]]:
    """Return which columns are added up, and their signs, 0 for nothing, `[G, MAX_FEATURES]`."""
    n_rounds = -(-n_features // MAX_FEATURES)
    rng = np.random.default_rng([_SEED, n_features])
    columns = rng.permutation(n_rounds * MAX_FEATURES).reshape(n_rounds, MAX_FEATURES)
    signs = rng.choice(np.array([-1.0, 1.0], dtype=np.float32), columns.shape)
    signs[columns >= n_features] = 0.0
    return columns % n_features, signs
