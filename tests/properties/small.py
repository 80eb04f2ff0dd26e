"""The smallest surrogate that still has all parts."""

from dre_plugins.engine import FittingSettings, Preset, ScorerSettings
from dre_plugins.recommend.settings import Settings

FITTING = FittingSettings(n_steps=4, learning_rate=0.02)
SMALL = Preset(
    scorer=ScorerSettings(n_members=2, hidden=(4,), activation="silu"),
    from_random=FITTING,
    from_prior=FITTING,
    from_tasks=FITTING,
    universal_turns=True,
)
SETTINGS = Settings(preset=SMALL)
