"""Named random streams: each purpose of a suggestion draws from a generator of its own.

A stream is a function of the purpose, the seed of the study and the number of the suggestion, so
that a resumed study goes on as if it had never stopped, and no draw depends on another's.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np

Purpose: TypeAlias = Literal["objective-weights", "space-filling", "ensemble", "universal-prior"]


def stream(purpose: Purpose, seed: int, index: int) -> np.random.Generator:
    """Return the generator of a purpose.

    Args:
        purpose: What is drawn.
        seed: Seed of the study.
        index: Number of the suggestion.
    """
    key = (get_args(Purpose).index(purpose), index)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
