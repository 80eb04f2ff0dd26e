"""Which trial of an Optuna study to use, where values are noisy."""

from __future__ import annotations

from copy import deepcopy

from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial

from dre_plugins.adapters.optuna.history import begun_in
from dre_plugins.recommend.recommendation import Recommendation, recommended
from dre_plugins.recommend.trials import as_of_now


def recommend(study: Study) -> Recommendation[FrozenTrial]:
    """Return the trial of a study that is best by the model, not the luckiest one.

    `study.best_trial` has the best observed value, which noise favoured. Here the universal prior
    reads all trials, and the complete one with the best expected value that meets all constraints
    is returned, with that expectation and its doubt. Pruned and failed trials are learnt from and
    not recommended. The study may be of any sampler.

    Args:
        study: A study of one objective.

    Raises:
        ValueError: If no trial is complete and feasible, none has parameters, or there are
            several objectives, whose choice is `study.best_trials`.

    Example:
        ```python
        from dre_plugins.adapters.optuna import recommend

        recommendation = recommend(study)
        print(recommendation.trial.params, recommendation.value, recommendation.deviation)
        ```
    """
    space, begun, trials = begun_in(study)
    n_objectives = len(study.directions)
    chosen = recommended(space, as_of_now(trials), trials, n_objectives=n_objectives)
    sign = 1.0 if study.directions[0] is StudyDirection.MAXIMIZE else -1.0
    return chosen.as_of(deepcopy(begun[chosen.position]), sign)
