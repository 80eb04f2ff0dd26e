"""Kept for imports of older programs: see `dre_plugins.adapters.syne_tune.sources`."""

from dre_plugins.adapters.common.past_tasks import Mode
from dre_plugins.adapters.syne_tune.sources import metadata_from_experiments

__all__ = ["Mode", "metadata_from_experiments"]
