"""The ranking engine: functions of tensors, independent of search spaces, trials and frameworks.

Notation: see docs/architecture.md; `H` hidden units. Everywhere in this folder these are

    features  [..., D]   float32; the user's search space maps to about [0, 1]
    values    [..., N]   observed values, larger is better
    mask      [..., N]   bool, True = a real entry, False = padding
    scores    [M, ...]   larger is better
    ranks     [M, C]     1 = best, as in the paper (Khazi et al., ICLR 2023)

Only settings are imported here. They need no torch, so that a sampler can be built and checked
without it. The surrogate is `dre_plugins.engine.surrogate.DeepRankingEnsemble`.
"""

from dre_plugins.engine.settings import (
    ACQUISITION_NAMES,
    PRESETS,
    ContextSettings,
    FittingSettings,
    Preset,
    ScorerSettings,
    get_preset,
)

__all__ = [
    "ACQUISITION_NAMES",
    "PRESETS",
    "ContextSettings",
    "FittingSettings",
    "Preset",
    "ScorerSettings",
    "get_preset",
]
