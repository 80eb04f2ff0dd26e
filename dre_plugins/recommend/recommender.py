"""From a history to suggestions: evidence, schedule, proposer, and the fallback on failure."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from dre_plugins.checks import is_integer, require
from dre_plugins.engine.settings import get_preset
from dre_plugins.recommend import schedule
from dre_plugins.recommend.batch import Batch
from dre_plugins.recommend.evidence import Evidence
from dre_plugins.recommend.explanation import Suggestion
from dre_plugins.recommend.interruptions import is_interruption
from dre_plugins.recommend.pareto import draw_weights, n_objectives
from dre_plugins.recommend.prior import (
    UNIVERSAL,
    LoadedPrior,
    PastTasksLike,
    Portfolio,
    RecognisedPrior,
    Universal,
    UniversalFile,
    aligned,
    check_turns,
    checked,
)
from dre_plugins.recommend.proposers.space_filling import SpaceFilling, completed
from dre_plugins.recommend.schedule import Choice, TurnRules, stream
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space.base import Mask, Units
from dre_plugins.space.rules import Rule
from dre_plugins.space.search_space import SearchSpace

if TYPE_CHECKING:
    from dre_plugins.recommend.proposers.ensemble import EnsembleProposer

LOGGER = logging.getLogger("dre_plugins")

# Each of the first suggestions of a batch has a fit. Later ones share a fit, this many at a time,
# because the cost of a fit grows with the number of fantasies (lab/2026-11-23-costs.md).
N_TOGETHER = 16

# Of threads that need torch at the same time, one says so and imports it.
_IMPORTING = Lock()


class Recommender:
    """Suggest configurations by a universal prior and a deep ranking ensemble.

    A suggestion is a function of history, seed and index alone. Only counters are kept between
    calls, so processes that share a storage agree, and a resumed study goes on as if it had never
    stopped.

    Args:
        space: The search space.
        settings: How to search.
        seed: Seed of everything random, non-negative.
        stats: Counters to add to: "suggestions", and these by `Suggestion.source`; "fallbacks" to
            space-filling points, because a model failed; "device_fallbacks" to the CPU, because a
            model failed on another device; "skipped_turns" of the universal prior, which the
            ensemble took, as the preset has none; "past_contradicted" suggestions, made without
            past studies because the trials contradict them all; "invalid" configurations of the
            user, which break the rule; "thin_rule", 1 if few configurations satisfy it.
        prior: A trained prior, such as a `dre_plugins.Prior`, or a list with one for each
            objective, None where there is none. "universal" starts the ensemble from random
            weights, and so do past studies of one objective, `PastTasksLike`, see `schedule`.
            With any of these, the universal prior takes turns; None is the ensemble alone.
        n_objectives: Number of objectives; None takes it from the history.
        logger: Logger of all messages; None takes "dre_plugins".
        rule: Which configurations may be suggested; None: all. If none with the fixed values may,
            the other values are chosen without the rule.

    Raises:
        ValueError: If the seed is not a non-negative integer, the prior has no parameter in
            common with the space, a list of priors has only None or not one entry for each
            objective, or the file of a universal prior is given with a preset without its turns.
    """

    def __init__(
        self,
        space: SearchSpace,
        settings: RecommenderSettings | None = None,
        *,
        seed: int,
        stats: Counter[str] | None = None,
        prior: LoadedPrior = UNIVERSAL,
        n_objectives: int | None = None,
        logger: logging.Logger | None = None,
        rule: Rule | None = None,
    ) -> None:
        self._logger = LOGGER if logger is None else logger
        self.rule = Rule(space, None) if rule is None else rule
        self.space = space
        self.settings = settings if settings is not None else RecommenderSettings()
        require(is_integer(seed) and seed >= 0, "seed", seed, "a non-negative integer")
        self.seed = int(seed)
        self.stats = stats if stats is not None else Counter()
        check_turns(prior, self.settings.preset)
        self._prior = prior = checked(prior, n_objectives)
        self._priors = aligned(prior, space)
        self._past = prior if isinstance(prior, PastTasksLike) and space.n_parameters else None
        self._past_tasks = () if self._past is None else self._past.tasks_on(space)
        self._universal: Universal = prior if isinstance(prior, UniversalFile) else UNIVERSAL
        preset = self.settings.preset
        has_turns = get_preset(preset).universal_turns
        self._turns = TurnRules(
            n_startup_trials=self.settings.n_startup_trials,
            has_prior=bool(self._priors),
            has_past_tasks=bool(self._past_tasks),
            is_universal=prior is not None and has_turns,
        )
        # Skipped turns are reported if a preset without turns was given by its name; in a `Preset`
        # of the user they are intended.
        self._skips_turns = prior is not None and not has_turns and isinstance(preset, str)

    @property
    def prior_summary(self) -> str:
        """Say in one line which parameters priors and past studies know; empty without any."""
        texts = [prior.summary for prior in self._priors if prior and prior.summary]
        if self._portfolio is not None:
            texts.append(self._portfolio.summary)
        if self._past is not None:
            texts.append(self._past.summary(self.space))
        return "; ".join(texts)

    @cached_property
    def _portfolio(self) -> Portfolio | None:
        """Return the portfolio of a recognised learner, None without."""
        prior = self._prior
        return prior.portfolio_on(self.space) if isinstance(prior, RecognisedPrior) else None

    def suggest(
        self,
        history: Sequence[Trial],
        count: int = 1,
        *,
        index: int,
        fixed: Mapping[str, Any] | None = None,
        candidates: Units | None = None,
        is_whole: Mask | None = None,
        is_evaluated: Mask | None = None,
    ) -> list[Suggestion]:
        """Suggest the next configurations.

        Args:
            history: All trials so far, in any state, larger values are better; left unchanged.
                Configurations of running trials are not suggested again; running trials that have
                reported count as if they were stopped now.
            count: Number of suggestions. After each of the first 16 the models are fitted for a
                quarter of the steps; further ones share a full fit, 16 at a time.
            index: Number of the first suggestion within the study (the trial's number). It makes
                the suggestions of workers with the same history and seed differ.
            fixed: Given values by parameter name; the model chooses the other parameters.
            candidates: Canonical coordinates of the only configurations that may be suggested
                `[C, P]`, such as the rows of a table, with fixed values put in; None: the space.
            is_whole: Trials that stand for every configuration that agrees with them on their
                parameters, because the objective asks for no further ones (define-by-run) `[N]`;
                None: no trial.
            is_evaluated: Trials whose configurations are not suggested again `[N]`; None: all.

        Returns:
            `count` suggestions, different from each other and from the history unless the space
            is exhausted or `allow_duplicates` is set.

        Raises:
            ValueError: If `count` or `index` is no integer in its range, a parameter can never
                have its fixed value or one in the history, no candidate satisfies the rule, or
                trials have not as many objectives as each other and as there are priors.
            RuleError: If the rule raises, or nothing satisfies it (a ValueError, too).
        """
        require(is_integer(count) and count >= 1, "count", count, "an integer of at least 1")
        require(is_integer(index) and index >= 0, "index", index, "a non-negative integer")
        fixed = fixed or {}
        fixed_units = self._fixed_units(fixed)
        self.check_rule()
        rule = self._rule_with(fixed, fixed_units, is_table=candidates is not None)
        if candidates is not None:
            candidates = rule.kept(candidates)
            require(len(candidates) > 0, "candidates", "none", "some that satisfy the rule")
        suggestions: list[Suggestion] = []
        for first in range(index, index + count, N_TOGETHER):
            pending = [Trial(before.configuration, TrialState.RUNNING) for before in suggestions]
            batch = self._batch(
                [*history, *pending],
                range(first, min(first + N_TOGETHER, index + count)),
                rule=rule,
                fixed=fixed_units,
                candidates=candidates,
                is_whole=is_whole,
                is_evaluated=is_evaluated,
                shares_fit=bool(suggestions),
            )
            for number, choice in zip(batch.numbers, self._choices(batch), strict=True):
                units = choice.units
                configuration = {**self.space.to_configuration(units), **fixed}
                if candidates is None:  # those of a candidate must stay as they were given
                    units = completed(self.space, units, number, self.seed)
                suggestion = Suggestion(configuration, units, choice.explanation)
                self.stats["suggestions"] += 1
                self.stats[suggestion.source] += 1
                suggestions.append(suggestion)
        return suggestions

    def ensemble(
        self, history: Sequence[Trial], *, index: int, candidates: Units | None = None
    ) -> EnsembleProposer:
        """Return the ensemble as it would be fitted for a suggestion, for plots.

        Use it within `engine.runtime.isolated`, which protects the user's torch settings.

        Args:
            history: See `suggest`; at least one trial that can be ranked, or there is a prior.
            index: Number of the suggestion.
            candidates: See `suggest`.

        Raises:
            ValueError: See `suggest`.
            FittingError: If the fit diverged.
        """
        from dre_plugins.recommend.proposers.ensemble import EnsembleProposer  # imports torch

        numbers, free = range(index, index + 1), self._fixed_units({})
        batch = self._batch(history, numbers, rule=self.rule, fixed=free, candidates=candidates)
        return EnsembleProposer(batch)

    # ---- from a batch to choices

    def _batch(self, history: Sequence[Trial], numbers: range, **given: Any) -> Batch:
        """Return what is read for the suggestions of some numbers, `given` is of `Batch`."""
        n, n_priors, first = n_objectives(history), len(self._priors), numbers[0]
        is_for = n_priors <= 1 or n in (0, n_priors)
        require(
            is_for, "history", f"trials of {n} objectives", f"of {n_priors}, as the priors are"
        )
        evidence = Evidence.of(
            self.space,
            history,
            weights=draw_weights(
                max(n, n_priors, 1), stream("objective-weights", self.seed, first)
            ),
            failed=self.settings.failed,
            max_history=self.settings.max_history,
        )
        return Batch(
            evidence,
            numbers,
            seed=self.seed,
            settings=self.settings,
            turns=self._turns,
            priors=self._priors,
            past_tasks=self._past_tasks if schedule.uses_past_tasks(first, self._turns) else (),
            universal=self._universal,
            portfolio=self._start_up_portfolio(evidence),
            **given,
        )

    def _start_up_portfolio(self, evidence: Evidence) -> Portfolio | None:
        """Return the portfolio of a recognised learner while there are start-up suggestions."""
        if schedule.is_ensemble_ready(evidence, self._turns) or self._portfolio is None:
            return None
        # One that breaks the rule is never tried, and would keep its place before the others.
        allowed = [self.rule.may_hold(units) for units in self._portfolio.units]
        return replace(self._portfolio, units=self._portfolio.units[allowed])

    def _choices(self, batch: Batch) -> list[Choice]:
        """Return the choices of a batch, space-filling ones if the surrogate failed.

        A failure of a model (numerics, memory, a lost device) must never cost the user a trial.
        So this is the one place that catches all exceptions except those of the user (see
        `interruptions`). It counts them and warns once. The search continues on the CPU if the
        device was another one, otherwise with space-filling points.
        """
        self._count_skipped_turns(batch)
        if not schedule.asks_model(batch.numbers, batch.evidence, batch.turns):
            return SpaceFilling(batch).choices("random")
        for device in dict.fromkeys((self.settings.device, "cpu")):
            try:
                with _IMPORTING:
                    if "torch" not in sys.modules:
                        self._logger.info(
                            "Importing torch for the first model, which takes some seconds."
                        )
                    from dre_plugins.recommend.choices import choices_of  # imports torch

                batch = replace(batch, settings=replace(self.settings, device=device))
                choices = choices_of(batch)
                if batch.past_tasks and batch.past_gains is None:
                    self.stats["past_contradicted"] += len(batch.numbers)
                return choices
            except Exception as error:
                if is_interruption(error):
                    raise
                self._count_failure(error, device)
        return SpaceFilling(batch).choices("fallback")

    # ---- fixed values

    def _fixed_units(self, fixed: Mapping[str, Any]) -> Units:
        """Return the coordinates `[P]` of fixed values, NaN for parameters that are free."""
        units = np.full(self.space.n_parameters, np.nan)
        for name, value in fixed.items():
            domains = self.space.domains
            require(name in domains, "fixed", name, f"among {list(domains)}")
            domain = domains[name]
            require(domain.contains(value), f"fixed[{name!r}]", value, f"in {domain}")
            if name in self.space.names:  # constants have no coordinate
                units[self.space.names.index(name)] = domain.to_unit(value)
        return units

    def _rule_with(self, fixed: Mapping[str, Any], fixed_units: Units, *, is_table: bool) -> Rule:
        """Return the rule for what is chosen beside fixed values; it allows all if they break it.

        Outside a table it also requires parents to have values with which the fixed parameters are
        active, if that is possible.
        """
        if not self.rule.may_hold(fixed_units):
            return Rule(self.space, None)
        conditions = self.space.conditions
        has_free_parents = any(c.child in fixed and c.parent not in fixed for c in conditions)
        if is_table or not has_free_parents:
            return self.rule
        narrowed = self.rule.requiring(fixed)
        return narrowed if narrowed.may_hold(fixed_units) else self.rule

    # ---- counters and messages

    def _count(self, counter: str, level: int, message: str, *args: object, n: int = 1) -> None:
        """Add to a counter, and log the first time."""
        if not self.stats[counter]:
            self._logger.log(level, message, *args)
        self.stats[counter] += n

    def check_rule(self) -> None:
        """Warn once if few configurations satisfy the rule; a RuleError says that none does."""
        problem = self.rule.check()
        if problem and not self.stats["thin_rule"]:
            self.stats["thin_rule"] += 1
            self._logger.warning(problem)

    def count_invalid(self) -> None:
        """Count a configuration of the user that breaks the rule, and warn once."""
        self._count(
            "invalid",
            logging.WARNING,
            "A configuration that you gave breaks the rule `valid`; it is tried all the same. "
            "Further ones are only counted.",
        )

    def _count_skipped_turns(self, batch: Batch) -> None:
        """Count the turns that the universal prior misses by the preset; log the first one."""
        if not self._skips_turns:
            return
        with_turns = replace(self._turns, is_universal=True)
        n_due = sum(
            schedule.has_universal_turn(n, batch.evidence, with_turns) for n in batch.numbers
        )
        message = "The universal prior takes no turns, as the preset is the ensemble alone."
        if n_due:
            self._count("skipped_turns", logging.INFO, message, n=n_due)

    def _count_failure(self, error: Exception, device: str) -> None:
        """Count a failure of a surrogate, and warn of the first one."""
        if device == "cpu":
            counter, what, instead = "fallbacks", "failed", "space-filling points"
        else:
            counter, what, instead = "device_fallbacks", f"fails on {device!r}", "the CPU"
        message = "The surrogate %s (%s: %s); using %s instead. Further failures are only counted."
        kind = type(error).__name__
        self._count(counter, logging.WARNING, message, what, kind, error, instead)
