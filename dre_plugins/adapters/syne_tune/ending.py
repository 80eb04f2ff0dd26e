"""The end of an experiment of Syne Tune: when to stop it, and which trial to use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syne_tune.constants import ST_TRIAL_ID
from syne_tune.optimizer.scheduler import TrialScheduler
from syne_tune.tuning_status import TuningStatus

from dre_plugins.adapters.common.limits import Limits
from dre_plugins.adapters.common.past_tasks import Mode, TaskDefinition
from dre_plugins.adapters.syne_tune.history import StudySearcher, logger, searcher_in
from dre_plugins.adapters.syne_tune.sources import read_experiment
from dre_plugins.checks import require
from dre_plugins.recommend.trials import Observed
from dre_plugins.study.recommendation import Recommendation, recommended
from dre_plugins.study.stopping import StoppingRule, StudyStopping

if TYPE_CHECKING:
    from syne_tune.experiments import ExperimentResult


def recommend(
    experiment: ExperimentResult,
    metric: str | None = None,
    mode: Mode | None = None,
    *,
    constraints: Mapping[str, Any] | None = None,
) -> Recommendation[dict[str, Any]]:
    """Return the trial of an experiment that the model expects to be best.

    See `AskTell.recommend`. Trials that failed or were stopped early inform the model but are not
    recommended. The experiment may have used any scheduler.

    Args:
        experiment: What `load_experiment` returns.
        metric: The metric; None: the first one of the experiment.
        mode: "min" or "max"; None: what the experiment says, or "min".
        constraints: Limits on other metrics, see `DRE`; trials that break one are not recommended.

    Returns:
        A recommendation whose trial is the last report, as `best_config` returns one.

    Raises:
        ValueError: If no trial is complete and feasible, or nothing reports the metric.
    """
    is_loaded = hasattr(experiment, "path") and hasattr(experiment, "results")
    require(is_loaded, "experiment", experiment, "what load_experiment returns")
    limits, skipped = Limits.of(constraints), Counter[str]()
    read = read_experiment(Path(experiment.path), TaskDefinition(metric, mode, limits), skipped)
    if read is None:
        raise ValueError(f"There is nothing to recommend: {'; '.join(skipped)}.")
    limits.check([*map(str, experiment.results)])
    table = experiment.results.to_dict("records")
    last_reports = {str(report[ST_TRIAL_ID]): report for report in table}
    chosen = recommended(read.space, Observed.of([*read.trials.values()]))
    report = last_reports[[*read.trials][chosen.trial]]
    shown = {str(name): cell for name, cell in report.items() if not str(name).startswith("st_")}
    return chosen.as_of(shown, read.sign)


class ExpectedGainCriterion:
    """Stop an experiment when the next trials are expected to gain too little.

    See `AskTell.expected_gain`.

    Args:
        scheduler: The scheduler of the same tuner, which may be in another one such as
            `MedianStoppingRule`, or its `DRESearcher`.
        n_ahead: Number of next trials whose gain is considered, at least 1.
        min_gain: Smallest expected gain for which the experiment continues, in the unit of the
            metric, above 0. None: 2 % of the difference between the best trial and the median of
            the first ten.
        min_n_trials: Complete, feasible trials before which the experiment never stops, at least
            10.

    Raises:
        ValueError: If an argument is out of range, or the scheduler has no `DRESearcher`; during
            the experiment, if there are several objectives.

    Example:
        ```python
        scheduler = DRE(config_space, metric="loss")
        enough, limit = ExpectedGainCriterion(scheduler), StoppingCriterion(max_wallclock_time=600)
        stop_criterion = lambda status: enough(status) or limit(status)  # of the Tuner
        ```
    """

    def __init__(
        self,
        scheduler: TrialScheduler | StudySearcher,
        n_ahead: int = 10,
        min_gain: float | None = None,
        min_n_trials: int = 20,
    ) -> None:
        searcher = searcher_in(scheduler)
        if searcher is None:
            raise ValueError(f"scheduler must have a DRESearcher, got {scheduler!r}.")
        self._searcher = searcher
        self._stopping = StudyStopping(StoppingRule(n_ahead, min_gain, min_n_trials), logger)

    def __call__(self, status: TuningStatus) -> bool:
        """Return whether the experiment is to stop."""
        return self._stopping.is_met(self._searcher.study)
