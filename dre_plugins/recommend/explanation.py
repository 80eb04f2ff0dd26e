"""A suggestion and its explanation."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dre_plugins.space.base import Units

# What each source of a suggestion means; the last three are of adapters.
SOURCES: Mapping[str, str] = {
    "random": "a space-filling start-up point",
    "prior": "the prior's choice",
    "past-studies": "the past studies' choice",
    "model": "the ensemble's choice",
    "universal-prior": "the universal prior's choice",
    "contrast": "a space-filling point that tests the trained prior",
    "exploration": "the ensemble's choice far from all trials, as nothing improves",
    "fallback": "a space-filling point, as the surrogate failed",
    "exhausted": "a repetition, as every configuration was tried",
    "independent": "drawn parameter by parameter, as none was known yet",
    "enqueued": "enqueued by the user",
    "unknown": "not suggested by this sampler",
}

# What is logged when the first suggestion comes from a source.
ANNOUNCEMENTS = {
    "prior": "The prior suggests trial {}.",
    "past-studies": "Past studies suggest trial {}.",
    "model": "The ranking ensemble suggests from trial {} on.",
    "universal-prior": "The universal prior suggests from trial {} on.",
    "exhausted": "Trial {} repeats a configuration: all of them were tried.",
}
# Largest number of names in a text; of more, the rest is counted.
MAX_NAMED = 3
# Words for the uncertainty of a rank, by the largest standard error as a share of all ranks.
SURENESS = ((0.02, "quite sure"), (0.1, "unsure"), (math.inf, "very unsure"))


@dataclass(frozen=True, slots=True)
class Explanation:
    """Say where a configuration came from and what was expected of it.

    Args:
        source: Who proposed it, such as "model"; `SOURCES` of this module has all, with meanings.
        predicted_rank: Mean rank against the reference points, 1 = best; None unless a model
            chose.
        spread: Standard error of that rank; None unless a model chose.
        n_reference: Number of reference points; None unless a model chose.
        prior_weight: Share of the ensemble's members that came from the prior, from 0 to 1; None
            without an ensemble or a prior.
        past_studies: Names of the past studies that it was learnt from: the first three, with
            dates if they are of a memory; or "the portfolio of" a recognised learner; None without
            any.
        expected_cost: Expected cost of the trial, in the unit of the observed costs; None if
            unknown.
    """

    source: str
    predicted_rank: float | None = None
    spread: float | None = None
    n_reference: int | None = None
    prior_weight: float | None = None
    past_studies: str | None = None
    expected_cost: float | None = None

    def __str__(self) -> str:
        parts = [f"{self.source}: {SOURCES.get(self.source, 'no known source')}"]
        if self.predicted_rank is not None and self.n_reference:
            parts.append(_expectation(self.predicted_rank, self.spread, self.n_reference))
        if self.prior_weight is not None:
            parts.append(f"weight of the prior {self.prior_weight:.0%}")
        if self.past_studies is not None:
            parts.append(f"learnt from {self.past_studies}")
        if self.expected_cost is not None:
            parts.append(f"expected cost {self.expected_cost:.3g}")
        return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Hold a suggested configuration and where it came from."""

    configuration: dict[str, Any]  # of active parameters and constants
    units: Units  # coordinates `[P]`, also of inactive parameters, or those of the given candidate
    explanation: Explanation  # prints its source and prediction in words

    @property
    def source(self) -> str:
        """Return one of `SOURCES`, which has the meanings."""
        return self.explanation.source


def of_portfolio(learner: str) -> Explanation:
    """Return the explanation of a configuration from the portfolio of a recognised learner."""
    return Explanation("prior", past_studies=f"the portfolio of {learner}")


def abbreviated(names: Sequence[str]) -> str:
    """Return the first three of some names in words, and how many more there are."""
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


def _expectation(rank: float, spread: float | None, n_reference: int) -> str:
    """Return in words what rank is expected among reference points, and how sure that is."""
    share = min(max(rank / n_reference, 0.0), 1.0)
    percent = math.ceil(100.0 * share) or 1
    words = f"expected among the best {percent} % of random configurations"
    if rank < 1.0:
        words = f"expected to be better than {n_reference} random configurations"
    if spread is None:
        return words
    return f"{words}, {next(word for limit, word in SURENESS if spread / n_reference <= limit)}"
