"""From a history of trials to suggestions; the same for every framework.

    what is known         trials, lists, pareto, evidence, prior, settings; batch has it all
    who proposes          schedule, branches, choices, and the classes in proposers/
    what models say       members (the ensemble), universal_prior, past_gains, gain_weights, sketch
    which candidate       search
    what is answered      recommender, which also counts and falls back, and explanation
    beside suggestions    posterior (for reports), directions (signs of users), interruptions

The letters of shapes, such as `[M, C]`, are explained in docs/architecture.md.
"""

from dre_plugins.recommend.explanation import Suggestion
from dre_plugins.recommend.recommender import Recommender
from dre_plugins.recommend.settings import RecommenderSettings, Settings
from dre_plugins.recommend.trials import Trial, TrialState

__all__ = ["Recommender", "RecommenderSettings", "Settings", "Suggestion", "Trial", "TrialState"]
