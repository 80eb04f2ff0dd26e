"""What tests of killed drivers share: the ledger of their trials."""

import time
from pathlib import Path
from typing import NamedTuple


class Event(NamedTuple):
    """A line of the ledger: when a trial began or ended."""

    time: float
    what: str
    trial: str


def ledger(folder: Path) -> list[Event]:
    """Return what trials have written down; the last line of one that was killed may be torn."""
    file = folder / "ledger"
    lines = file.read_text().splitlines() if file.exists() else []
    events = [line.split() for line in lines if len(line.split()) == 3]
    return [Event(float(when), what, trial) for when, what, trial in events]


def wait_for_trials(folder: Path, began: float, n: int) -> None:
    """Wait until so many trials have begun or ended since a moment."""
    deadline = time.monotonic() + 240
    while sum(event.time > began for event in ledger(folder)) < n:
        assert time.monotonic() < deadline, "not enough happened for four minutes"
        time.sleep(0.02)
