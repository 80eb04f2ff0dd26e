"""Surrogates small enough for hundreds of suggestions in a test."""

from dataclasses import replace
from typing import Any

from dre_plugins.engine import FittingSettings, Preset, ScorerSettings, get_preset
from dre_plugins.recommend.settings import Settings


def of_fits(n_steps: int, scorer: ScorerSettings, universal_turns: bool = False) -> Preset:
    """Return a preset whose fits are all of so many steps."""
    fitting = FittingSettings(n_steps=n_steps, learning_rate=0.02)
    return Preset(
        scorer=scorer, from_random=fitting, from_prior=fitting, universal_turns=universal_turns
    )


TINY = of_fits(6, ScorerSettings(n_members=3, hidden=(8, 8), activation="silu"))
# The ensemble and, in its turns, the universal prior.
FAST = Settings(preset=replace(TINY, universal_turns=True))

# Narrow, and otherwise as that of the default preset.
NARROW = ScorerSettings(
    n_members=4, hidden=(16, 16), activation="silu", range_limit=None, centred=True
)

DEFAULT = get_preset("default")


def of_steps(n_random: int, n_prior: int = DEFAULT.from_prior.n_steps, **changed: Any) -> Preset:
    """Return the default preset with fits of so many steps, and with other fields changed."""
    return replace(
        DEFAULT,
        from_random=replace(DEFAULT.from_random, n_steps=n_random),
        from_prior=replace(DEFAULT.from_prior, n_steps=n_prior),
        **changed,
    )


# Large enough to find an optimum.
QUICK = of_steps(100, scorer=replace(DEFAULT.scorer, n_members=5, hidden=(32, 32)))
