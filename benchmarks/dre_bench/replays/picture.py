"""Replays as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dre_bench.replays.replay import (
    GOAL,
    NO_PRIOR,
    PRIOR,
    RANDOM,
    WAYS,
    YOURS,
    Replay,
    mean_replay,
)

# Ways differ by marker and line as well, for readers who do not see the colours.
STYLES: Mapping[str, tuple[str, str, str]] = {
    PRIOR: ("#d1495b", "o", "-"),
    NO_PRIOR: ("#00798c", "s", "-"),
    RANDOM: ("#8d99ae", "^", "--"),
    YOURS: ("#2b2d42", "D", ":"),
}


def draw(replays: Sequence[Replay], path: Path) -> None:
    """Draw mean regrets by pick, and evaluations needed by task."""
    # Without pyplot: no window, no global state.
    figure = Figure(figsize=(11.0, max(4.2, 1.6 + 0.28 * len(replays))), layout="constrained")
    curves, needed = figure.subplots(1, 2)
    _draw_curves(curves, replays)
    _draw_needed(needed, replays)
    figure.savefig(path, dpi=150)


def _draw_curves(axes: Axes, replays: Sequence[Replay]) -> None:
    mean = mean_replay(replays)
    for way in WAYS:
        colour, marker, line = STYLES[way]
        place = np.arange(1, len(mean.regret[way]) + 1)
        axes.plot(
            place, mean.regret[way], line, color=colour, marker=marker, markersize=3.5, label=way
        )
    axes.set_xlabel("picks")
    axes.set_ylabel("regret (0: your best, 1: your worst)")
    axes.set_ylim(bottom=0.0)
    axes.set_title(f"mean over {len(replays)} tasks", loc="left")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)


def _draw_needed(axes: Axes, replays: Sequence[Replay]) -> None:
    rows = np.arange(len(replays))[::-1]
    for way in WAYS:
        colour, marker, _ = STYLES[way]
        axes.plot(
            [replay.needed[way] for replay in replays],
            rows,
            marker,
            color=colour,
            markersize=7,
            alpha=0.85,
        )
    axes.set_yticks(rows, [replay.task for replay in replays])
    axes.set_ylim(-0.5, len(replays) - 0.5)
    axes.set_xlim(left=0.0)
    axes.set_xlabel(f"evaluations needed for a regret of {GOAL}")
    axes.set_title("by task", loc="left")
    axes.grid(alpha=0.3)
