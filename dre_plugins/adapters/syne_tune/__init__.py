"""Deep Ranking Ensembles as schedulers and searchers of Syne Tune: `DRE`, `ASHADRE` and others."""

try:
    from syne_tune.optimizer.scheduler import SchedulerDecision  # noqa: F401
except ImportError as error:
    raise ImportError(
        "DRESearcher and its schedulers need Syne Tune 0.15 or newer: "
        "pip install 'dre-plugins[syne-tune]'"
    ) from error

from dre_plugins.adapters.syne_tune.ending import ExpectedGainCriterion, recommend
from dre_plugins.adapters.syne_tune.objectives import MODRE, MultiObjectiveDRESearcher
from dre_plugins.adapters.syne_tune.prior import prior_from_evaluations
from dre_plugins.adapters.syne_tune.scheduler import ASHADRE, DRE, DRETransfer
from dre_plugins.adapters.syne_tune.searcher import DRESearcher
from dre_plugins.adapters.syne_tune.sources import metadata_from_experiments
from dre_plugins.adapters.syne_tune.state import DurableTuner, load_tuner

__all__ = [
    "ASHADRE",
    "DRE",
    "MODRE",
    "DRESearcher",
    "DRETransfer",
    "DurableTuner",
    "ExpectedGainCriterion",
    "MultiObjectiveDRESearcher",
    "load_tuner",
    "metadata_from_experiments",
    "prior_from_evaluations",
    "recommend",
]
