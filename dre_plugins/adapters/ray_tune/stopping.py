"""End an experiment of Ray Tune when the next trials are expected to gain too little."""

from __future__ import annotations

from typing import Any

from ray.tune import Stopper

from dre_plugins.adapters.ray_tune.history import logger
from dre_plugins.adapters.ray_tune.search import DRESearch
from dre_plugins.recommend.stopping import StoppingRule, StudyStopping


class ExpectedGainStopper(Stopper):
    """Stop an experiment when the next trials are expected to gain too little.

    The universal prior reads all trials and tells what the best candidate would gain; from that
    follows what the next trials of recorded studies gained on average. Trials that run are
    stopped as well.

    Args:
        search: The search algorithm of the same Tuner, which knows the trials.
        n_ahead: How many further trials are thought of, at least 1.
        min_gain: The experiment stops when they are expected to gain less, in the unit of the
            metric, above 0. None: 2 % of what the best trial has gained on the median of the
            first ten.
        min_n_trials: Complete, feasible trials before which it goes on, at least 10.

    Raises:
        ValueError: If an argument is out of range, or no `DRESearch`; during the experiment, if
            there are several objectives.

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
        rule = StoppingRule(n_ahead, min_gain, min_n_trials)
        self._stopping = StudyStopping(rule, logger)
        self._has_heard = False

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Return False: no single trial is stopped."""
        self._has_heard = True
        return False

    def stop_all(self) -> bool:
        """Return whether the experiment is to stop."""
        return self._has_heard and self._stopping.is_met(self._search.study)
