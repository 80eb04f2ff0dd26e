"""The argument `valid` in studies whose parameters appear one by one."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from dre_plugins.adapters.optuna.attributes import SUCCEEDED, TrialReporter, id_of, storage_of
from dre_plugins.adapters.optuna.claims import MAX_MOVES
from dre_plugins.adapters.optuna.conversion import fixed_by_sampler, given_to
from dre_plugins.adapters.optuna.state import ThisProcess
from dre_plugins.space import Constant, Domain, SearchSpace
from dre_plugins.space.rules import Rule, RuleError, Valid
from dre_plugins.study.configurations import within

# Largest number of values of a parameter to try until the rule holds with the other parameters.
# Units a golden section apart fill [0, 1] evenly, however many there are.
MAX_DRAWS = 64
GOLDEN_SECTION = 0.6180339887498949
# Trials without a parameter that the rule reads after which its name may be wrong.
N_ABSENT = 10


@dataclass(eq=False)
class StudyRules:
    """Apply the rule of a sampler to the parameters that a study has shown so far.

    A rule that reads a parameter which a trial lacks counts as met.
    """

    valid: Valid | None
    seed: int
    process: ThisProcess
    reporter: TrialReporter

    def __post_init__(self) -> None:
        self._unbound = self.new(SearchSpace({}))
        self._rules: dict[str, Rule] = {}  # by study, as one sampler may serve several
        # For each study, the trials that lacked a parameter of the rule, `N_ABSENT` at most.
        self._n_absent: Counter[str] = Counter()

    def begin(self, study: Study, trial: FrozenTrial) -> None:
        """Count a trial whose given values break the rule; it is run nevertheless.

        This must be done first, as Optuna does not call a sampler if all values are given. A
        RuleError says that the rule raises.
        """
        try:
            is_broken = _is_broken_by(trial, self._of(study))
        except RuleError:
            # Optuna would leave it running; the study of Hyperband lacks `Study.tell`.
            storage_of(study).set_trial_state_values(id_of(trial), TrialState.FAIL)
            self.process.end(study, trial)
            raise
        if is_broken:
            text = f"A configuration that you gave (trial {trial.number}) breaks the rule `valid`"
            self._count(study, trial, f"{text}; it is tried all the same.", "<given invalid>")

    def on(
        self, space: SearchSpace, study: Study, trial: FrozenTrial, others: Sequence[FrozenTrial]
    ) -> Rule:
        """Return the rule on a search space, or one that allows all if fixed values break it.

        It is cached as long as the space is the same. The space includes constants: parameters
        that all `others`, the trials so far, have asked for with the same single value or with
        one that another sampler fixes.
        """
        fixed: dict[str, Any] = {}
        if self.valid is not None:
            succeeded = [other for other in others if other.state in SUCCEEDED]
            fixed, _ = fixed_by_sampler(study, trial, space.domains, others)
            shared = {n: v for n, v in fixed.items() if all(n in t.params for t in succeeded)}
            values = {**_constants_of(succeeded), **shared}
            # What is searched is no constant, even if all that succeeded have one value of it.
            constants = {n: Constant(v) for n, v in values.items() if n not in space.domains}
            domains = {**space.domains, **constants}
            space = SearchSpace(domains, space.conditions, space.optional, space.spans)
        rule = self._of(study)  # another thread may replace it
        if rule.space != space:
            rule = self._rules[study.study_name] = self.new(space)
        can_hold = not fixed or rule.may_hold(np.full(space.n_parameters, np.nan))
        return Rule(space, None) if _is_broken_by(trial, rule) or not can_hold else rule

    def end(self, study: Study, trial: FrozenTrial) -> None:
        """Count a trial that breaks the rule without having been counted.

        Such a trial has values that the sampler was not asked for: of a parameter of one value, or
        of one that another sampler has fixed.
        """
        if self.process.running(study, trial).is_invalid or not trial.params:
            return
        with suppress(RuleError):  # the next suggestion raises it; here the result would be lost
            if self._of(study).allows(trial.params):
                self._look_for_names(study, trial)
                return
            why = "a value that the sampler was not asked for does not go with the others."
            self._count(study, trial, f"Trial {trial.number} breaks the rule `valid`: {why}")

    def _look_for_names(self, study: Study, trial: FrozenTrial) -> None:
        """Warn once if no trial has a parameter that the rule reads: its name may be misspelt."""
        key = study.study_name
        if self.valid is None or self._n_absent[key] >= N_ABSENT:
            return
        absent = self._of(study).absent_from(trial.params)
        # Once a trial has them all, the names are right.
        self._n_absent[key] += N_ABSENT if absent is None else 1
        if absent is not None and self._n_absent[key] == N_ABSENT:
            text = f"The rule `valid` reads {absent!r}, which none of {N_ABSENT} trials has: it"
            self.reporter.log(study, "<absent>", f"{text} counts as met. Check the name.")

    def values(
        self, study: Study, trial: FrozenTrial, name: str, domain: Domain, unit: float
    ) -> Iterator[Any]:
        """Yield valid values of a parameter, beginning with the one at a unit."""
        n_values = domain.n_values or 1
        for shift in range(min(n_values, MAX_MOVES) + 1):
            first = (unit + shift / n_values) % 1.0 if shift else unit
            steps = GOLDEN_SECTION * np.arange(1, MAX_DRAWS)
            units = [first, *((first + steps) % 1.0).tolist()]
            yield self._first(study, trial, name, map(domain.from_unit, units))

    def drawn(
        self, sampler: BaseSampler, study: Study, trial: FrozenTrial, name: str, asked: Any
    ) -> Any:
        """Return the first of a sampler's draws of a parameter for which the rule holds."""
        draws = (sampler.sample_independent(study, trial, name, asked) for _ in range(MAX_DRAWS))
        return self._first(study, trial, name, draws)

    def _first(self, study: Study, trial: FrozenTrial, name: str, draws: Iterator[Any]) -> Any:
        """Return the first value that the rule allows beside the trial's others.

        The others are given, suggested or sampled. If the given ones break the rule already, any
        value will do, and the first one is returned.
        """
        first, rule = next(draws), self._of(study)
        if self.valid is None or _is_broken_by(trial, rule):
            return first
        chosen = {**rule.space.constants, **self.process.running(study, trial).values}
        others = {**chosen, **given_to(trial), **trial.params}
        for value in chain([first], draws):
            if rule.allows({**others, name: value}):
                return value
        why = f"no value of {name!r} was found that goes with the parameters before it, which were"
        text = f"Trial {trial.number} breaks the rule `valid`: {why} sampled one by one or given."
        self._count(study, trial, text)
        return first

    def _count(self, study: Study, trial: FrozenTrial, text: str, kind: str = "<invalid>") -> None:
        """Count a trial that breaks the rule; the text of the first of a kind is logged."""
        self.process.running(study, trial).is_invalid = True
        self.reporter.stats["invalid"] += 1
        self.reporter.log(study, kind, f"{text} Further ones are only counted.")

    def _of(self, study: Study) -> Rule:
        return self._rules.get(study.study_name, self._unbound)

    def new(self, space: SearchSpace) -> Rule:
        """Return the rule on a search space, of which a study may show more later."""
        return Rule(space, self.valid, seed=self.seed, is_learnt=True)


def _is_broken_by(trial: FrozenTrial, rule: Rule) -> bool:
    """Return whether given values break a rule, whatever values the others get."""
    values, space = given_to(trial), rule.space
    # Evaluated in any case: a rule that raises ends the study before the first trial.
    if rule.allows({**space.constants, **values}) or not values:
        return False
    if values.keys() >= {*space.names}:
        return True
    return not rule.may_hold(space.to_units([within(values, space.domains)])[0])


def _constants_of(trials: Sequence[FrozenTrial]) -> dict[str, Any]:
    """Return the parameters that all of some trials have asked for with the same single value."""
    single = [
        {name: t.params[name] for name, asked in t.distributions.items() if asked.single()}
        for t in trials
    ]
    first = single[0] if single else {}
    return {n: v for n, v in first.items() if all(n in t and t[n] == v for t in single)}
