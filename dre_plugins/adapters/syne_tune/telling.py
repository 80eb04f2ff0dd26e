"""What the schedulers for Syne Tune have in common, for one objective and for several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from syne_tune.backend.trial_status import Trial
from syne_tune.optimizer.scheduler import TrialScheduler

from dre_plugins.adapters.syne_tune.history import StudySearcher
from dre_plugins.adapters.syne_tune.messages import logger
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.limits import Limits

_PLAIN = (str, int, float, bool, type(None))


class TellingScheduler(TrialScheduler):  # type: ignore[misc]
    """Tell the searcher all that happens to a trial; what is shared by our schedulers."""

    searcher: StudySearcher
    _limits: Limits
    _has_warned = False

    @property
    def mode(self) -> str:
        """Return "min" or "max", for `AskTellScheduler.best_trial`."""
        return str(self.metric_mode())

    def explain(self, trial_id: int) -> Explanation:
        """Say where the configuration of a trial came from and what was expected of it.

        Raises:
            ValueError: If nothing was heard of such a trial.
        """
        return self.searcher.explain(trial_id)

    def on_trial_add(self, trial: Trial) -> None:
        """Learn which trial runs a suggestion."""
        super().on_trial_add(trial)
        self.searcher.on_trial_add(trial.trial_id, trial.config)

    def on_trial_error(self, trial: Trial) -> None:
        """Learn that a trial has failed."""
        self.searcher.on_trial_error(trial.trial_id, trial.config)
        super().on_trial_error(trial)

    def on_trial_remove(self, trial: Trial) -> None:
        """Learn that a trial was stopped."""
        super().on_trial_remove(trial)
        self.searcher.on_trial_stop(trial.trial_id, trial.config)

    def metadata(self) -> dict[str, Any]:
        """Return what is written beside the results, without the state of the search."""
        plain = {k: v for k, v in vars(self).items() if isinstance(v, _PLAIN) and k[0] != "_"}
        return {**super().metadata(), "scheduler_kwargs": plain}

    def _is_complete(
        self,
        trial: Trial,
        result: Mapping[str, Any],
        names: Sequence[str],
        otherwise: str = "such reports are ignored",
    ) -> bool:
        """Say whether a report has what it should have; warn once if not."""
        missing = [name for name in names if name not in result]
        if missing and not self._has_warned:
            self._has_warned = True
            logger.warning(
                "Trial %s reported %s without %s: %s.",
                trial.trial_id,
                sorted(name for name in result if not name.startswith("st_")),
                missing,
                otherwise,
            )
        return not missing
