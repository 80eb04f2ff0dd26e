"""Deep Ranking Ensembles as a sampler of Optuna: `DRESampler`."""

try:
    import optuna  # noqa: F401
except ImportError as error:
    raise ImportError(
        "DRESampler needs Optuna 4 or newer: pip install 'dre-plugins[optuna]'"
    ) from error

from dre_plugins.adapters.optuna.ending import ExpectedGainCallback, recommend
from dre_plugins.adapters.optuna.sampler import DRESampler
from dre_plugins.adapters.optuna.sources import metadata_from_studies

__all__ = ["DRESampler", "ExpectedGainCallback", "metadata_from_studies", "recommend"]
