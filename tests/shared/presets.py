"""Surrogates small enough for hundreds of suggestions in a test."""

from dataclasses import replace
from typing import Any

from dre_plugins.engine import FittingSettings, Preset, ScorerSettings, get_preset

TINY = Preset(
    scorer=ScorerSettings(n_members=3, hidden=(8, 8), activation="silu"),
    from_random=FittingSettings(n_steps=6, learning_rate=0.02),
    from_prior=FittingSettings(n_steps=6, learning_rate=0.02),
    from_tasks=FittingSettings(n_steps=6, learning_rate=0.02),
    universal_turns=False,
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
