"""Deep Ranking Ensembles as a sampler of Optuna: `DRESampler`."""

try:
    import optuna  # noqa: F401
except ImportError as error:
    raise ImportError(
        "DRESampler needs Optuna 4 or newer: pip install 'dre-plugins[optuna]'"
    ) from error

from dre_plugins.adapters.optuna.recommendation import recommend
from dre_plugins.adapters.optuna.sampler import DRESampler
from dre_plugins.adapters.optuna.sources import metadata_from_studies
from dre_plugins.adapters.optuna.stopping import ExpectedGainCallback

__all__ = ["DRESampler", "ExpectedGainCallback", "metadata_from_studies", "recommend"]
