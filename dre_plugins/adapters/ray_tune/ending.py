"""The end of an experiment of Ray Tune: when to stop it, and which trial to use."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ray.tune import Result, ResultGrid, Stopper

from dre_plugins.adapters.common.limits import Limits
from dre_plugins.adapters.common.past_tasks import SIGNS, Mode
from dre_plugins.adapters.ray_tune.history import logger
from dre_plugins.adapters.ray_tune.search import DRESearch
from dre_plugins.adapters.ray_tune.sources import (
    definition_of,
    metrics_in,
    past_trial_of,
    trials_in,
)
from dre_plugins.adapters.ray_tune.state import RESTORED
from dre_plugins.checks import require
from dre_plugins.recommend.trials import Observed
from dre_plugins.study.recommendation import Recommendation, recommended
from dre_plugins.study.stopping import StoppingRule, StudyStopping


def recommend(
    results: ResultGrid,
    metric: str,
    mode: Mode,
    *,
    space: Mapping[str, Any] | None = None,
    constraints: Mapping[str, Any] | None = None,
) -> Recommendation[Result]:
    """Return the result of the trial that the model expects to be best, see `AskTell.recommend`.

    Trials that failed or were stopped early inform the model but are not recommended. The
    experiment may have used any search algorithm.

    Args:
        results: What `Tuner.fit` has returned.
        metric: Name of the metric, with "/" between nested keys.
        mode: "min" or "max".
        space: The `param_space` of the Tuner; None infers it from the configurations.
        constraints: Limits on other metrics, see `DRESearch`; trials that break one are not
            recommended.

    Raises:
        ValueError: If no trial is complete and feasible, or an argument is wrong.
    """
    is_grid = isinstance(results, (ResultGrid, list))
    require(is_grid, "results", results, "what Tuner.fit returns")
    limits = Limits.of(constraints)
    definition = definition_of(metric, mode, space, limits)
    past_trials = [past_trial_of(results[place]) for place in range(len(results))]
    reported = {name for past in past_trials for report in past.reports for name in report}
    is_known = metric in reported or not reported  # all trials may have failed
    remedy = f"one of those reported, {sorted(metrics_in(reported))}"
    require(is_known, "metric", metric, remedy)
    limits.check(metrics_in(reported) | (limits.ranges.keys() & reported))
    skipped: Counter[str] = Counter()
    searched, trials = trials_in(past_trials, metric, SIGNS[mode], definition, skipped)
    if +skipped:
        logger.warning("The recommendation leaves out: %s.", dict(+skipped))
    chosen = recommended(searched, Observed.of([*trials.values()]))
    return chosen.as_of(results[[*trials][chosen.trial]], SIGNS[mode])


class ExpectedGainStopper(Stopper):
    """Stop an experiment when the next trials are expected to gain too little.

    See `AskTell.expected_gain`. Running trials are stopped as well.

    Args:
        search: The search algorithm of the same Tuner, which knows the trials.
        n_ahead: Number of next trials whose gain is considered, at least 1.
        min_gain: Smallest expected gain for which the experiment continues, in the unit of the
            metric, above 0. None: 2 % of the difference between the best trial and the median of
            the first ten.
        min_n_trials: Complete, feasible trials before which the experiment never stops, at least
            10.

    Raises:
        ValueError: If an argument is out of range, or `search` is no `DRESearch`; during the
            experiment, if there are several objectives.

    Example:
        ```python
        search = DRESearch()
        tuner = tune.Tuner(
            trainable,
            param_space=param_space,
            tune_config=tune.TuneConfig(
                search_alg=search, metric="loss", mode="min", num_samples=200
            ),
            run_config=tune.RunConfig(stop=ExpectedGainStopper(search, min_gain=0.001)),
        )
        ```
    """

    def __init__(
        self,
        search: DRESearch,
        n_ahead: int = 10,
        min_gain: float | None = None,
        min_n_trials: int = 20,
    ) -> None:
        if not isinstance(search, DRESearch):
            raise ValueError(f"search must be the DRESearch of the Tuner, got {search!r}.")
        self._search = search
        self._stopping = StudyStopping(StoppingRule(n_ahead, min_gain, min_n_trials), logger)
        self._has_heard = False

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Return False: no single trial is stopped."""
        self._has_heard = True
        return False

    def stop_all(self) -> bool:
        """Return whether the experiment is to stop."""
        search = RESTORED.get(self._search.identity, self._search)
        return self._has_heard and self._stopping.is_met(search.study)
