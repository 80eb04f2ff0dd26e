"""Settings of the search, validated on construction."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from dre_plugins.checks import is_integer, require
from dre_plugins.engine.settings import (
    ACQUISITION_NAMES,
    DEFAULT_ACQUISITIONS,
    MAX_THREADS,
    Preset,
    check_device,
    get_preset,
)

# What failed trials may mean, see `RecommenderSettings`.
FAILED = ("model", "worst", "ignore")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Hold the expert settings, which are the same in every framework.

    Args:
        acquisition: Acquisition function of the ensemble: "log-rank-ei" (expected improvement of
            the logarithm of the rank) or "ei" (of the rank, as in the paper). With a preset other
            than "default" also "pi" (probability of improvement), "lcb" (lower confidence bound),
            "average-rank" or "thompson". None takes the preset's: "log-rank-ei" by default. The
            universal prior has the expected improvement of the value in any case.
        preset: "default", "paper" (the ensemble alone, as in the paper; slower) or a
            `dre_plugins.engine.Preset`.
        device: Torch device of the models, such as "cpu" or "cuda".
        n_threads: Threads that a suggestion may use, 1 to 1024; torch's own setting is restored.
        max_history: Largest number of trials that a model is fitted to, at least 2. In longer
            studies these are the best and evenly spaced ranks of the others, so that the time of a
            suggestion is bounded.
        order_numeric_choices: Whether choices that are numbers in ascending order are treated as
            ordered, in frameworks and in lists of choices; in a `SearchSpace`, use `Ordinal`.
            Positions 0, 1, 2, … of a parameter whose name ends in "idx" or "index" never are.

    Raises:
        ValueError: If a setting is invalid, or there is no such device.

    Examples:
        >>> Settings(acquisition="ei", n_threads=2).max_history
        128
        >>> Settings(n_threads=0)
        Traceback (most recent call last):
            ...
        ValueError: n_threads must be an integer of at least 1, got 0.
    """

    acquisition: str | None = None
    preset: str | Preset = "default"
    device: str = "cpu"
    n_threads: int = 1
    max_history: int = 128
    order_numeric_choices: bool = True

    def __post_init__(self) -> None:
        is_default = get_preset(self.preset) == get_preset("default")
        offered = DEFAULT_ACQUISITIONS if is_default else ACQUISITION_NAMES
        others = f", or with preset='paper' one of {ACQUISITION_NAMES}" if is_default else ""
        is_offered = self.acquisition in (None, *offered)
        require(is_offered, "acquisition", self.acquisition, f"one of {offered}{others}")
        for name, least in (("n_threads", 1), ("max_history", 2)):
            value = getattr(self, name)
            is_count = is_integer(value) and value >= least
            require(is_count, name, value, f"an integer of at least {least}")
        few = f"at most {MAX_THREADS}"
        require(self.n_threads <= MAX_THREADS, "n_threads", self.n_threads, few)
        is_ordered = self.order_numeric_choices
        require(isinstance(is_ordered, bool), "order_numeric_choices", is_ordered, "True or False")
        check_device(self.device)

    def for_recommender(self, **shared: Any) -> RecommenderSettings:
        """Return these settings together with the arguments that all samplers share."""
        return RecommenderSettings(
            **{field.name: getattr(self, field.name) for field in fields(Settings)}, **shared
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommenderSettings(Settings):
    """Choose how a `Recommender` makes suggestions; `Settings` explains the other arguments.

    Args:
        n_startup_trials: Number of trials that must have ended before a model proposes; until
            then, Sobol points. None means 3 for the universal prior and 10 for the ensemble, or 0
            with a trained prior.
        allow_duplicates: Whether a configuration may be suggested again.
        failed: What failed trials mean. "model": expected improvements are multiplied by the
            predicted probability of success. "worst": they rank below all others. "ignore": they
            are left out.

    Raises:
        ValueError: If a setting is invalid, or there is no such device.
    """

    n_startup_trials: int | None = None
    allow_duplicates: bool = False
    failed: str = "model"

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        n_trials = self.n_startup_trials
        is_count = n_trials is None or (is_integer(n_trials) and n_trials >= 0)
        require(is_count, "n_startup_trials", n_trials, "an integer of at least 0, or None")
        may_repeat = self.allow_duplicates
        require(isinstance(may_repeat, bool), "allow_duplicates", may_repeat, "True or False")
        require(self.failed in FAILED, "failed", self.failed, f"one of {FAILED}")


def checked_settings(settings: Settings | None) -> Settings:
    """Return the settings, the defaults for None; raise a TypeError for anything else."""
    if settings is None:
        return Settings()
    if not isinstance(settings, Settings) or isinstance(settings, RecommenderSettings):
        raise TypeError(
            "settings must be a dre_plugins.Settings, such as Settings(n_threads=2), got "
            f"{settings!r}."
        )
    return settings
