"""Deep Ranking Ensembles as a searcher of Syne Tune.

`DRESearcher` translates: domains → domains, results → `AskTell`, a suggestion → a configuration.
Syne Tune asks for a configuration before the trial has an id, so what was suggested waits until a
trial with the same configuration is heard of.
"""

from __future__ import annotations

import logging
import math
import secrets
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from syne_tune.optimizer.schedulers.searchers.single_objective_searcher import (
    SingleObjectiveBaseSearcher,
)

from dre_plugins.adapters.syne_tune_conversion import cast, hyperparameters, space_of
from dre_plugins.engine.settings import Preset, require
from dre_plugins.recommend.ask_tell import AskTell
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space.base import is_integer, match_key
from dre_plugins.transfer.knowledge import GivenPrior, prior_from

logger = logging.getLogger("dre_plugins.syne_tune")


class DRESearcher(SingleObjectiveBaseSearcher):  # type: ignore[misc]
    """Search with a deep ranking ensemble (Khazi, Pineda Arango and Grabocka, ICLR 2023).

    An ensemble of neural networks learns to *rank* configurations; the next one is where the
    expected improvement of the rank is largest. It goes with every scheduler of Syne Tune that
    takes a searcher, and with `LastValueMultiFidelitySearcher` and
    `IndependentMultiFidelitySearcher`, which take the class. The schedulers `DRE`, `ASHADRE` and
    `DRETransfer` tell it more than those of Syne Tune: which trials failed without a report, and
    which were stopped.

    - Trials that run are taken into account: those that have reported count by their reports, the
      others are not suggested again. Nothing is suggested twice (see `allow_duplicates`) by one
      searcher; `IndependentMultiFidelitySearcher` has one for each level, which do not know of
      each other. When a finite space is used up, `suggest` returns None and the tuner ends.
    - Results with a resource level are compared at equal levels, others by their number.
    - Results of trials that it has not suggested count as well.
    - Choices that are numbers in ascending order, such as `[16, 32, 64]`, are treated as ordered.
    - If the surrogate fails, space-filling points take its place: one warning, and
      `searcher.stats["fallbacks"]` counts.

    Example:
        ```python
        from syne_tune.config_space import loguniform, randint
        from syne_tune.optimizer.schedulers.asha import AsynchronousSuccessiveHalving

        config_space = {"lr": loguniform(1e-5, 1e-1), "layers": randint(1, 4)}
        scheduler = AsynchronousSuccessiveHalving(
            config_space,
            metric="loss",
            time_attr="epoch",
            max_t=27,
            searcher=DRESearcher(config_space, random_seed=1),
        )
        ```

    Args:
        config_space: Syne Tune's domains and constants by name.
        points_to_evaluate: Configurations to begin with, in order. Parameters that are missing
            are chosen to go with the others; a number out of its range is tried as it is.
        random_seed: Non-negative seed; None takes one from the operating system.
        prior: What past tasks taught: the name of a prior that ships with the package, the path
            of one, or a `dre_plugins.Prior`. The very first trial comes from it.
        n_startup_trials: Trials that must have ended before the surrogate takes over; until then
            suggestions are points of one scrambled Sobol sequence. None takes 10, or 0 with a
            prior.
        acquisition: "log-rank-ei", "ei", "pi", "lcb", "average-rank" or "thompson"; None takes
            the preset's.
        allow_duplicates: Whether a configuration may be suggested again.
        failed: "worst" ranks failed trials below all others, "ignore" leaves them out.
        preset: "default", "paper" (as in the paper; slower) or a `dre_plugins.engine.Preset`.
        device: Torch device of the surrogate, such as "cpu" or "cuda".
        n_threads: Threads that one suggestion may use.
        max_history: Trials that the surrogate is fitted to; of longer runs it takes the best and
            a spread of the rest.
        order_numeric_choices: Whether choices that are numbers in ascending order are treated as
            ordered.

    Raises:
        ValueError: If an argument is invalid, a domain cannot be searched, or the prior has no
            parameter in common with the space.
    """

    def __init__(
        self,
        config_space: Mapping[str, Any],
        points_to_evaluate: Sequence[Mapping[str, Any]] | None = None,
        random_seed: int | None = None,
        *,
        prior: GivenPrior = None,
        n_startup_trials: int | None = None,
        acquisition: str | None = None,
        allow_duplicates: bool = False,
        failed: str = "worst",
        preset: str | Preset = "default",
        device: str = "cpu",
        n_threads: int = 1,
        max_history: int = 128,
        order_numeric_choices: bool = True,
    ) -> None:
        super().__init__(dict(config_space), random_seed=seed_from(random_seed))
        self._study = AskTell(
            space_of(config_space, order_numeric_choices=order_numeric_choices),
            direction="minimize",  # schedulers flip the sign of what is to be maximised
            seed=self.random_seed,
            prior=prior_from(prior),
            n_startup_trials=n_startup_trials,
            acquisition=acquisition,
            allow_duplicates=allow_duplicates,
            failed=failed,
            preset=preset,
            device=device,
            n_threads=n_threads,
            max_history=max_history,
        )
        for point in points_to_evaluate or ():
            require(isinstance(point, Mapping), "points_to_evaluate", point, "dictionaries")
            self._study.enqueue(cast(point, config_space))
        # What was suggested and has no trial id yet: number in the study -> configuration.
        self._waiting: dict[int, Hashable] = {}
        # Trial id -> configuration and number in the study, None if it cannot be one of the study.
        self._known: dict[int, tuple[Hashable, int | None]] = {}
        self._n_reports: Counter[int] = Counter()
        self._lost: list[int] = []
        self._n_at_once: int | None = None

    # ---- what there is

    @property
    def stats(self) -> Counter[str]:
        """Counts of "suggestions" by source ("random", "prior", "model", …) and "fallbacks"."""
        return self._study.stats

    @property
    def trials(self) -> tuple[Trial, ...]:
        """What is known of the trials, in the order of suggestion; small values are good."""
        return self._study.trials

    # ---- suggesting

    def suggest(self, **kwargs: Any) -> dict[str, Any] | None:
        """Return the next configuration, or None when a finite space is used up."""
        self._give_up_silent()
        if self._lost:
            number = self._lost.pop(0)
            configuration = dict(self._study.trials[number].configuration)
        elif self._study.is_exhausted:
            return None
        else:
            number, configuration = self._study.ask()
        self._waiting[number] = self._key(configuration)
        return configuration

    def restart_running(self) -> None:
        """Say that what ran the trials is gone, and that none of them will be heard of again.

        Those that have reported count by their reports. The others are suggested once more,
        before anything new.
        """
        for number, trial in enumerate(self._study.trials):
            if trial.state is TrialState.RUNNING:
                if trial.rungs:
                    self._study.stop(number)
                elif number not in self._lost:
                    self._lost.append(number)
        self._waiting.clear()

    # ---- hearing of trials

    def on_trial_add(self, trial_id: int, config: Mapping[str, Any]) -> None:
        """Learn the id of a trial that was suggested, or of one that comes from elsewhere."""
        key = self._key(config)
        if self._known.get(trial_id, (None, None))[0] != key or key in self._waiting.values():
            self._known[trial_id] = key, self._number_for(trial_id, key, config)

    def on_trial_result(
        self,
        trial_id: int,
        config: Mapping[str, Any],
        metric: float | None,
        resource_level: float | None = None,
    ) -> None:
        """Learn an intermediate result; the last one of a resource level counts.

        Args:
            trial_id: The trial.
            config: Its configuration.
            metric: Its value, small is good; None if the report had none.
            resource_level: How far it got; None counts its reports.
        """
        if not self._known:  # nobody has said that the trial began
            self._n_at_once = max(1, len(self._waiting))
        number = self._running(trial_id, config)
        if number is None or metric is None:
            return
        self._n_reports[number] += 1
        step = number_of(resource_level)
        if not math.isfinite(step):
            step = self._n_reports[number]
        self._study.report(number, step, number_of(metric))

    def on_trial_complete(
        self,
        trial_id: int,
        config: Mapping[str, Any],
        metric: float | None,
        resource_level: float | None = None,
        constraints: Mapping[str, float] | None = None,
    ) -> None:
        """Learn the final result of a trial; NaN says that it failed.

        Args:
            trial_id: The trial.
            config: Its configuration.
            metric: Its value, small is good; None if the last report had none: then the trial
                counts by those before.
            resource_level: How far it got, if that is known.
            constraints: How far each constraint is violated, by name; at most 0 where it is met.
        """
        number = self._running(trial_id, config)
        if number is None:
            return
        if metric is None:
            self._study.stop(number, constraints=constraints)
            return
        value, step = number_of(metric), number_of(resource_level)
        if math.isfinite(step):
            self._study.report(number, step, value)
        self._study.tell(number, value, constraints=constraints)

    def on_trial_error(self, trial_id: int, config: Mapping[str, Any] | None = None) -> None:
        """Learn that a trial failed.

        Args:
            trial_id: The trial.
            config: Its configuration; without it, a trial of which nothing was heard before
                cannot be told from others, and stays among the running ones.
        """
        number = self._running(trial_id, config)
        if number is not None:
            self._study.tell(number, None)

    def on_trial_stop(
        self,
        trial_id: int,
        config: Mapping[str, Any] | None = None,
        constraints: Mapping[str, float] | None = None,
    ) -> None:
        """Learn that a scheduler has stopped a trial, which counts by what it reported.

        Args:
            trial_id: The trial.
            config: Its configuration, see `on_trial_error`.
            constraints: See `on_trial_complete`.
        """
        number = self._running(trial_id, config)
        if number is not None:
            self._study.stop(number, constraints=constraints)

    # ---- which trial is which

    def _give_up_silent(self) -> None:
        """Count trials as failed, until they report, that must have ended untold.

        `MedianStoppingRule` keeps to itself what it stops, the schedulers of Syne Tune do not say
        which trial crashed before its first report. Believed at their predicted ranks, such trials
        would draw the search to where it has just been stopped. No more trials run at once than
        were suggested before the first report.
        """
        if self._n_at_once is not None:
            silent = [*self._waiting]
            for number in silent[: max(0, len(silent) + 1 - self._n_at_once)]:
                self._study.report(number, 0.0, math.nan)

    def _key(self, configuration: Mapping[str, Any]) -> Hashable:
        try:
            values = hyperparameters(configuration, self.config_space)
        except ValueError:  # not one of this space; `_number_for` says so
            values = dict(configuration)
        return match_key(values)

    def _running(self, trial_id: int, config: Mapping[str, Any] | None) -> int | None:
        """Return the number of a trial in the study, or None if nothing can be learnt of it."""
        if config is not None and self._known.get(trial_id, (None,))[0] != self._key(config):
            self.on_trial_add(trial_id, config)
        _, number = self._known.get(trial_id, (None, None))
        if number is None or not self._study.is_running(number):
            logger.debug("Trial %s is not known, or it has ended: nothing is learnt.", trial_id)
            return None
        return number

    def _number_for(self, trial_id: int, key: Hashable, config: Mapping[str, Any]) -> int | None:
        """Return the number of what was suggested, or of a new trial of the study."""
        for number, waiting in self._waiting.items():
            if waiting == key:
                del self._waiting[number]
                return number
        try:
            values = hyperparameters(config, self.config_space)
            self._study.add(values, None, state=TrialState.RUNNING)
        except ValueError as error:
            logger.warning("Nothing is learnt of trial %s: %s", trial_id, error)
            return None
        return len(self._study.trials) - 1


def seed_from(random_seed: int | None) -> int:
    """Return a seed, from the operating system if there is none.

    Raises:
        ValueError: If it is negative.
    """
    if random_seed is None:
        return secrets.randbits(31)
    is_seed = is_integer(random_seed) and random_seed >= 0
    require(is_seed, "random_seed", random_seed, "a non-negative integer or None")
    return int(random_seed)


def number_of(value: object) -> float:
    """Return a reported value as a float, NaN if it is no number."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (ArithmeticError, TypeError, ValueError):
        return math.nan
