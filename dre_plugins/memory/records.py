"""A study as lines of JSON: a header, its search spaces, and its trials as they end.

Values are in the user's sign in a file, and larger is better in a `Trial`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dre_plugins.engine.files import regular
from dre_plugins.memory.recorded import Ended, Header, RecordedStudy
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.space.serial import from_plain, to_plain
from dre_plugins.transfer.archive import DAMAGES

FORMAT = "dre-plugins/memory"
VERSION = 1

# A line that begins like this is a trial; they are counted without being parsed.
TRIAL_START = b'{"trial":'


class RecordError(ValueError):
    """A record that cannot be read: the message names the file."""


# ---- writing


def header_line(header: Header) -> bytes:
    """Return the first line of a record."""
    return _line({"format": FORMAT, "version": VERSION, **asdict(header)})


def space_line(space: SearchSpace) -> bytes:
    """Return the line of a search space, which the trials after it come from.

    Raises:
        ValueError: A value is of a type that no file can hold.
    """
    return _line({"space": space.to_dict()})


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
        "source": ended.source,
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


def read_study(paths: Sequence[Path]) -> RecordedStudy:
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
    return RecordedStudy(header, tuple(spaces), trials, n_damaged)


def _read_line(
    state: Mapping[str, Any], header: Header, spaces: list[SearchSpace], trials: dict[int, Ended]
) -> None:
    if "space" in state:
        space = SearchSpace.from_dict(state["space"])
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
    return Ended(
        trial, float(state["ended"]), bool(state["stopped"]), str(state.get("source", ""))
    )


def _floats(values: Iterable[Any]) -> list[float]:
    return [float(from_plain(value)) for value in values]
