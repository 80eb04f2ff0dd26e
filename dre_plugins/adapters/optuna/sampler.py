"""Deep Ranking Ensembles as an Optuna sampler.

`DRESampler` translates: distributions → domains, Optuna's trials → the recommender's trials,
a suggestion → parameter values. It decides nothing about the search; `dre_plugins.recommend` does.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState as OptunaState

from dre_plugins.adapters.common.options import DURATION, checked_cost_name, seed_from
from dre_plugins.adapters.optuna import attributes, claims, conversion
from dre_plugins.adapters.optuna.history import History, cost_of
from dre_plugins.adapters.optuna.prior import PastStudies, PriorSource
from dre_plugins.adapters.optuna.rules import StudyRules
from dre_plugins.adapters.optuna.state import ThisProcess
from dre_plugins.adapters.optuna.suggestions import Suggestions
from dre_plugins.checks import require
from dre_plugins.recommend.define_by_run import independent_unit
from dre_plugins.recommend.explanation import Explanation
from dre_plugins.recommend.prior import AUTO, GivenPrior
from dre_plugins.recommend.schedule import N_STARTUP_TRIALS
from dre_plugins.recommend.settings import Settings, checked_settings
from dre_plugins.recommend.trials import Trial
from dre_plugins.space.rules import Rule, RuleError, Valid
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.study.arguments import GivenMemory


class DRESampler(BaseSampler):
    """Sampler using Deep Ranking Ensembles in turns with a universal prior.

    Trials count from 0. By default, trials 0 to 2 are points of a scrambled Sobol sequence; in
    ranges around 0, such as -5 to 5, and in one that most numeric parameters share, they are
    nearer to the middle. If the parameters are those of a common learner, these trials come from
    its portfolio instead: configurations that complement each other over past data sets. Trials 3
    to 19 are proposed by a *universal prior*: a network, meta-trained on synthetic functions, that
    reads the trials and outputs a mixture of Gaussian processes. From trial 20 on it alternates
    with a *deep ranking ensemble* (Khazi, Pineda Arango and Grabocka, ICLR 2023): ten networks
    that are trained to rank the trials. The universal prior maximises the expected improvement of
    the value, the ensemble that of the logarithm of the rank.

    Use it where a trial takes much longer than a second, for tens to a few hundred trials, with
    numeric, categorical and conditional parameters, and where trials may be pruned, fail or
    violate constraints. For thousands of cheap trials, TPESampler and RandomSampler are faster.

    - All parameters are modelled together. The search space is the union of what the trials of
      the study asked for; conditions between parameters are learnt, and ranges may change.
    - The scale of the objective does no harm: the ensemble reads only the order of its values, and
      the universal prior reads the values in any unit.
    - Running trials of other threads, processes and machines are taken into account, and no
      configuration is suggested twice (see `allow_duplicates`).
    - A suggestion depends only on the study's trials, `seed` and the trial's number. A resumed
      study gets the same suggestions as one without interruption, and workers may share a seed.
    - The probability that a trial fails is modelled. Pruned and running trials are compared with
      others at the steps that they reported. Steps in any order, such as the problem instances of
      `WilcoxonPruner`, count once a trial has ended.
    - Constraints (`Trial.set_constraint`, or `constraints_func`) are modelled; the expected
      improvement is multiplied by the probability that all of them are met.
    - With several objectives, the universal prior proposes what is expected to gain most
      hypervolume, and the ensemble ranks by random weights of the objectives, new for each trial.
    - Choices that are numbers in ascending order, such as `[16, 32, 64]`, are treated as ordered.
    - If a model fails, a Sobol point is suggested, with one warning (`stats["fallbacks"]`).

    Example:
        ```python
        import optuna
        from dre_plugins.adapters.optuna import DRESampler

        def objective(trial):
            x = trial.suggest_float("x", -10, 10)
            return (x - 2) ** 2

        study = optuna.create_study(sampler=DRESampler(seed=1))
        study.optimize(objective, n_trials=30)
        ```

    Args:
        seed: Non-negative seed. Workers of one study may share a seed, as suggestions differ by
            trial number. None draws one from the operating system when the sampler is made.
        prior: What is known before the first trial. "auto" recognises common learners by the names
            and ranges of their parameters and takes the first three trials from the
            portfolio of the learner; all else is as with "universal", the universal prior and an
            ensemble with random initial weights. None is this ensemble alone. A trained prior is
            given by its name (`dre priors list`), as a path, or as a `dre_plugins.Prior`: it
            proposes the first trial, even if the search spaces differ, the ensemble starts from
            its weights, and the universal prior takes turns once ten trials have ended. The path
            of a file that `dre-bench train-universal` wrote replaces the universal prior. A list
            has a trained prior, or None, for each objective. `dre_plugins.PastTasks` hold past
            studies, like `past_studies`, and may map names of parameters.
        past_studies: Past studies of one objective, from which the first 20 trials learn: studies
            (an `AskTell`, too), a storage or its URL, several of these, or a
            `dre_plugins.MetaDataset`, of which the last 100 are read. Search spaces, metrics and
            directions may differ. A study with the name of the present one is left out. "storage"
            finds them as a memory does: up to 30 in the storage of the present study that have
            half of its parameters, as they were when it began.
        n_startup_trials: Number of trials that must have ended, enqueued and added ones included,
            before a model proposes; until then, Sobol points. None means 3 for the universal prior
            and 10 for the ensemble, or 0 with a trained prior.
        independent_sampler: Optuna sampler for parameters that are in no earlier trial, past study
            or trained prior, such as all parameters of a first trial. None: the Sobol sequence.
        warn_independent_sampling: Whether to warn, once for each parameter, if one is sampled
            independently after the start-up trials.
        allow_duplicates: Whether a configuration may be suggested again, for noisy objectives.
            Otherwise configurations repeat only when all of a finite space were tried.
        failed: "model" multiplies expected improvements by the predicted probability of success,
            "worst" ranks failed trials last, "ignore" leaves them out. NaN is a failure, as is
            pruning without a report or after one of NaN.
        constraints_func: Function of an ended trial that returns how far each constraint is
            violated, at most 0 where it is met, like `Trial.set_constraint` of Optuna 5. If it
            raises, the constraints of that trial are unknown (`stats["constraint_errors"]`).
        cost: Cost of a trial, a number above 0: "duration", in seconds, or the name of a user
            attribute. Once three complete trials have one, expected gains are weighed against it.
        valid: Rule that configurations must satisfy: a function of a dictionary of the trial's
            parameters, such as `lambda c: c["low"] <= c["high"]`. It must be quick and always
            answer the same; where a parameter that it reads is absent, it counts as met. Trials
            may break it by values that were enqueued or that another sampler fixes, and by new
            parameters, the last of which cannot make up for the others; `stats["invalid"]` counts.
        settings: Expert settings, see `dre_plugins.Settings`: acquisition, preset, device,
            threads, how many trials are fitted, whether numeric choices are ordered.
        memory: Folder in which studies of all frameworks are recorded, and from which later ones
            with some of the same parameters learn: True (that of DRE_MEMORY, or one in the user's
            data folder), a path, a `dre_plugins.Memory`, False (none), or None (that of the
            environment variable DRE_MEMORY, if it is set). With `past_studies`, or a prior other
            than "auto" and "universal", the study is recorded but does not learn from the folder.

    Attributes:
        stats: Counters, with which a copy goes on: "suggestions", and these by `source` of
            `explain`; "independent" parameters, "conflicts" with other trials, "invalid"
            configurations, "fallbacks", "device_fallbacks" to the CPU, "skipped_turns" of the
            universal prior, "constraint_errors", and "unwritten" attributes, which the storage
            refused; "past_contradicted" suggestions, made without past studies because trials
            contradict them; "thin_rule", 1 if few configurations satisfy `valid`. With a memory:
            "past_studies", "memory_errors".

    Note:
        `explain` reads the user attribute "dre:explanation" of a trial. A prior that shares no
        parameter with the study is not used, with one warning.

    Raises:
        ValueError: If an argument is invalid, or there is nothing to learn from in `past_studies`.
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        prior: GivenPrior = AUTO,
        past_studies: PastStudies | None = None,
        n_startup_trials: int | None = None,
        independent_sampler: BaseSampler | None = None,
        warn_independent_sampling: bool = True,
        allow_duplicates: bool = False,
        failed: str = "model",
        constraints_func: attributes.ConstraintsFunc | None = None,
        cost: str | None = None,
        valid: Valid | None = None,
        settings: Settings | None = None,
        memory: GivenMemory = None,
    ) -> None:
        self._seed = seed_from(seed)
        self._settings = checked_settings(settings).for_recommender(
            n_startup_trials=n_startup_trials, allow_duplicates=allow_duplicates, failed=failed
        )
        is_sampler = independent_sampler is None or isinstance(independent_sampler, BaseSampler)
        require(is_sampler, "independent_sampler", independent_sampler, "a sampler, or None")
        self._independent_sampler = independent_sampler
        is_flag = isinstance(warn_independent_sampling, bool)
        require(is_flag, "warn_independent_sampling", warn_independent_sampling, "True or False")
        n_startup = N_STARTUP_TRIALS if n_startup_trials is None else n_startup_trials
        # No model can know the parameters of the first trial.
        self._warns_from = max(n_startup, 1) if warn_independent_sampling else float("inf")
        self.stats: Counter[str] = Counter()
        self._process = process = ThisProcess()
        self._past = PriorSource(
            prior, past_studies, memory, self._settings, self.stats, process.began_at
        )
        self._reporter = reporter = attributes.TrialReporter(self.stats)
        self._constraints = attributes.StatedConstraints(constraints_func, reporter)
        self._rules = StudyRules(valid, self._seed, process, reporter)
        self._cost = checked_cost_name(cost, "a user attribute")
        self._history = History(self._cost)
        self._suggestions = Suggestions(
            settings=self._settings,
            past=self._past,
            process=process,
            rules=self._rules,
            constraints=self._constraints,
            history=self._history,
            reporter=reporter,
        )

    def reseed_rng(self) -> None:
        """Reseed the independent sampler; the sampler itself has no random state but its seed."""
        if self._independent_sampler is not None:
            self._independent_sampler.reseed_rng()

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Prepare for a trial that begins, and mark it if it is enqueued."""
        self._process.begin(study, trial)
        if attributes.ENQUEUED_KEY in trial.system_attrs:
            self._reporter.write(study, trial, Explanation("enqueued"))
        self._rules.begin(study, trial)
        if self._independent_sampler is not None:
            self._independent_sampler.before_trial(study, trial)

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: OptunaState, values: Sequence[float] | None
    ) -> None:
        """Evaluate the constraints, record the trial and tell the independent sampler."""
        has_succeeded = state in attributes.SUCCEEDED
        constrained = self._constraints.evaluate(study, trial) if has_succeeded else trial
        is_attribute = self._cost not in (None, DURATION) and state is OptunaState.COMPLETE
        if is_attribute and cost_of(trial, self._cost) is None:
            self._reporter.warn_of_cost(study, trial, self._cost)
        self._rules.end(study, trial)
        self._past.end(study, constrained, state, values)
        self._process.end(study, trial)
        if self._independent_sampler is not None:
            self._independent_sampler.after_trial(study, trial, state, values)

    def explain(self, study: Study, trial: FrozenTrial | int) -> Explanation:
        """Say where the parameters of a trial came from and what was expected of them.

        It reads only the trial, so it works on a loaded study and in any process.

        Args:
            study: The study.
            trial: The trial, or its number.

        Raises:
            ValueError: If `study` is no study of Optuna, or has no trial of that number.
        """
        if isinstance(trial, FrozenTrial):
            return attributes.explanation_of(trial)
        require(isinstance(study, Study), "study", study, "a study of Optuna")
        trials = {other.number: other for other in study.get_trials(deepcopy=False)}
        remedy = f"a FrozenTrial or the number of one of the study's {len(trials)} trials"
        require(trial in [*trials], "trial", trial, remedy)
        return attributes.explanation_of(trials[trial])

    def rule_on(self, space: SearchSpace) -> Rule:
        """Return which configurations of a search space may be tried, by the argument `valid`."""
        return self._rules.new(space)

    def with_constraints(
        self, study: Study, trials: Sequence[FrozenTrial], history: Sequence[Trial]
    ) -> list[Trial]:
        """Return a history of trials with what this sampler alone knows of their constraints."""
        return self._constraints.with_constraints(study, trials, history)

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Announce a choice, and return every parameter that a trial of the study asked for."""
        self._reporter.warn_if(claims.announce(study, trial), study, trial)
        union = conversion.union_of_distributions(self._process.read(study, trial))
        return self._process.as_asked(study, union)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Suggest values of all parameters in the search space, also of inactive ones."""
        running = self._process.running(study, trial)
        running.is_relative = True
        if not search_space:
            claims.claim(study, trial, {})  # nothing yet: no other worker has to wait
            self._reporter.explain(study, trial, Explanation("independent"))
            return {}
        trials = self._process.trials(study, trial)
        _, fixed = conversion.fixed_by_sampler(study, trial, search_space, trials)
        names = {*search_space, *fixed}
        for _ in range(claims.MAX_MOVES):
            try:
                space, suggestion = self._suggestions.suggest(
                    study, trial, search_space, trials, fixed
                )
            except RuleError:
                # It ends this trial. The next one asks the script, which may have other ranges.
                if self._process.forget_asked(study):
                    raise
                return self.sample_relative(study, trial, {})
            chosen = suggestion.configuration.items()
            numbers = fixed | {
                name: conversion.internal_number(search_space[name], value)
                for name, value in chosen
            }
            self._reporter.warn_if(claims.claim(study, trial, numbers), study, trial)
            may_repeat = self._settings.allow_duplicates or suggestion.source == "exhausted"
            if may_repeat or not self._process.may_conflict(study, space, trial, trials):
                break
            repeats = claims.repeats_of(numbers, space, trials, names, self._history.numbers)
            rivals = claims.conflicting_trials(study, trial, repeats)
            if rivals is None:
                break
            self.stats["conflicts"] += 1
            trials = rivals
        self._reporter.explain(study, trial, suggestion.explanation)
        values = space.to_configuration(suggestion.units, include_inactive=True)
        running.values, running.source = values, suggestion.source
        return self._process.asked_of(study, search_space, values)

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Sample a parameter that is new to the study, or whose range has moved."""
        self._process.remember_asked(study, param_name, param_distribution)
        ordered = self._settings.order_numeric_choices
        domain = conversion.domain_of(param_name, param_distribution, ordered=ordered)
        running = self._process.running(study, trial)
        chosen = running.values
        value = conversion.choice_in(param_distribution, chosen.get(param_name))
        if param_name in chosen and domain.contains(value):
            return value  # as `sample_relative` does where this process knows the parameter
        configuration = self._suggestions.completed(study, trial, param_name, param_distribution)
        if param_name in configuration:
            unit = domain.to_unit(configuration[param_name])
        else:
            if trial.number >= self._warns_from:
                self._reporter.warn_of_independent(study, trial.number, param_name)
            if param_name in chosen and running.source:
                # What was expected of the model's value says nothing of this one.
                self._reporter.explain(study, trial, Explanation(running.source))
            if self._independent_sampler is not None:
                sampler = self._independent_sampler
                return self._rules.drawn(sampler, study, trial, param_name, param_distribution)
            self.stats["independent"] += 1
            unit = independent_unit(
                trial.number, len(trial.params), domain, self._seed, is_known=param_name in chosen
            )
        values = self._rules.values(study, trial, param_name, domain, unit)
        if domain.n_values is None or self._settings.allow_duplicates:
            return next(values)
        numbers = conversion.internal_numbers(trial)

        def repeats(other: FrozenTrial) -> bool:
            return self._history.numbers(other) == numbers

        for n_conflicts, value in enumerate(values):
            if n_conflicts == claims.MAX_MOVES:
                break  # the last one is taken in any case
            numbers[param_name] = conversion.internal_number(param_distribution, value)
            self._reporter.warn_if(claims.claim(study, trial, numbers), study, trial)
            if claims.conflicting_trials(study, trial, repeats, waits=False) is None:
                break
            self.stats["conflicts"] += 1
        return value
