"""The end of an Optuna study: when to stop it, and which trial to use."""

from copy import deepcopy

from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial

from dre_plugins.adapters.optuna.attributes import logger
from dre_plugins.adapters.optuna.history import begun_in
from dre_plugins.adapters.optuna.sampler import DRESampler
from dre_plugins.recommend.trials import Observed, Trial
from dre_plugins.space.rules import Rule
from dre_plugins.study.recommendation import Recommendation, recommended
from dre_plugins.study.stopping import StoppingRule


def recommend(study: Study) -> Recommendation[FrozenTrial]:
    """Return the trial of a study that the model expects to be best.

    The value of `study.best_trial` may be due to noise. Here the universal prior is conditioned on
    all trials. Among the complete trials that meet all constraints, the one with the best expected
    value is returned, with that expectation and its standard deviation. Pruned and failed trials
    inform the model but are not recommended. The study may have used any sampler.

    Args:
        study: A study of one objective.

    Raises:
        ValueError: If no trial is complete and feasible, none has parameters, or there are
            several objectives (see `study.best_trials` for these).

    Example:
        ```python
        from dre_plugins.adapters.optuna import recommend

        recommendation = recommend(study)
        print(recommendation.trial.params, recommendation.value, recommendation.deviation)
        ```
    """
    rule, begun, trials = _read(study)
    n_objectives = len(study.directions)
    chosen = recommended(rule.space, Observed.of(trials), n_objectives=n_objectives)
    sign = 1.0 if study.directions[0] is StudyDirection.MAXIMIZE else -1.0
    return chosen.as_of(deepcopy(begun[chosen.trial]), sign)


class ExpectedGainCallback:
    """Stop a study when the next trials are expected to gain too little.

    The universal prior is conditioned on all trials. A formula that was fitted to recorded studies
    turns the expected improvement of its best candidate into the expected gain of the next
    `n_ahead` trials. This takes about a tenth of a second after each trial. The study may use any
    sampler; only what the rule `valid` of a `DRESampler` allows can be a gain. A study that
    is continued stops after its next trial unless the expectation has changed.

    Args:
        n_ahead: Number of next trials whose gain is considered, at least 1.
        min_gain: Smallest expected gain for which the study continues, in the unit of the metric,
            above 0. None: 2 % of the difference between the best trial and the median of the first
            ten. A study whose values are all equal ends in any case.
        min_n_trials: Complete, feasible trials before which the study never stops, at least 10.

    Raises:
        ValueError: If an argument is out of range; when it is called, if the study has several
            objectives.

    Example:
        ```python
        from dre_plugins.adapters.optuna import ExpectedGainCallback

        study.optimize(objective, n_trials=200, callbacks=[ExpectedGainCallback(min_gain=0.001)])
        ```
    """

    def __init__(
        self, n_ahead: int = 10, min_gain: float | None = None, min_n_trials: int = 20
    ) -> None:
        self._rule = StoppingRule(n_ahead, min_gain, min_n_trials)

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """Stop the study if the rule is met."""
        rule, _, trials = _read(study)
        observed, n_objectives = Observed.of(trials), len(study.directions)
        if self._rule.is_met(rule, observed, n_objectives=n_objectives, logger=logger):
            study.stop()


def _read(study: Study) -> tuple[Rule, list[FrozenTrial], list[Trial]]:
    """Return what may be tried, and the trials that have begun, by what the sampler knows."""
    space, begun, trials = begun_in(study)
    if not isinstance(study.sampler, DRESampler):
        return Rule(space, None), begun, trials
    trials = study.sampler.with_constraints(study, begun, trials)
    return study.sampler.rule_on(space), begun, trials
