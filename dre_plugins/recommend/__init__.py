"""From a history of trials to suggestions; the same for every framework.

The letters of shapes, such as `[M, C]`, are explained in docs/architecture.md.
"""

from dre_plugins.recommend.explanation import Suggestion
from dre_plugins.recommend.recommender import Recommender
from dre_plugins.recommend.settings import RecommenderSettings, Settings
from dre_plugins.recommend.trials import Trial, TrialState

__all__ = ["Recommender", "RecommenderSettings", "Settings", "Suggestion", "Trial", "TrialState"]
