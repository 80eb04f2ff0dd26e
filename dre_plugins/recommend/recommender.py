"""Turn a history into suggestions: the one place where decisions about the search are made."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dre_plugins.engine.settings import get_preset, require
from dre_plugins.recommend.branches import branch_to_try
from dre_plugins.recommend.interruptions import is_interruption
from dre_plugins.recommend.noise import repetition_keys, without_noise
from dre_plugins.recommend.pareto import as_one_objective, draw_weights, n_objectives
from dre_plugins.recommend.pending import parts_of
from dre_plugins.recommend.prior import (
    UNIVERSAL,
    GivenPrior,
    Universal,
    UniversalFile,
    aligned,
    check_turns,
)
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.recommend.space_filling import SpaceFilling, completed
from dre_plugins.recommend.suggestion import Suggestion
from dre_plugins.recommend.trials import Trial, TrialState, as_of_now
from dre_plugins.recommend.turns import (
    Evidence,
    Proposer,
    TurnRules,
    hindrance,
    is_universal_due,
    proposer_for,
)
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.space.seen import Seen

if TYPE_CHECKING:
    from dre_plugins.recommend.model import RankingModel
    from dre_plugins.recommend.search import Choice
    from dre_plugins.recommend.universal_model import UniversalModel

    Model: TypeAlias = RankingModel | UniversalModel

LOGGER = logging.getLogger("dre_plugins")

Units = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Task:
    """Hold what one call of `Recommender.suggest` is about, encoded once.

    Args:
        history: All trials so far.
        units: Canonical coordinates of their configurations `[N, P]`.
        fixed: Coordinates that are given `[P]`, NaN where they are free.
        count: How many suggestions.
        index: Number of the first one.
        candidates: Canonical coordinates of what may be suggested `[C, P]`; None: all there is.
        weights: Weights of the objectives `[O]`.
        is_whole: Which trials stand for all configurations that agree with them `[N]`.
        shares_fit: Whether all suggestions come from one fit.
    """

    history: tuple[Trial, ...]
    units: Units
    fixed: Units
    count: int
    index: int
    candidates: Units | None
    weights: Units
    is_whole: NDArray[np.bool_]
    shares_fit: bool = False


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
            took the turn of the universal prior, see `turns.hindrance`.
        prior: What past tasks taught, such as a `dre_plugins.Prior`, or a list with one for each
            objective, None where there is none; "universal" starts the ensemble from random
            weights. Either takes turns with the universal prior; None is the ensemble alone.
        n_objectives: Number of objectives; None takes it from the history.
        logger: Where messages go, such as a framework's own; None takes "dre_plugins".

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
        prior: GivenPrior = UNIVERSAL,
        n_objectives: int | None = None,
        logger: logging.Logger | None = None,
    ) -> None:
        self._logger = LOGGER if logger is None else logger
        self.space = space
        self.settings = settings if settings is not None else RecommenderSettings()
        is_seed = isinstance(seed, (int, np.integer)) and seed >= 0
        require(is_seed, "seed", seed, "a non-negative integer")
        self.seed = int(seed)
        self.stats = stats if stats is not None else Counter()
        check_turns(prior, self.settings.preset)
        self._priors = aligned(prior, space, n_objectives)
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
        )

    @property
    def about_priors(self) -> str:
        """Say in one line which parameters the priors of past tasks know; empty without any."""
        return "; ".join(prior.about for prior in self._priors if prior and prior.about)

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
                configurations which have more are the same ones, see `define_by_run`; None: none.

        Returns:
            `count` suggestions, different from each other and from the history unless the space
            is exhausted or `allow_duplicates` is set.

        Raises:
            ValueError: If `count` is below 1, or if a fixed value, or one of a configuration in
                the history, is none that its parameter can have.
        """
        require(count >= 1, "count", count, "at least 1")
        suggestions: list[Suggestion] = []
        known = [*history]
        whole = np.zeros(len(known), dtype=np.bool_) if is_whole is None else is_whole
        for n_together in parts_of(count):
            number = index + len(suggestions)
            task = self._task(known, n_together, number, fixed, candidates, whole)
            part = self._suggestions(replace(task, shares_fit=len(suggestions) > 0))
            for suggestion in part:
                suggestion.configuration.update(fixed or {})
                self.stats["suggestions"] += 1
                self.stats[suggestion.source] += 1
            suggestions += part
            known += [Trial(each.configuration, TrialState.RUNNING) for each in part]
            whole = np.concatenate([whole, np.zeros(len(part), dtype=np.bool_)])
        return suggestions

    def _suggestions(self, task: _Task) -> list[Suggestion]:
        turns = self._turns(task)
        if set(turns) == {"random"}:
            suggestions = self._startup_suggestions(task, "random")
        else:
            suggestions = self._model_suggestions(task, turns)
        if task.candidates is not None:  # whose coordinates tell which one it is
            return suggestions
        return [
            replace(each, units=completed(self.space, each.units, number, self.seed))
            for number, each in enumerate(suggestions, task.index)
        ]

    def model(
        self, history: Sequence[Trial], *, index: int, candidates: Units | None = None
    ) -> RankingModel:
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
        return self._model(self._task(history, 1, index, None, candidates), self.settings)

    def _task(
        self,
        history: Sequence[Trial],
        count: int,
        index: int,
        fixed: Mapping[str, Any] | None,
        candidates: Units | None,
        is_whole: NDArray[np.bool_] | None = None,
    ) -> _Task:
        n, n_priors = n_objectives(history), len(self._priors)
        is_for = n_priors <= 1 or n in (0, n_priors)
        require(
            is_for, "history", f"trials of {n} objectives", f"of {n_priors}, as the priors are"
        )
        n = max(n, n_priors, 1)
        weights = draw_weights(n, np.random.default_rng([self.seed, index]))
        history = as_one_objective(as_of_now(history), weights)
        units = self.space.to_units([trial.configuration for trial in history])
        return _Task(
            tuple(without_noise(history, repetition_keys(units))),
            units,
            self._fixed_units(fixed or {}),
            count,
            index,
            candidates,
            weights,
            np.zeros(len(history), dtype=np.bool_) if is_whole is None else is_whole,
        )

    @property
    def n_startup_trials(self) -> int:
        """Return how many trials must end before the ensemble is asked: 0 with a prior."""
        return self._rules.n_before_ensemble

    def _turns(self, task: _Task) -> list[Proposer]:
        """Return who proposes each suggestion, and say once why the universal prior does not."""
        evidence = Evidence.of(
            task.history,
            n_objectives=len(task.weights),
            has_parameters=self.space.n_parameters > 0,
        )
        numbers = range(task.index, task.index + task.count)
        reason = hindrance(evidence, self._rules)
        n_due = sum(is_universal_due(index, evidence, self._rules) for index in numbers)
        if reason is not None and n_due:
            if not self.stats["skipped_turns"]:
                self._logger.info("The universal prior takes no turns, as %s.", reason)
            self.stats["skipped_turns"] += n_due
        return [proposer_for(index, evidence, self._rules) for index in numbers]

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

    def _model_suggestions(self, task: _Task, turns: list[Proposer]) -> list[Suggestion]:
        """Return the surrogate's suggestions, or space-filling ones if it failed.

        A broken surrogate must never cost its user a trial, whatever breaks: numerics,
        memory, a device that is gone. So this one border catches everything that is not the
        user's (see `interruptions`), counts it and says so once; the search goes on on the CPU if
        it was on another device, otherwise with space-filling points.
        """
        device = self.settings.device
        if device != "cpu":
            try:
                return self._ask_model(task, self.settings, turns)
            except Exception as error:
                if is_interruption(error):
                    raise
                self._count("device_fallbacks", error, f"fails on {device!r}", "the CPU")
        try:
            return self._ask_model(task, replace(self.settings, device="cpu"), turns)
        except Exception as error:
            if is_interruption(error):
                raise
            self._count("fallbacks", error, "failed", "space-filling points")
            return self._startup_suggestions(task, "fallback")

    def _count(self, counter: str, error: Exception, what: str, instead: str) -> None:
        """Count a failure of the surrogate, and say the first one."""
        if self.stats[counter] == 0:
            self._logger.warning(
                "The surrogate %s (%s: %s); using %s instead. Further failures are only counted.",
                what,
                type(error).__name__,
                error,
                instead,
            )
        self.stats[counter] += 1

    def model_type(self) -> type[RankingModel]:
        """Return what scores candidates; an ablation may choose another one."""
        from dre_plugins.recommend.model import RankingModel

        return RankingModel

    def _ask_model(
        self, task: _Task, settings: RecommenderSettings, turns: list[Proposer]
    ) -> list[Suggestion]:
        if "torch" not in sys.modules:
            self._logger.info("Importing torch for the first model, which takes some seconds.")
        # torch: only when it is needed
        from dre_plugins.engine.runtime import isolated

        # Ranks and acquisitions too: on tensors this small, several threads that wait for each
        # other cost 10 ms per operation, and the user's default device may be any.
        with isolated("cpu", self.settings.n_threads):
            models = self._models(task, settings, turns)
            seen = self._seen(task)
            pending = task.units[[t.state is TrialState.RUNNING for t in task.history]]
            taken = task.units[:0]
            suggestions: list[Suggestion] = []
            for index, model in enumerate(models, task.index):
                if len(pending):
                    for each in dict.fromkeys(one for one in models if one is not None):
                        each.believe(pending)
                branch = self._branch(task, suggestions, index)
                suggestion = self._next(task, model, seen, index, taken, branch)
                suggestions.append(suggestion)
                chosen = self.space.canonical(suggestion.units[None])
                if task.shares_fit:
                    pending, taken = pending[:0], np.concatenate([taken, chosen])
                else:
                    pending = chosen
                if not self.settings.allow_duplicates:
                    seen.include(chosen)
            return suggestions

    def _next(
        self,
        task: _Task,
        model: Model | None,
        seen: Seen,
        index: int,
        taken: Units,
        branch: Units | None,
    ) -> Suggestion:
        """Return the suggestion of a model, or a space-filling one where it needs that."""
        if model is None:
            return self._startup_suggestion(task, seen, index, "random")
        if model.needs_contrast and not len(taken):  # which the next fit is to learn from
            suggestion = self._startup_suggestion(task, seen, index, "contrast")
        else:
            choice = model.choose(seen, task.fixed, index, taken=taken, branch=branch)
            if branch is not None and not choice.is_new:  # all of the branch was tried
                choice = model.choose(seen, task.fixed, index)
            suggestion = self._chosen(model, choice)
        return replace(suggestion, prior_weight=model.prior_weight)

    def _branch(self, task: _Task, suggestions: Sequence[Suggestion], index: int) -> Units | None:
        """Return the branch that a suggestion must look into, if any, see `branch_to_try`.

        Where values or candidates are given, there is no choice of branches; a prior of past
        tasks knows which of them are worth a trial (lab/2026-11-23-branches.md); and suggestions
        that share a fit are chosen from one pool.
        """
        is_given = task.candidates is not None or not np.isnan(task.fixed).all()
        if is_given or self._priors or task.shares_fit:
            return None
        pending = [Trial(each.configuration, TrialState.RUNNING) for each in suggestions]
        coordinates = [self.space.canonical(each.units[None]) for each in suggestions]
        units = np.concatenate([task.units, *coordinates])
        return branch_to_try(self.space, (*task.history, *pending), units, index)

    def _models(
        self, task: _Task, settings: RecommenderSettings, turns: list[Proposer]
    ) -> list[Model | None]:
        """Return the model that makes each suggestion of a call, None for a start-up point."""
        models: dict[str, Model | None] = {"random": None}
        if "universal-prior" in turns:
            models["universal-prior"] = self._universal_model(self._universal, task, settings)
        if "model" in turns:
            models["model"] = self._model(task, settings)
        return [models[turn] for turn in turns]

    def _model(self, task: _Task, settings: RecommenderSettings) -> RankingModel:
        return self.model_type()(
            self.space,
            settings,
            task.history,
            task.units,
            priors=self._priors,
            weights=task.weights,
            candidates=task.candidates,
            reference_seed=self.seed,
            rng=np.random.default_rng([self.seed, task.index]),
        )

    def _universal_model(
        self, prior: Universal, task: _Task, settings: RecommenderSettings
    ) -> UniversalModel:
        from dre_plugins.recommend.universal_model import UniversalModel

        return UniversalModel(
            prior,
            self.space,
            settings,
            task.history,
            task.units,
            priors=self._priors,
            candidates=task.candidates,
            reference_seed=self.seed,
            rng=np.random.default_rng([self.seed, task.index]),
        )

    def _chosen(self, model: Model, choice: Choice) -> Suggestion:
        return Suggestion(
            self.space.to_configuration(choice.units),
            choice.units,
            choice.source if choice.is_new else "exhausted",
            choice.predicted_rank,
            choice.spread,
            model.n_reference,
        )

    def _startup_suggestions(self, task: _Task, source: str) -> list[Suggestion]:
        """Return points of the study's Sobol sequence, or others where those are taken."""
        seen = self._seen(task)
        suggestions = []
        for number in range(task.index, task.index + task.count):
            suggestions.append(self._startup_suggestion(task, seen, number, source))
            if not self.settings.allow_duplicates:
                seen.include(self.space.canonical(suggestions[-1].units[None]))
        return suggestions

    def _startup_suggestion(self, task: _Task, seen: Seen, number: int, source: str) -> Suggestion:
        filling = SpaceFilling(self.space, self.seed, task.fixed, task.candidates)
        units, is_new = filling.point(number, seen)
        configuration = self.space.to_configuration(units)
        return Suggestion(configuration, units, source if is_new else "exhausted")

    def _seen(self, task: _Task) -> Seen:
        is_empty = self.settings.allow_duplicates
        return Seen() if is_empty else Seen.of(self.space, task.units, task.is_whole)
