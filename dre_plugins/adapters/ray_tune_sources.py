"""Kept for imports of older programs: see `dre_plugins.adapters.ray_tune.sources`."""

from dre_plugins.adapters.ray_tune.sources import metadata_from_results

__all__ = ["metadata_from_results"]
