"""What a user can choose about the search, validated where it is built."""

from __future__ import annotations

from dataclasses import dataclass

from dre_plugins.engine.settings import (
    Preset,
    check_acquisition,
    check_device,
    get_preset,
    require,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommenderSettings:
    """Choose how suggestions are made; the same settings in every framework.

    Args:
        n_startup_trials: Trials that must have ended before the surrogate takes over; until
            then suggestions are scrambled Sobol points. None takes 10 for the ensemble and 5 for
            the universal prior in its turns, or 0 with a prior of past tasks.
        acquisition: What the ensemble chooses by: "log-rank-ei", "ei", "pi", "lcb",
            "average-rank" or "thompson"; None takes the preset's. The universal prior, in its
            turns, takes the expected improvement of the value.
        allow_duplicates: Whether a configuration may be suggested again.
        failed: "worst" ranks failed trials last, "ignore" leaves them out.
        preset: Name of a preset of the engine, or a `Preset`.
        device: Where the surrogate computes: "cpu", "cuda", …
        n_threads: Threads of one suggestion.
        max_history: Trials that the surrogate is fitted to; longer histories are thinned by
            rank: all of the best, a spread of the rest.

    Raises:
        ValueError: If a setting is invalid, or there is no such device.
    """

    n_startup_trials: int | None = None
    acquisition: str | None = None
    allow_duplicates: bool = False
    failed: str = "worst"
    preset: str | Preset = "default"
    device: str = "cpu"
    n_threads: int = 1
    max_history: int = 128

    def __post_init__(self) -> None:
        if self.n_startup_trials is not None:
            require(
                self.n_startup_trials >= 0, "n_startup_trials", self.n_startup_trials, "at least 0"
            )
        if self.acquisition is not None:
            check_acquisition(self.acquisition)
        require(self.failed in ("worst", "ignore"), "failed", self.failed, "'worst' or 'ignore'")
        require(self.n_threads >= 1, "n_threads", self.n_threads, "at least 1")
        require(self.max_history >= 2, "max_history", self.max_history, "at least 2")
        check_device(self.device)
        get_preset(self.preset)
