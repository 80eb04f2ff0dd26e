"""How `AskTell` uses a prior that it has found itself: in a memory, or by the learner."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from dre_plugins.engine.settings import require
from dre_plugins.recommend.explanation import Explanation, Suggestion
from dre_plugins.recommend.prior import UNIVERSAL, LoadedPrior, PriorLike, RecognisedPrior
from dre_plugins.recommend.recommender import Recommender
from dre_plugins.recommend.trials import Trial, TrialState

if TYPE_CHECKING:
    from dre_plugins.memory import Memory
    from dre_plugins.memory.study import StudyMemory

GivenMemory: TypeAlias = "bool | str | os.PathLike[str] | Memory | None"


def is_wanted(given: GivenMemory) -> bool:
    """Say whether a study is to use a memory, given as an argument or by DRE_MEMORY."""
    return bool(os.environ.get("DRE_MEMORY")) if given is None else given is not False


def memory_of_study(
    given: GivenMemory,
    *,
    name: str,
    framework: str,
    directions: Sequence[str],
    stats: Counter[str],
    logger: logging.Logger,
) -> StudyMemory | None:
    """Return the access of a new study to a memory, None if there is no memory.

    A ValueError says that `given` is no memory, a name no text or `logger` no logger.
    """
    for argument, text in (("name", name), ("framework", framework)):
        require(isinstance(text, str), argument, text, "a text")
    is_logger = isinstance(logger, (logging.Logger, logging.LoggerAdapter))
    require(is_logger, "logger", logger, "a logging.Logger, or None")
    if not is_wanted(given):
        return None
    # Imported here, as a study without a memory does not need it.
    from dre_plugins.memory import Memory
    from dre_plugins.memory.recorded import Header
    from dre_plugins.memory.study import StudyMemory

    memory = Memory.of(given)
    if memory is None:
        return None
    header = Header(name=name, framework=framework, directions=tuple(directions))
    return StudyMemory(memory, header, stats=stats, logger=logger)


@dataclass(eq=False)
class RecordingRecommender:
    """Make suggestions with the prior of past studies or without, and record ended trials."""

    new: Callable[..., Recommender]  # returns a recommender of the study with a `prior`
    prior: LoadedPrior
    memory: StudyMemory | None
    remembered: PriorLike | None  # the prior from the memory, if the study uses it

    def __post_init__(self) -> None:
        self._recommender = self.new(prior=self.prior)
        self._recommender.check_rule()

    @property
    def prior_summary(self) -> str:
        """Say in one line which parameters the trained priors know; empty without any."""
        return self._recommender.prior_summary

    def check(self, configuration: Mapping[str, Any]) -> None:
        """Count a complete configuration that is tried although it breaks the rule."""
        if not self._recommender.rule.allows(configuration):
            self._recommender.count_invalid()

    def suggest(
        self, history: Sequence[Trial], count: int, *, index: int, fixed: Mapping[str, Any]
    ) -> list[Suggestion]:
        """Return suggestions, some of them with past studies, see `memory.study`."""
        n_turns, numbers = count, range(index, index + count)
        if self.memory is not None and self.remembered is not None:
            space = self._recommender.space
            n_turns = self.memory.turns(self.remembered, space, history, numbers)
        suggestions: list[Suggestion] = []
        if n_turns:
            suggestions = self._recommender.suggest(history, n_turns, index=index, fixed=fixed)
        if n_turns < count:
            pending = [Trial(before.configuration, TrialState.RUNNING) for before in suggestions]
            suggestions += self.new(prior=UNIVERSAL).suggest(
                [*history, *pending], count - n_turns, index=index + n_turns, fixed=fixed
            )
        if isinstance(self.prior, RecognisedPrior):
            return self._with_favourites(self.prior, suggestions, history, fixed)
        return suggestions

    def _with_favourites(
        self,
        prior: RecognisedPrior,
        suggestions: Sequence[Suggestion],
        history: Sequence[Trial],
        fixed: Mapping[str, Any],
    ) -> list[Suggestion]:
        """Begin each branch of a conditional space with the best values of its learner's prior.

        Parameters that are in no trial yet get these values; the others keep theirs. If the whole
        space is that of one learner, its portfolio is used in the start-up trials instead.
        """
        recommender = self._recommender
        if recommender.prior_summary or recommender.settings.n_startup_trials:
            return [*suggestions]
        domains = recommender.space.domains
        children = {condition.child for condition in recommender.space.conditions}
        tried = {*fixed, *chain.from_iterable(trial.configuration for trial in history)}
        begun = []
        for suggestion in suggestions:
            new = (children & {*suggestion.configuration}) - tried
            tried |= {*suggestion.configuration}
            values = prior.favourite({name: domains[name] for name in domains if name in new})
            begun.append(self._with_values(suggestion, values))
        return begun

    def _with_values(self, suggestion: Suggestion, values: Mapping[str, Any]) -> Suggestion:
        """Return a suggestion with other values, or unchanged if these may not be tried."""
        space, stats = self._recommender.space, self._recommender.stats
        configuration = {**suggestion.configuration, **values}
        (units,) = space.to_units([configuration])
        are_same = space.to_configuration(units).keys() == configuration.keys()
        if not (values and are_same and self._recommender.rule.allows(configuration)):
            return suggestion
        stats.subtract([suggestion.source])
        stats["prior"] += 1
        return Suggestion(configuration, units, Explanation("prior"))

    def record(self, number: int, trial: Trial, *, is_stopped: bool, source: str) -> None:
        """Write a trial that has ended, and who suggested it, to the memory."""
        if self.memory is not None and trial.state is not TrialState.RUNNING:
            space, plain = self._recommender.space, int(number)  # JSON has no NumPy integers
            self.memory.record(plain, lambda: (trial, space), is_stopped=is_stopped, source=source)
