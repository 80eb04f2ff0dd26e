"""Surrogates small enough for hundreds of suggestions in a test."""

from __future__ import annotations

from dataclasses import replace

from dre_plugins.engine import FittingSettings, Preset, ScorerSettings, get_preset

TINY = Preset(
    scorer=ScorerSettings(n_members=3, hidden=(8, 8), activation="silu"),
    from_random=FittingSettings(n_steps=12, learning_rate=0.02),
    from_prior=FittingSettings(n_steps=12, learning_rate=0.02),
    from_tasks=FittingSettings(n_steps=12, learning_rate=0.02),
    universal_turns=False,
)

DEFAULT = get_preset("default")
# Large enough to find an optimum.
QUICK = replace(
    DEFAULT,
    scorer=replace(DEFAULT.scorer, n_members=5, hidden=(32, 32)),
    from_random=replace(DEFAULT.from_random, n_steps=100),
)
