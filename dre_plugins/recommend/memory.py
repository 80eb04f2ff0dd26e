"""What `AskTell` finds by itself: past studies in a memory, and the prior of a learner."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from dre_plugins.recommend.explanation import Explanation, Suggestion
from dre_plugins.recommend.prior import (
    UNIVERSAL,
    FoundPrior,
    GivenPrior,
    LoadedPrior,
    PriorLike,
    gives_way,
)
from dre_plugins.recommend.recommender import Recommender
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space.search_space import SearchSpace

if TYPE_CHECKING:
    from dre_plugins.memory import Memory
    from dre_plugins.memory.study import StudyMemory

GivenMemory: TypeAlias = "bool | str | os.PathLike[str] | Memory | None"


def memory_of_study(
    given: GivenMemory,
    *,
    name: str,
    framework: str,
    directions: Sequence[str],
    stats: Counter[str],
    logger: logging.Logger,
) -> StudyMemory | None:
    """Return what a new study has of a memory, None if it is to have none.

    A ValueError says that `given` is no memory, see `Memory.of`.
    """
    if given is False or (given is None and not os.environ.get("DRE_MEMORY")):
        return None
    # The one arrow that points up: only a study that has a memory imports it.
    from dre_plugins.memory import Memory
    from dre_plugins.memory.recorded import Header
    from dre_plugins.memory.study import StudyMemory

    memory = Memory.of(given)
    if memory is None:
        return None
    header = Header(name=name, framework=framework, directions=tuple(directions))
    return StudyMemory(memory, header, stats=stats, logger=logger)


def remembered(
    memory: StudyMemory | None, prior: GivenPrior, space: SearchSpace
) -> PriorLike | None:
    """Return the prior of past studies from which a study starts, None if there is none.

    Another prior of the user's than "auto" or "universal" takes precedence.
    """
    return None if memory is None or not gives_way(prior) else memory.prior_for(space)


class Recommenders:
    """Ask for suggestions with past studies or without, and record where there is a memory.

    Args:
        new: Returns a recommender of the study that starts from `prior`.
        prior: What the study starts from.
        memory: What it has of a memory, if anything.
        remembered: The prior of past studies that the memory gave, if the study starts from it.
    """

    def __init__(
        self,
        new: Callable[..., Recommender],
        prior: LoadedPrior,
        memory: StudyMemory | None,
        remembered: PriorLike | None,
    ) -> None:
        self._new = new
        self._prior = prior
        self._memory = memory
        self._remembered = remembered
        self._recommender = new(prior=prior)
        self._recommender.check_rule()

    @property
    def about_priors(self) -> str:
        """Say in one line which parameters the trained priors know; empty without any."""
        return self._recommender.about_priors

    def check(self, configuration: Mapping[str, Any]) -> None:
        """Count a complete configuration that is tried although it breaks the rule."""
        if not self._recommender.rule.allows(configuration):
            self._recommender.count_invalid()

    def suggest(
        self, history: Sequence[Trial], count: int, *, index: int, fixed: Mapping[str, Any]
    ) -> list[Suggestion]:
        """Return suggestions; past studies that were found have some, see `transfer.found`."""
        n_turns = self._turns_of_prior(history, range(index, index + count))
        suggestions: list[Suggestion] = []
        if n_turns:
            suggestions = self._recommender.suggest(history, n_turns, index=index, fixed=fixed)
        if n_turns < count:
            pending = [Trial(before.configuration, TrialState.RUNNING) for before in suggestions]
            suggestions += self._new(prior=UNIVERSAL).suggest(
                [*history, *pending],
                count - n_turns,
                index=index + n_turns,
                fixed=fixed,
            )
        return self._begun(suggestions, history, fixed)

    def _begun(
        self, suggestions: Sequence[Suggestion], history: Sequence[Trial], fixed: Mapping[str, Any]
    ) -> list[Suggestion]:
        """Begin each branch of a conditional space with what the prior of its learner favours.

        Parameters that are in no trial yet get these values; the others keep theirs. A learner
        that the whole space tells has start-up trials instead.
        """
        space, settings = self._recommender.space, self._recommender.settings
        is_one_learner = bool(self.about_priors)
        if not isinstance(self._prior, FoundPrior) or is_one_learner or settings.n_startup_trials:
            return [*suggestions]
        children = {condition.child for condition in space.conditions}
        known = {*fixed, *chain.from_iterable(trial.configuration for trial in history)}
        begun = []
        for suggestion in suggestions:
            new = (children & {*suggestion.configuration}) - known
            known |= {*suggestion.configuration}
            values = self._prior.favourite({n: d for n, d in space.domains.items() if n in new})
            begun.append(self._with_values(suggestion, values))
        return begun

    def _with_values(self, suggestion: Suggestion, values: Mapping[str, Any]) -> Suggestion:
        """Return a suggestion with other values, as it is if these are not to be tried."""
        space, stats = self._recommender.space, self._recommender.stats
        wanted = {**suggestion.configuration, **values}
        (units,) = space.to_units([wanted])
        are_same = space.to_configuration(units).keys() == wanted.keys()
        if not (values and are_same and self._recommender.rule.allows(wanted)):
            return suggestion
        stats.subtract([suggestion.source])
        stats["prior"] += 1
        return Suggestion(wanted, units, Explanation("prior"))

    def _turns_of_prior(self, history: Sequence[Trial], numbers: range) -> int:
        if self._memory is not None and self._remembered is not None:
            return self._memory.turns(self._remembered, self._recommender.space, history, numbers)
        return len(numbers)

    def record(self, number: int, trial: Trial, *, is_stopped: bool, source: str) -> None:
        """Write a trial that has ended, and who suggested it, to the memory."""
        if self._memory is not None and trial.state is not TrialState.RUNNING:
            space = self._recommender.space
            self._memory.record(
                number, lambda: (trial, space), is_stopped=is_stopped, source=source
            )
