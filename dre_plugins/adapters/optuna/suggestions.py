"""What the models suggest for a trial of an Optuna study: for all its parameters, or for one.

A parameter that is not enqueued gets its value in one of four ways:

from                  when
--------------------  ------------------------------------------------------------------------
`suggest`             Earlier trials have had it, and the value is in the range asked for.
`completed`, model    The value is not in that range: the model chooses again, from the trials
                      that asked for the same range.
`completed`, prior    No model has chosen a value, but a prior knows the parameter.
`sample_independent`  Neither: the sampler draws it, or the independent sampler of the user.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial

from dre_plugins.adapters.optuna import conversion
from dre_plugins.adapters.optuna.attributes import StatedConstraints, TrialReporter, logger
from dre_plugins.adapters.optuna.history import History
from dre_plugins.adapters.optuna.prior import PriorSource, StudyPrior
from dre_plugins.adapters.optuna.rules import StudyRules
from dre_plugins.adapters.optuna.state import ThisProcess
from dre_plugins.recommend.explanation import Suggestion
from dre_plugins.recommend.prior import UNIVERSAL, RecognisedPrior
from dre_plugins.recommend.recommender import Recommender
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.space import SearchSpace
from dre_plugins.space.rules import RuleError
from dre_plugins.study.configurations import within


@dataclass(eq=False)
class Suggestions:
    """Ask a recommender, with the priors, rules, constraints and history of a `DRESampler`."""

    settings: RecommenderSettings
    past: PriorSource
    process: ThisProcess
    rules: StudyRules
    constraints: StatedConstraints
    history: History
    reporter: TrialReporter

    def suggest(
        self,
        study: Study,
        trial: FrozenTrial,
        search_space: Mapping[str, BaseDistribution],
        trials: Sequence[FrozenTrial],
        fixed_elsewhere: Mapping[str, float],
        given: Mapping[str, Any] | None = None,
    ) -> tuple[SearchSpace, Suggestion]:
        """Return the suggestion for a trial, and the space that it lies in.

        It learns from the `trials` that have begun, except this one. Another sampler fixes the
        values whose numbers are `fixed_elsewhere`. The suggestion keeps `given` values; None:
        those that the user gave to the trial.
        """
        begun = [t for t in trials if t.number != trial.number and t.state in conversion.STATES]
        others, history, problem = self.history.readable(begun, search_space, study.directions)
        self.reporter.log(study, "<unreadable>", problem)
        history = self.constraints.with_constraints(study, others, history)
        ordered = self.settings.order_numeric_choices
        space, whole = conversion.learnt_space(search_space, others, history, ordered)
        space, counts = conversion.spanning(space, others, history)
        recommender = self._recommender(study, trial, space, self.reporter.stats, others)
        text = self._prior_of(study, trial, space).summary(space, recommender)
        # Again only where the study shows new parameters.
        self.reporter.log(study, text, text, logging.INFO)
        rows = [
            row for row, converted in enumerate(history) if converted.configuration and counts[row]
        ]
        fixed = within(conversion.given_to(trial) if given is None else given, space.domains)
        tried = self.history.agree(others, fixed_elsewhere)[rows] if fixed_elsewhere else None
        (suggestion,) = recommender.suggest(
            [history[row] for row in rows],
            index=trial.number,
            fixed=fixed,
            is_whole=whole[rows],
            is_evaluated=tried,
        )
        return space, suggestion

    def completed(
        self, study: Study, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> Mapping[str, Any]:
        """Return values that include one for a parameter, {} if neither model nor prior knows it.

        If the model has chosen a value outside the range that the trial asks for, it chooses again
        from the trials that asked for the same range (lab/2026-11-27-ranges-of-branches.md).
        """
        in_range = self._in_range(study, trial, name, distribution)
        return in_range if name in in_range else self._of_prior(study, trial, name, distribution)

    def _in_range(
        self, study: Study, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> Mapping[str, Any]:
        """Return what the model chooses given trials of the same range, {} if they are too few.

        It replaces what was chosen for the trial, but keeps other values where these trials allow.
        Nothing was chosen yet if another sampler has this one as its independent sampler.
        """
        running = self.process.running(study, trial)
        given = {**running.values, **conversion.given_to(trial)}
        is_given = name in given
        if running.is_relative and not is_given:
            return {}
        trials = [
            other
            for other in self.process.trials(study, trial)
            if other.distributions.get(name) == distribution
        ]
        if not (is_given or trials):
            return {}
        given.pop(name, None)
        search_space = {**conversion.union_of_distributions(trials), name: distribution}
        with suppress(RuleError):  # no value of this range satisfies the rule
            _, suggestion = self.suggest(study, trial, search_space, trials, {}, given)
            # It completes a suggestion that was counted.
            self.reporter.stats.subtract([suggestion.source, "suggestions"])
            if suggestion.source not in ("random", "fallback"):
                running.values = {**running.values, **suggestion.configuration}
                return running.values
        return {}

    def _of_prior(
        self, study: Study, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> Mapping[str, Any]:
        """Return the prior's values, given the trial's; {} if it does not know the parameter."""
        ordered = self.settings.order_numeric_choices
        domain = conversion.domain_of(name, distribution, ordered=ordered)
        asked = conversion.domains_in(trial.distributions, ordered=ordered)
        domains = {**asked, name: domain}
        running = self.process.running(study, trial)
        prior = self._prior_of(study, trial, name)
        if not (prior.knows(name, domains) or running.source):
            # A first trial shows its parameters one by one: this one may be in other past studies.
            prior = self.past.of(study, trial.number, name)
        if not prior.knows(name, domains):
            return {}
        running.study_prior = prior
        from_prior = running.prior_values(trial)
        if name in from_prior and domain.contains(from_prior[name]):
            return from_prior
        space = prior.completed(domains)
        # A trial counts as one suggestion, however many parameters it asks for one by one. If the
        # model's suggestion is completed here, its source stays "model".
        is_first = running.prior_suggestion is None and not (running.source and asked)
        stats = self.reporter.stats
        if is_first and running.source:  # the prior replaces the model's suggestion
            stats.subtract([running.source, "suggestions"])
        stats = stats if is_first else Counter(fallbacks=stats["fallbacks"])
        recommender = self._recommender(study, trial, space, stats)
        # Parameters of a new branch begin with the best member of a portfolio.
        is_new_branch = running.values and isinstance(prior.prior, RecognisedPrior)
        index = 0 if is_new_branch else trial.number
        (suggestion,) = recommender.suggest((), index=index, fixed=within(trial.params, asked))
        if is_first:
            self.reporter.explain(study, trial, suggestion.explanation)
        running.prior_suggestion = suggestion.configuration
        return suggestion.configuration

    def _prior_of(self, study: Study, trial: FrozenTrial, space: SearchSpace | str) -> StudyPrior:
        """Return priors and past studies for a trial, chosen once by the parameters of it."""
        running = self.process.running(study, trial)
        if running.study_prior is None:
            running.study_prior = self.past.of(study, trial.number, space)
        return running.study_prior

    def _recommender(
        self,
        study: Study,
        trial: FrozenTrial,
        space: SearchSpace,
        stats: Counter[str],
        others: Sequence[FrozenTrial] = (),
    ) -> Recommender:
        """Return a recommender with the priors and past studies that apply to a search space.

        A prior that does not apply is no error, as a define-by-run study may show shared
        parameters later. A ValueError says that the space cannot be searched at all.
        """
        new = partial(
            Recommender,
            space,
            self.settings,
            seed=self.rules.seed,
            stats=stats,
            n_objectives=len(study.directions),
            logger=logger,
            rule=self.rules.on(space, study, trial, others),
        )
        past = self._prior_of(study, trial, space)
        try:
            return new(prior=past.prior)
        except ValueError as error:
            if past.prior in (None, UNIVERSAL):
                raise
            recommender = new(prior=past.usable_on(space))
            text = f"The prior is not used as long as this holds: {error}"
            self.reporter.log(study, "<unused prior>", text)
            return recommender
