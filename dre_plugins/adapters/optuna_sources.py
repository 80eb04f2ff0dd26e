"""Kept for imports of older programs: see `dre_plugins.adapters.optuna.sources`."""

from dre_plugins.adapters.optuna.sources import metadata_from_studies

__all__ = ["metadata_from_studies"]
