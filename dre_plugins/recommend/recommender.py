"""Turn a history into suggestions: evidence, schedule, proposer, and the border of fallbacks."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dre_plugins.engine.settings import get_preset, require
from dre_plugins.recommend.evidence import Evidence
from dre_plugins.recommend.explanation import Suggestion
from dre_plugins.recommend.interruptions import is_interruption
from dre_plugins.recommend.pareto import draw_weights, n_objectives
from dre_plugins.recommend.pending import parts_of
from dre_plugins.recommend.portfolio import planned
from dre_plugins.recommend.prior import (
    UNIVERSAL,
    AlignedPrior,
    FoundPrior,
    LoadedPrior,
    Universal,
    UniversalFile,
    aligned,
    check_turns,
)
from dre_plugins.recommend.proposers import Batch, Choice, Request, stream
from dre_plugins.recommend.proposers.space_filling import SpaceFilling, completed
from dre_plugins.recommend.schedule import (
    Turn,
    TurnRules,
    asks_model,
    hindrance,
    is_ensemble_ready,
    is_universal_due,
)
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space.base import Units
from dre_plugins.space.rules import Rule
from dre_plugins.space.search_space import SearchSpace

if TYPE_CHECKING:
    from dre_plugins.recommend.ensemble.fitted import FittedEnsemble
    from dre_plugins.recommend.surrogates import Surrogates

LOGGER = logging.getLogger("dre_plugins")


class Recommender:
    """Suggest configurations by a deep ranking ensemble.

    A suggestion is a function of history, seed and index alone: nothing is kept between calls
    but counters, so that processes that share a storage agree and a resumed study goes on as if
    it had never stopped.

    Args:
        space: The search space.
        settings: How to search.
        seed: Seed of everything random, non-negative.
        stats: Counters to add to: "suggestions" and their sources, see `Suggestion`; "fallbacks",
            how often a surrogate failed; "device_fallbacks", how often it did on a device other
            than the CPU, which then took over; and "skipped_turns", how often the ensemble
            took the turn of the universal prior, see `schedule.hindrance`.
        prior: What past tasks taught, such as a `dre_plugins.Prior`, or a list with one for each
            objective, None where there is none; "universal" starts the ensemble from random
            weights. Either takes turns with the universal prior; None is the ensemble alone.
        n_objectives: Number of objectives; None takes it from the history.
        logger: Where messages go, such as a framework's own; None takes "dre_plugins".
        rule: Which configurations may be suggested; None: all. Of fixed values that none with
            them may be, the rest is chosen as without a rule: one warning, and "invalid" counts.

    Raises:
        ValueError: If the seed is not a non-negative integer, the prior has no parameter in
            common with the space, it has not one entry for each objective or only None, or the
            file of a universal prior is given with a preset in which none takes turns.
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
        is_seed = isinstance(seed, (int, np.integer)) and seed >= 0
        require(is_seed, "seed", seed, "a non-negative integer")
        self.seed = int(seed)
        self.stats = stats if stats is not None else Counter()
        check_turns(prior, self.settings.preset)
        is_found = isinstance(prior, FoundPrior)
        self._align = partial(aligned, prior, space, n_objectives)
        self._priors = () if is_found else self._align()
        self._is_found = is_found
        self._universal: Universal = prior if isinstance(prior, UniversalFile) else UNIVERSAL
        preset = self.settings.preset
        has_turns = get_preset(preset).universal_turns
        # Who writes a Preset without turns wants none; who names a preset may not know.
        may_want = has_turns or isinstance(preset, str)
        self._rules = TurnRules(
            n_startup_trials=self.settings.n_startup_trials,
            has_prior=bool(self._priors),
            is_universal=prior is not None and may_want,
            preset_turns=has_turns,
            has_branches=bool(space.choices),
        )

    @property
    def about_priors(self) -> str:
        """Say in one line which parameters the trained priors know; empty without any."""
        return "; ".join(prior.about for prior in self._known if prior and prior.about)

    @cached_property
    def _known(self) -> tuple[AlignedPrior | None, ...]:
        """Return what trained priors know, also the one that the study has found."""
        return self._align() if self._is_found else self._priors

    def suggest(
        self,
        history: Sequence[Trial],
        count: int = 1,
        *,
        index: int,
        fixed: Mapping[str, Any] | None = None,
        candidates: Units | None = None,
        is_whole: NDArray[np.bool_] | None = None,
    ) -> list[Suggestion]:
        """Suggest the next configurations.

        Args:
            history: All trials so far, whatever their state, larger values are better; left
                unchanged. Configurations of running trials are not suggested again; those that
                have reported count like ones that were stopped now.
            count: How many suggestions. Of the first 16 each is followed by a fit of a quarter
                of the steps, further ones share a full fit of both models, 16 at a time.
            index: Number of the first suggestion within the study (the trial's number). Workers
                with the same history and seed differ by it.
            fixed: Values that are given already, by parameter name; the other parameters are
                chosen to go with them.
            candidates: Canonical coordinates of the only configurations that may be suggested
                `[C, P]`, such as a table of what was evaluated elsewhere; None searches the
                whole space.
            is_whole: Which trials needed nothing that their configuration lacks `[N]`, so that
                configurations which have more are the same ones, as of define-by-run; None: none.

        Returns:
            `count` suggestions, different from each other and from the history unless the space
            is exhausted or `allow_duplicates` is set.

        Raises:
            ValueError: If `count` is below 1, or if a fixed value, or one of a configuration in
                the history, is none that its parameter can have.
            RuleError: If the rule raises, or nothing satisfies it (a ValueError, too).
        """
        require(count >= 1, "count", count, "at least 1")
        given = self._fixed_units(fixed or {})
        self.check_rule()
        rule = self._rule_beside(given)
        if candidates is not None:
            candidates = rule.kept(candidates)
            require(len(candidates) > 0, "candidates", "none", "some that satisfy the rule")
        suggestions: list[Suggestion] = []
        for n_together in parts_of(count):
            first = index + len(suggestions)
            pending = [Trial(before.configuration, TrialState.RUNNING) for before in suggestions]
            evidence = self._evidence([*history, *pending], first)
            numbers = range(first, first + n_together)
            batch = Batch(
                evidence,
                numbers,
                rule,
                given,
                candidates,
                is_whole,
                shares_fit=bool(suggestions),
                may_repeat=self.settings.allow_duplicates,
                planned=self._planned(evidence, numbers),
            )
            for number, choice in zip(batch.numbers, self._choices(batch), strict=True):
                units = choice.units
                configuration = {**self.space.to_configuration(units), **(fixed or {})}
                if candidates is None:  # the coordinates of a given one tell which one it is
                    units = completed(self.space, units, number, self.seed)
                suggestion = Suggestion(configuration, units, choice.explanation)
                self.stats["suggestions"] += 1
                self.stats[suggestion.source] += 1
                suggestions.append(suggestion)
        return suggestions

    def ensemble(
        self, history: Sequence[Trial], *, index: int, candidates: Units | None = None
    ) -> FittedEnsemble:
        """Return the ensemble, fitted as for a suggestion in its turn, to look into it.

        It is to be used within `engine.runtime.isolated`, like all that computes with torch.

        Args:
            history: See `suggest`; at least one trial that can be ranked, or there is a prior.
            index: Number of the suggestion.
            candidates: See `suggest`.

        Raises:
            ValueError: See `suggest`.
            FittingError: If the fit diverged.
        """
        numbers = range(index, index + 1)
        evidence, free = self._evidence(history, index), self._fixed_units({})
        batch = Batch(evidence, numbers, self.rule, free, candidates)
        return self._surrogates(batch, self.settings.device).fitted_ensemble()

    @property
    def n_startup_trials(self) -> int:
        """Return how many trials must end before the ensemble is asked: 0 with a prior."""
        return self._rules.n_before_ensemble

    # ---- from a batch to choices

    def _choices(self, batch: Batch) -> list[Choice]:
        """Return the choices of a batch, space-filling ones if the surrogate failed.

        A broken surrogate must never cost its user a trial, whatever breaks: numerics,
        memory, a device that is gone. So this one border catches everything that is not the
        user's (see `interruptions`), counts it and says so once; the search goes on on the CPU if
        it was on another device, otherwise with space-filling points.
        """
        self._count_skipped_turns(batch)
        if not asks_model(batch.numbers, batch.evidence, self._rules):
            return self._space_filling(batch, "random")
        if "torch" not in sys.modules:
            self._logger.info("Importing torch for the first model, which takes some seconds.")
        for device in dict.fromkeys((self.settings.device, "cpu")):
            try:
                return self._surrogates(batch, device).choices()
            except Exception as error:
                if is_interruption(error):
                    raise
                self._count_failure(error, device)
        return self._space_filling(batch, "fallback")

    def _surrogates(self, batch: Batch, device: str) -> Surrogates:
        # torch: only when it is needed
        from dre_plugins.recommend.surrogates import Surrogates

        return Surrogates(
            batch,
            self._rules,
            priors=self._priors,
            universal=self._universal,
            settings=replace(self.settings, device=device),
            seed=self.seed,
        )

    def _space_filling(self, batch: Batch, turn: Turn) -> list[Choice]:
        filling = SpaceFilling(batch.rule, self.seed, batch.candidates, batch.planned)
        seen = batch.seen()
        choices = []
        for number in batch.numbers:
            choice = filling.propose(Request(number, turn, seen, batch.fixed))
            choices.append(choice)
            if not batch.may_repeat:
                seen.include(self.space.canonical(choice.units[None]))
        return choices

    # ---- what is known and wanted

    def _evidence(self, history: Sequence[Trial], index: int) -> Evidence:
        n, n_priors = n_objectives(history), len(self._priors)
        is_for = n_priors <= 1 or n in (0, n_priors)
        require(
            is_for, "history", f"trials of {n} objectives", f"of {n_priors}, as the priors are"
        )
        rng = stream("objective-weights", self.seed, index)
        return Evidence.of(
            self.space,
            history,
            weights=draw_weights(max(n, n_priors, 1), rng),
            failed=self.settings.failed,
            max_history=self.settings.max_history,
        )

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

    def _planned(self, evidence: Evidence, numbers: range) -> dict[int, Units]:
        """Return what a prior that the study has found plans for start-up suggestions."""
        if not self._is_found or is_ensemble_ready(evidence, self._rules):
            return {}
        known = [prior for prior in self._known if prior is not None]
        return planned(known[0].favourites, evidence.units, numbers) if known else {}

    def _rule_beside(self, given: Units) -> Rule:
        """Return the rule; one that everything satisfies if no configuration with `given` does."""
        if self.rule.may_hold(given):
            return self.rule
        self.count_invalid()
        return Rule(self.space, None)

    # ---- what is counted and said

    def check_rule(self) -> None:
        """Say once if hardly any configuration satisfies the rule; a RuleError: none does."""
        problem = self.rule.check()
        if problem and not self.stats["thin_rule"]:
            self.stats["thin_rule"] += 1
            self._logger.warning(problem)

    def count_invalid(self) -> None:
        """Count a configuration that its user wants although it breaks the rule; say it once."""
        if not self.stats["invalid"]:
            self._logger.warning(
                "A configuration that you gave breaks the rule `valid`; it is tried all the same. "
                "Further ones are only counted."
            )
        self.stats["invalid"] += 1

    def _count_skipped_turns(self, batch: Batch) -> None:
        """Count turns that the universal prior does not take, and say once why."""
        reason = hindrance(batch.evidence, self._rules)
        n_due = sum(is_universal_due(n, batch.evidence, self._rules) for n in batch.numbers)
        if reason is None or not n_due:
            return
        if not self.stats["skipped_turns"]:
            self._logger.info("The universal prior takes no turns, as %s.", reason)
        self.stats["skipped_turns"] += n_due

    def _count_failure(self, error: Exception, device: str) -> None:
        """Count a failure of the surrogate, and say the first one."""
        if device == "cpu":
            counter, what, instead = "fallbacks", "failed", "space-filling points"
        else:
            counter, what, instead = "device_fallbacks", f"fails on {device!r}", "the CPU"
        if self.stats[counter] == 0:
            self._logger.warning(
                "The surrogate %s (%s: %s); using %s instead. Further failures are only counted.",
                what,
                type(error).__name__,
                error,
                instead,
            )
        self.stats[counter] += 1
