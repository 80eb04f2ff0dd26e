"""How `AskTell` begins the branches of a conditional space, if it recognises their learners."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from dre_plugins.recommend.explanation import Suggestion, of_portfolio
from dre_plugins.recommend.prior import LoadedPrior, RecognisedPrior
from dre_plugins.recommend.recommender import Recommender
from dre_plugins.recommend.trials import Trial
from dre_plugins.space.search_space import SearchSpace


def with_favourites(
    suggestions: list[Suggestion],
    recommender: Recommender,
    prior: LoadedPrior,
    history: Sequence[Trial],
    fixed: Mapping[str, Any],
) -> list[Suggestion]:
    """Return suggestions that begin each branch with the best values of its learner's prior.

    Parameters that are in no trial yet get these values; the others keep theirs. If the prior
    recognises no learners, suggestions are unchanged. If the whole space is that of one learner,
    its portfolio is used in the start-up trials instead.
    """
    if not isinstance(prior, RecognisedPrior) or recommender.settings.n_startup_trials:
        return suggestions
    if recommender.prior_summary:  # the whole space is that of one learner
        return suggestions
    domains = recommender.space.domains
    children = {condition.child for condition in recommender.space.conditions}
    tried = {*fixed, *chain.from_iterable(trial.configuration for trial in history)}
    begun = []
    for suggestion in suggestions:
        new = (children & {*suggestion.configuration}) - tried
        tried |= {*suggestion.configuration}
        branch = SearchSpace({name: domains[name] for name in domains if name in new})
        portfolio = prior.portfolio_on(branch)
        if portfolio is not None and len(portfolio.units):
            values = branch.to_configuration(portfolio.units[0])
            suggestion = _with_values(suggestion, values, portfolio.learner, recommender)
        begun.append(suggestion)
    return begun


def _with_values(
    suggestion: Suggestion, values: Mapping[str, Any], learner: str, recommender: Recommender
) -> Suggestion:
    """Return a suggestion with a learner's values, or unchanged if these may not be tried."""
    space, stats = recommender.space, recommender.stats
    configuration = {**suggestion.configuration, **values}
    (units,) = space.to_units([configuration])
    are_same = space.to_configuration(units).keys() == configuration.keys()
    if not (values and are_same and recommender.rule.allows(configuration)):
        return suggestion
    stats.subtract([suggestion.source])
    stats["prior"] += 1
    return Suggestion(configuration, units, of_portfolio(learner))
