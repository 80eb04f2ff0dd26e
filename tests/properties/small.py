"""The smallest surrogate that still has all parts."""

from presets import of_fits

from dre_plugins.engine import ScorerSettings
from dre_plugins.recommend.settings import Settings

SCORER = ScorerSettings(n_members=2, hidden=(4,), activation="silu")
SMALL = of_fits(4, SCORER, universal_turns=True)
SETTINGS = Settings(preset=SMALL)
