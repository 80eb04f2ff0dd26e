"""A surrogate small enough for hundreds of suggestions in a test."""

from __future__ import annotations

from dre_plugins.engine import FittingSettings, Preset, ScorerSettings

TINY = Preset(
    scorer=ScorerSettings(n_members=3, hidden=(8, 8), activation="silu"),
    from_random=FittingSettings(n_steps=12, learning_rate=0.02),
    from_prior=FittingSettings(n_steps=12, learning_rate=0.02),
    from_tasks=FittingSettings(n_steps=12, learning_rate=0.02),
    universal_turns=False,
)
