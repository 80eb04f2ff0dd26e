"""The arguments that the constructors of all frameworks share, checked in one place.

A new argument of all samplers is a field of `Options`.
"""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, fields
from typing import Any

from dre_plugins.engine.settings import require
from dre_plugins.recommend.directions import checked_cost
from dre_plugins.recommend.loading import prior_from
from dre_plugins.recommend.memory import GivenMemory
from dre_plugins.recommend.prior import (
    AUTO,
    GivenPrior,
    LoadedPrior,
    check_turns,
    yields_to_memory,
)
from dre_plugins.recommend.settings import RecommenderSettings, Settings, checked_settings
from dre_plugins.recommend.trials import number_of
from dre_plugins.space.base import is_integer
from dre_plugins.space.rules import Valid

# `cost="duration"`: what a trial costs is how long it takes.
DURATION = "duration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Hold the arguments of a sampler that all frameworks share.

    Args:
        prior: The argument `prior`, see `recommend.prior.prior_from`.
        n_startup_trials: Number of trials that must have ended before a model proposes, at least
            0; None takes the defaults of the models.
        allow_duplicates: Whether a configuration may be suggested again.
        failed: "worst" ranks failed trials last, "ignore" leaves them out.
        settings: Expert settings; None takes the defaults.
        memory: The argument `memory`, see `Memory.of`.
        valid: Rule that configurations must satisfy, see `AskTell`; None: no rule.

    Raises:
        TypeError: If `settings` is no `Settings`.
        ValueError: If an argument is invalid.
    """

    prior: GivenPrior = AUTO
    n_startup_trials: int | None = None
    allow_duplicates: bool = False
    failed: str = "worst"
    settings: Settings | None = None
    memory: GivenMemory = None
    valid: Valid | None = None

    def __post_init__(self) -> None:
        self.for_recommender()

    @property
    def order_numeric_choices(self) -> bool:
        """Whether choices that are numbers in ascending order are treated as ordered."""
        return checked_settings(self.settings).order_numeric_choices

    def for_recommender(self) -> RecommenderSettings:
        """Return the settings of a `Recommender`."""
        return checked_settings(self.settings).for_recommender(
            n_startup_trials=self.n_startup_trials,
            allow_duplicates=self.allow_duplicates,
            failed=self.failed,
        )

    def check_past(self, name: str, past: object) -> None:
        """Refuse past studies together with a trained prior.

        Raises:
            ValueError: If both are given.
        """
        if past is not None and not (self.prior is None or yields_to_memory(self.prior)):
            raise ValueError(
                f"prior and {name} cannot be combined: leave one of them out, or train a "
                "prior on all of it with Prior.train."
            )

    def load_prior(self) -> LoadedPrior:
        """Return the prior, read from its file if it is not loaded yet.

        Raises:
            ValueError: If there is no such prior, its file cannot be read, or it cannot be
                combined with the preset.
        """
        preset = checked_settings(self.settings).preset
        prior = prior_from(self.prior, preset)
        check_turns(prior, preset)
        return prior

    def for_study(self) -> dict[str, Any]:
        """Return these options as arguments of `AskTell`, without the prior."""
        options = {option.name: getattr(self, option.name) for option in fields(self)}
        return {name: value for name, value in options.items() if name != "prior"}


def seed_from(seed: int | None, *, name: str = "seed", n_bits: int = 63) -> int:
    """Return a seed as a plain integer, drawn from the operating system if there is none.

    Args:
        name: The framework's name for the argument.

    Raises:
        ValueError: If it is negative or no integer.
    """
    if seed is None:
        return secrets.randbits(n_bits)
    is_seed = is_integer(seed) and seed >= 0
    require(is_seed, name, seed, "a non-negative integer or None")
    return int(seed)


def checked_cost_name(cost: object, kind: str) -> str | None:
    """Return the argument `cost` of a constructor: "duration", the name of a number, or None.

    Args:
        cost: What was given.
        kind: Kind of the number in the framework, such as "a user attribute".

    Raises:
        ValueError: If it is something else.
    """
    is_name = cost is None or (isinstance(cost, str) and bool(cost))
    require(is_name, "cost", cost, f"'{DURATION}', the name of {kind}, or None")
    return cost if isinstance(cost, str) else None


def cost_from(value: Any) -> float | None:
    """Return a reported number as a cost; None where it is none, or not above 0."""
    number = number_of(value)
    return checked_cost(number if number > 0.0 else math.nan)
