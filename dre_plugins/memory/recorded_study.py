"""A recorded study: its header, search spaces and ended trials; `records` has its files."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from dre_plugins.checks import is_real
from dre_plugins.recommend.define_by_run import learnt_space
from dre_plugins.recommend.directions import SIGNS
from dre_plugins.recommend.trials import Observed, Trial, observed_trials
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.metadata import Task
from dre_plugins.transfer.spaces.merging import merged_space

# About the year 9892; a date has no more than four digits for the year.
_LAST_TIME = 2.5e11


def is_time(seconds: Any) -> bool:
    """Say whether these are seconds since 1970 that a date can be made of."""
    return is_real(seconds) and bool(0.0 <= seconds < _LAST_TIME)


def seconds_of(moment: datetime) -> float:
    """Return the seconds since 1970 of a moment; 0 if it is made up, and no record can hold it."""
    try:
        seconds = moment.timestamp()
    except (OSError, OverflowError, ValueError):  # of years that the platform's clock lacks
        return 0.0
    return seconds if is_time(seconds) else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Hold the header of a record: which study it belongs to."""

    # identity of the study; all its records have the same. By default a new one
    study: str = field(default_factory=lambda: uuid.uuid4().hex[:16])
    name: str  # name for people; may be empty
    framework: str  # framework of the study, such as "optuna"
    directions: tuple[str, ...]  # "minimize" or "maximize" for each objective
    # time when it began, in seconds since 1970; now by default
    began: float = field(default_factory=time.time)

    @property
    def title(self) -> str:
        """Return the name, or the identity of a study without one."""
        return self.name or self.study

    @property
    def dated(self) -> str:
        """Return the title and the day on which the study began, such as "wine (2026-11-23)"."""
        return f"{self.title} ({datetime.fromtimestamp(self.began):%Y-%m-%d})"

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Header:
        """Rebuild a header from `dataclasses.asdict`; a TypeError or ValueError: it is none."""
        header = cls(**{**state, "directions": tuple(state["directions"])})
        texts = (header.study, header.name, header.framework)
        if not (
            all(isinstance(text, str) for text in texts)
            and header.study == Path(header.study).name != ""  # it is part of names of files
            and header.directions
            and all(direction in SIGNS for direction in header.directions)
            and is_time(header.began)
        ):
            raise ValueError(f"this is no header: {header!r}")
        return header


@dataclass(frozen=True, slots=True)
class RecordedTrial:
    """Hold a trial that has ended, larger values are better."""

    trial: Trial
    time: float  # time when it ended, in seconds since 1970
    is_stopped: bool = False  # whether a scheduler stopped it, so that it counts by its reports
    # source of the suggestion, see `recommend.explanation.SOURCES`; empty if unknown
    source: str = ""


@dataclass(frozen=True, slots=True)
class RecordedStudy:
    """Hold all records of a study."""

    header: Header
    spaces: tuple[SearchSpace, ...]  # the search spaces that its trials came from, at least one
    trials: Mapping[int, RecordedTrial]  # ended trials by number
    n_damaged: int = 0  # how many lines could not be read

    def history(self) -> list[Trial]:
        """Return the trials in order; stopped trials count by their reports."""
        ended = [self.trials[number] for number in sorted(self.trials)]
        stopped = [row for row, entry in enumerate(ended) if entry.is_stopped]
        return observed_trials([entry.trial for entry in ended], stopped)

    def counts(self) -> Counter[str]:
        """Return how many trials there are of each state."""
        return Counter(trial.state.value for trial in self.history())

    def best(self) -> Trial | None:
        """Return the best feasible trial, None without any or with several objectives."""
        trials = Observed.of(self.history()).valid_trials
        single = [trial for trial in trials if trial.value is not None]
        return max(single, key=lambda trial: trial.value or 0.0, default=None)

    def task(self) -> Task:
        """Return the study, which has one objective, as a past task."""
        return Task.from_trials(self.header.title, self.space(), self.history())

    def space(self) -> SearchSpace:
        """Return the search space, or the union of several with conditions learnt from trials."""
        merged = merged_space(self.spaces)
        if all(space == merged for space in self.spaces):
            return merged
        history = self.history()
        asked = [trial.configuration for trial in history]
        space, _ = learnt_space(merged.domains, asked, [trial.state for trial in history])
        return space
