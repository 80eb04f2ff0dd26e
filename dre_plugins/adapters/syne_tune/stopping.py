"""End an experiment of Syne Tune when the next trials are expected to gain too little."""

from __future__ import annotations

from syne_tune.tuning_status import TuningStatus

from dre_plugins.adapters.syne_tune.history import StudySearcher, logger
from dre_plugins.adapters.syne_tune.scheduler import TellingScheduler
from dre_plugins.recommend.stopping import StoppingRule, StudyStopping


class ExpectedGainCriterion:
    """Stop an experiment when the next trials are expected to gain too little.

    The universal prior reads all trials and tells what the best candidate would gain; from that
    follows what the next trials of recorded studies gained on average.

    Args:
        scheduler: The scheduler of the same tuner, or its `DRESearcher`.
        n_ahead: How many further trials are thought of, at least 1.
        min_gain: The experiment stops when they are expected to gain less, in the unit of the
            metric, above 0. None: 2 % of what the best trial has gained on the median of the
            first ten.
        min_n_trials: Complete, feasible trials before which it goes on, at least 10.

    Raises:
        ValueError: If an argument is out of range, or no scheduler of ours; during the
            experiment, if there are several objectives.

    Example:
        ```python
        scheduler = DRE(config_space, metric="loss")
        enough, limit = ExpectedGainCriterion(scheduler), StoppingCriterion(max_wallclock_time=600)
        Tuner(
            trial_backend=LocalBackend("train.py"),
            scheduler=scheduler,
            stop_criterion=lambda status: enough(status) or limit(status),
            n_workers=4,
        ).run()
        ```
    """

    def __init__(
        self,
        scheduler: TellingScheduler | StudySearcher,
        n_ahead: int = 10,
        min_gain: float | None = None,
        min_n_trials: int = 20,
    ) -> None:
        searcher = getattr(scheduler, "searcher", scheduler)
        if not isinstance(searcher, StudySearcher):
            raise ValueError(f"scheduler must have a DRESearcher, got {scheduler!r}.")
        self._searcher = searcher
        rule = StoppingRule(n_ahead, min_gain, min_n_trials)
        self._stopping = StudyStopping(rule, logger)

    def __call__(self, status: TuningStatus) -> bool:
        """Return whether the experiment is to stop."""
        return self._stopping.is_met(self._searcher.study)
