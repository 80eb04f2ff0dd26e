"""What tests of killed drivers share: when they are killed, and the ledger of their trials."""

import random
import time
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import NamedTuple


class Events(NamedTuple):
    """Which trials have begun, and when trials have ended."""

    begun: set[str]
    ended: dict[str, float]


def _events_since(folder: Path, moment: float) -> Events:
    """Return what trials have written down; the last line of one that was killed may be torn."""
    file = folder / "ledger"
    lines = file.read_text().splitlines() if file.exists() else []
    events = [line.split() for line in lines if len(line.split()) == 3]
    later = [(float(when), what, trial) for when, what, trial in events if float(when) > moment]
    return Events(
        {trial for _, what, trial in later if what == "begin"},
        {trial: when for when, what, trial in later if what == "end"},
    )


def killed(
    process: ForkServerProcess, folder: Path, kill: int, rng: random.Random, within: list[float]
) -> Events:
    """Start a driver, kill it within some seconds at any moment, and return what happened.

    Three of four kills come after some trials; the fourth anywhere, most likely before the first.
    """
    began = time.time()
    process.start()
    n_awaited, deadline = rng.randint(1, 16) if kill % 4 < 3 else 0, time.monotonic() + 240
    while sum(map(len, _events_since(folder, began))) < n_awaited:
        assert time.monotonic() < deadline, "not enough happened for four minutes"
        time.sleep(0.02)
    process.join(rng.uniform(*within))
    assert process.exitcode is None, "it has ended before it was killed"
    process.kill()
    process.join()
    time.sleep(0.5)  # trials outlive their driver
    return _events_since(folder, began)


def run_to_the_end(process: ForkServerProcess) -> None:
    process.start()
    process.join(300)
    assert process.exitcode == 0
