"""Kept for imports of older programs: see `dre_plugins.adapters.syne_tune.sources`."""

from dre_plugins.adapters.syne_tune.sources import Mode, metadata_from_experiments

__all__ = ["Mode", "metadata_from_experiments"]
