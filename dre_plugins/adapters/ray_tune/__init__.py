"""Deep Ranking Ensembles as a search algorithm of Ray Tune: `DRESearch`."""

try:
    import ray.tune  # noqa: F401
except ImportError as error:
    raise ImportError(
        "DRESearch needs Ray Tune 2.43 or newer: pip install 'dre-plugins[ray]'"
    ) from error

from dre_plugins.adapters.ray_tune.ending import ExpectedGainStopper, recommend
from dre_plugins.adapters.ray_tune.search import DRESearch
from dre_plugins.adapters.ray_tune.sources import metadata_from_results

__all__ = ["DRESearch", "ExpectedGainStopper", "metadata_from_results", "recommend"]
