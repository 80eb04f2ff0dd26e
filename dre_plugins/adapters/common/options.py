"""The arguments that the constructors of all frameworks share, checked in one place.

A new argument of all samplers is a field of `Options` and a line in `Options.new_study`.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from dre_plugins.engine.settings import require
from dre_plugins.recommend.ask_tell import AskTell
from dre_plugins.recommend.memory import GivenMemory
from dre_plugins.recommend.prior import UNIVERSAL, check_turns
from dre_plugins.recommend.settings import RecommenderSettings, Settings, checked_settings
from dre_plugins.space.base import is_integer
from dre_plugins.space.rules import Valid
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.knowledge import AUTO, GivenPrior, LoadedPrior, prior_from


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Hold what a user chooses about a search in any framework.

    Args:
        prior: What is known beforehand, as `prior_from` takes it.
        n_startup_trials: Trials that must have ended before the surrogate takes over, at least 0;
            None takes the defaults of the models.
        allow_duplicates: Whether a configuration may be suggested again.
        failed: "worst" ranks failed trials last, "ignore" leaves them out.
        settings: What most users leave as it is; None takes the defaults.
        memory: Where studies are recorded and found by later ones, as `Memory.of` takes it.
        valid: Says which configurations may be tried, see `AskTell`; None: all.

    Raises:
        TypeError: If `settings` is no `Settings`.
        ValueError: If an argument is invalid.
    """

    prior: GivenPrior = UNIVERSAL
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
        """Return these options as a `Recommender` takes them."""
        return checked_settings(self.settings).for_recommender(
            n_startup_trials=self.n_startup_trials,
            allow_duplicates=self.allow_duplicates,
            failed=self.failed,
        )

    def check_past(self, name: str, past: object) -> None:
        """Refuse past studies beside a prior that was made of others.

        Args:
            name: The framework's name for the argument.
            past: What the user gave for it.

        Raises:
            ValueError: If both are given.
        """
        if past is not None and self.prior not in (None, UNIVERSAL, AUTO):
            raise ValueError(
                f"prior and {name} cannot be combined: leave one of them out, or train a "
                "prior on all of it with Prior.train."
            )

    def load_prior(self) -> LoadedPrior | None:
        """Return the prior, read from its file if it is not loaded yet.

        Raises:
            ValueError: If there is no such prior, its file cannot be read, or it cannot be
                combined with the preset.
        """
        prior = prior_from(self.prior)
        check_turns(prior, checked_settings(self.settings).preset)
        return prior

    def new_study(
        self,
        space: SearchSpace,
        *,
        direction: str | Sequence[str],
        seed: int | None,
        prior: LoadedPrior | None,
        logger: logging.Logger,
        framework: str,
        name: str = "",
    ) -> AskTell:
        """Return a study with these options, for frameworks that keep no trials themselves.

        Args:
            space: What is searched.
            direction: "minimize" or "maximize", or a list of these for several objectives.
            seed: Seed of the study; None draws one.
            prior: The loaded prior, which takes the place of `Options.prior`.
            logger: Where messages go.
            framework: Name of the framework in the memory.
            name: Name of the study in the memory, such as its metric.
        """
        return AskTell(
            space,
            direction=direction,
            seed=seed,
            prior=prior,
            n_startup_trials=self.n_startup_trials,
            allow_duplicates=self.allow_duplicates,
            failed=self.failed,
            settings=self.settings,
            logger=logger,
            memory=self.memory,
            valid=self.valid,
            framework=framework,
            name=name,
        )


def seed_from(seed: int | None, *, name: str = "seed", n_bits: int = 63) -> int:
    """Return a seed as a plain integer, drawn from the operating system if there is none.

    Args:
        seed: What the user gave.
        name: The framework's name for the argument.
        n_bits: Size of a seed that is drawn.

    Raises:
        ValueError: If it is negative or no integer.
    """
    if seed is None:
        return secrets.randbits(n_bits)
    is_seed = is_integer(seed) and seed >= 0
    require(is_seed, name, seed, "a non-negative integer or None")
    return int(seed)
