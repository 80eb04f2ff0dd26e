"""A study as lines of JSON: a header, its search space, and its trials as they end.

Values are in the user's sign in a file, and larger is better in a `Trial`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dre_plugins.engine.files import regular
from dre_plugins.recommend.trials import (
    ConstraintState,
    Trial,
    TrialState,
    as_of_now,
    constraint_states,
)
from dre_plugins.space.conditions import infer_conditions
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.archive import DAMAGES
from dre_plugins.transfer.metadata import Task
from dre_plugins.transfer.spaces.merging import merged_space
from dre_plugins.transfer.spaces.plain import (
    from_plain,
    space_from_plain,
    space_to_plain,
    to_plain,
)

FORMAT = "dre-plugins/memory"
VERSION = 1

# A line that begins like this is a trial; they are counted without being parsed.
TRIAL_START = b'{"trial":'


class RecordError(ValueError):
    """A record that cannot be read: the message names the file."""


@dataclass(frozen=True, slots=True)
class Header:
    """Say which study a record is of.

    Args:
        study: Identity of the study; all its records have the same.
        name: Name for people; may be empty.
        framework: What tuned, such as "optuna".
        directions: "minimize" or "maximize" for each objective.
        began: When, in seconds since 1970.
    """

    study: str
    name: str
    framework: str
    directions: tuple[str, ...]
    began: float

    @property
    def title(self) -> str:
        """Return the name, or the identity of a study without one."""
        return self.name or self.study

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Header:
        """Rebuild a header from `dataclasses.asdict`, by way of JSON."""
        return cls(**{**state, "directions": tuple(state["directions"])})

    def signs(self) -> list[float]:
        """Return +1 for each objective that is maximised, else -1."""
        return [1.0 if direction == "maximize" else -1.0 for direction in self.directions]


@dataclass(frozen=True, slots=True)
class Ended:
    """Hold a trial that has ended, larger values are better.

    Args:
        trial: The trial.
        time: When, in seconds since 1970.
        is_stopped: Whether something else ended it, so that it counts by what it has reported.
    """

    trial: Trial
    time: float
    is_stopped: bool = False


@dataclass(frozen=True, slots=True)
class Study:
    """Hold all records of a study.

    Args:
        header: Which study it is.
        spaces: The search spaces that its trials came from, at least one.
        trials: What has ended, by number.
        n_damaged: How many lines could not be read.
    """

    header: Header
    spaces: tuple[SearchSpace, ...]
    trials: Mapping[int, Ended]
    n_damaged: int = 0

    def history(self) -> list[Trial]:
        """Return the trials in order; what was stopped counts by what it has reported."""
        ended = [self.trials[number] for number in sorted(self.trials)]
        stopped = [row for row, entry in enumerate(ended) if entry.is_stopped]
        return as_of_now([entry.trial for entry in ended], stopped)

    def task(self) -> Task:
        """Return the study as a past task; a trial that violates a constraint has failed.

        Raises:
            ValueError: It has several objectives, or spaces that contradict each other.
        """
        if len(self.header.directions) != 1:
            raise ValueError(f"Study {self.header.title!r} has several objectives.")
        history = self.history()
        violated = [state is ConstraintState.VIOLATED for state in constraint_states(history)]
        learnt = [
            replace(trial, state=TrialState.FAILED, value=None) if is_violated else trial
            for trial, is_violated in zip(history, violated, strict=True)
        ]
        return Task.from_trials(self.header.title, self.space(), learnt)

    def space(self) -> SearchSpace:
        """Return the one search space, or one that holds all, with conditions as trials show.

        Raises:
            ValueError: A parameter is a number in one space and a word in another.
        """
        merged = merged_space(self.spaces)
        if all(space == merged for space in self.spaces):
            return merged
        configurations = [trial.configuration for trial in self.history()]
        return SearchSpace(merged.domains, *infer_conditions(merged.domains, configurations))


# ---- writing


def header_line(header: Header) -> bytes:
    """Return the first line of a record."""
    return _line({"format": FORMAT, "version": VERSION, **asdict(header)})


def space_line(space: SearchSpace) -> bytes:
    """Return the line of a search space, which the trials after it come from.

    Raises:
        ValueError: A value is of a type that no file can hold.
    """
    return _line({"space": space_to_plain(space)})


def trial_line(number: int, ended: Ended, header: Header) -> bytes:
    """Return the line of a trial.

    Raises:
        TypeError: A value is of a type that no file can hold.
    """
    trial, signs = ended.trial, header.signs()
    values = trial.objectives or (() if trial.value is None else (trial.value,))
    plain = {
        "trial": number,
        "state": trial.state.value,
        "values": [to_plain(s * float(v)) for s, v in zip(signs, values, strict=True)]
        if values
        else [],
        "configuration": {name: to_plain(v) for name, v in trial.configuration.items()},
        "rungs": [[s, to_plain(signs[0] * float(v))] for s, v in sorted(trial.rungs.items())],
        "constraints": {name: to_plain(float(v)) for name, v in trial.constraints.items()},
        "ended": ended.time,
        "stopped": ended.is_stopped,
    }
    return _line(plain)


def _line(plain: Mapping[str, Any]) -> bytes:
    return json.dumps(plain, allow_nan=False, separators=(",", ":")).encode() + b"\n"


# ---- reading


def read_header(line: bytes, path: Path) -> Header:
    """Return what the first line of a record says.

    Raises:
        RecordError: It is none, or of a newer version.
    """
    try:
        state = json.loads(line)
        if state.pop("format") != FORMAT or state["version"] > VERSION:
            raise RecordError(
                f"{path} is no record of this version, which reads {VERSION}; update dre-plugins."
            )
        state.pop("version")
        return Header.from_dict(state)
    except RecordError:
        raise
    except DAMAGES as error:
        raise RecordError(f"{path} is no record of a study: its first line is damaged.") from error


def read_study(paths: Sequence[Path]) -> Study:
    """Return a study from its records; of a trial with several, the one that ended last.

    Lines that are damaged, as the last one of a killed process may be, are counted.

    Args:
        paths: Its files, at least one.

    Raises:
        OSError: A file cannot be read.
        RecordError: A header is damaged, or no search space is left.
    """
    headers: list[Header] = []
    spaces: list[SearchSpace] = []
    trials: dict[int, Ended] = {}
    n_damaged = 0
    for path in sorted(paths):
        first, *lines = regular(path).read_bytes().splitlines() or [b""]
        headers.append(read_header(first, path))
        for line in lines:
            try:
                _read_line(json.loads(line), headers[-1], spaces, trials)
            except DAMAGES:
                n_damaged += 1
    if not spaces:
        raise RecordError(f"{paths[0]} has no search space.")
    header = min(headers, key=lambda header: header.began)
    return Study(header, tuple(spaces), trials, n_damaged)


def _read_line(
    state: Mapping[str, Any], header: Header, spaces: list[SearchSpace], trials: dict[int, Ended]
) -> None:
    if "space" in state:
        space = space_from_plain(state["space"])
        if space not in spaces:
            spaces.append(space)
        return
    number, ended = int(state["trial"]), _trial_in(state, header)
    if number not in trials or trials[number].time <= ended.time:
        trials[number] = ended


def _trial_in(state: Mapping[str, Any], header: Header) -> Ended:
    signs = header.signs()
    values = tuple(s * v for s, v in zip(signs, _floats(state["values"]), strict=False))
    is_one = len(signs) == 1
    steps = [float(step) for step, _ in state["rungs"]]
    reported = [signs[0] * v for v in _floats(value for _, value in state["rungs"])]
    trial = Trial(
        configuration={
            str(name): from_plain(value) for name, value in state["configuration"].items()
        },
        state=TrialState(state["state"]),
        value=values[0] if is_one and values else None,
        rungs={s: v for s, v in zip(steps, reported, strict=True) if math.isfinite(s)},
        objectives=() if is_one else values,
        constraints=dict(
            zip(state["constraints"], _floats(state["constraints"].values()), strict=True)
        ),
    )
    return Ended(trial, float(state["ended"]), bool(state["stopped"]))


def _floats(values: Iterable[Any]) -> list[float]:
    return [float(from_plain(value)) for value in values]
