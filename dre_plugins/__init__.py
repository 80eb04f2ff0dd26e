"""Deep Ranking Ensembles as a sampler for hyper-parameter optimisation frameworks.

Public names are imported on first use, so that ``import dre_plugins`` needs no framework and
stays fast:

    DRESampler: the sampler for Optuna.
    DRESearch: the search algorithm for Ray Tune.
    DRE, ASHADRE, DRETransfer, MODRE: the schedulers for Syne Tune.
    DRESearcher, MultiObjectiveDRESearcher: the searchers for other schedulers of Syne Tune.
    AskTell: ask-and-tell tuning without a framework.
    Prior: a trained prior, from which a study can start.
    PastTasks: past studies, from which a study can learn without training.
    Memory: the folder in which studies are recorded, and from which later ones learn.
    MetaDataset: past tasks from several sources.
    Settings: the expert settings, which are the same in every framework.
    Recommender, RecommenderSettings: the search that all of these share.
    SearchSpace: typed domains with conditions.
    DeepRankingEnsemble: the surrogate.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from dre_plugins._version import __version__

if TYPE_CHECKING:
    from dre_plugins.adapters.optuna import DRESampler
    from dre_plugins.adapters.ray_tune import DRESearch
    from dre_plugins.adapters.syne_tune import (
        ASHADRE,
        DRE,
        MODRE,
        DRESearcher,
        DRETransfer,
        MultiObjectiveDRESearcher,
    )
    from dre_plugins.engine.surrogate import DeepRankingEnsemble
    from dre_plugins.memory import Memory
    from dre_plugins.recommend import Recommender, RecommenderSettings, Settings
    from dre_plugins.space import SearchSpace
    from dre_plugins.transfer.metadata import MetaDataset
    from dre_plugins.transfer.past_tasks import PastTasks
    from dre_plugins.transfer.prior import Prior

__all__ = [
    "ASHADRE",
    "DRE",
    "MODRE",
    "AskTell",
    "DRESampler",
    "DRESearch",
    "DRESearcher",
    "DRETransfer",
    "DeepRankingEnsemble",
    "Memory",
    "MetaDataset",
    "MultiObjectiveDRESearcher",
    "PastTasks",
    "Prior",
    "Recommender",
    "RecommenderSettings",
    "SearchSpace",
    "Settings",
    "__version__",
]

_NAMES = {
    "adapters.optuna": "DRESampler",
    "adapters.ray_tune": "DRESearch",
    "adapters.syne_tune": "ASHADRE DRE DRESearcher DRETransfer MODRE MultiObjectiveDRESearcher",
    "engine.surrogate": "DeepRankingEnsemble",
    "memory": "Memory",
    "recommend": "Recommender RecommenderSettings Settings",
    "space": "SearchSpace",
    "study": "AskTell",
    "transfer.metadata": "MetaDataset",
    "transfer.past_tasks": "PastTasks",
    "transfer.prior": "Prior",
}
_HOMES = {name: f"{__name__}.{home}" for home, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value  # found directly from now on
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
