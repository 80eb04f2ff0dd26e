"""Replays as a table, as a sentence and as plain figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from dre_bench.replays.replay import (
    GOAL,
    NO_PRIOR,
    PRIOR,
    RANDOM,
    WAYS,
    YOURS,
    LeftOut,
    Replay,
    mean_replay,
)

CHECKPOINTS = (1, 5, 10, 20)


def replay_table(replays: Sequence[Replay]) -> Table:
    """Return regrets after some picks and evaluations needed, by task and way, means last."""
    mean = mean_replay(replays)
    shown = [k for k in CHECKPOINTS if k <= len(mean.regret[PRIOR])]
    table = Table(
        title=f"regret after so many picks; evaluations needed for a regret of {GOAL}",
        title_justify="left",
    )
    table.add_column("task")
    table.add_column("configurations", justify="right")
    table.add_column("way", no_wrap=True)
    for k in shown:
        table.add_column(f"@{k}", justify="right")
    table.add_column("needed", justify="right")
    table.add_column("saved", justify="right")
    for replay in [*replays, mean] if len(replays) > 1 else replays:
        for place, way in enumerate(WAYS):
            table.add_row(
                replay.task if place == 0 else "",
                str(replay.n_configurations) if place == 0 else "",
                way,
                *(f"{replay.regret_after(way, k):.3f}" for k in shown),
                f"{replay.needed[way]:.1f}",
                "" if way == YOURS else f"{replay.saved(way):+.1f}",
                end_section=place == len(WAYS) - 1,
            )
    return table


def in_words(replays: Sequence[Replay]) -> str:
    """Return in words what the prior would have saved, against each other way."""
    needed = mean_replay(replays).needed
    others = [way for way in WAYS if way != PRIOR]
    means = ", ".join(f"{way} {needed[way]:.1f}" for way in others)
    counts = ", ".join(f"{way} on {_n_ahead(replays, way)}" for way in others)
    return (
        f"Evaluations to come within {GOAL} of your best, a task: prior {needed[PRIOR]:.1f}, "
        f"{means}.\nThe prior needs fewer than {counts} of {len(replays)} tasks.\n"
        "Compare it to no prior and random order above all, which pick from the same table: a "
        "search that had narrowed down to the good region leaves a table full of it."
    )


def verdict(replays: Sequence[Replay]) -> str:
    """Return in one line whether a prior is worth it, by the ways that pick from the same table.

    It is if it needs fewer evaluations than both of them, in the mean and on most of the tasks;
    it is not if it does neither.
    """
    needed, n = mean_replay(replays).needed, len(replays)
    rival = min((NO_PRIOR, RANDOM), key=lambda way: needed[way])
    saved = needed[rival] - needed[PRIOR]
    n_ahead = sum(
        replay.needed[PRIOR] < min(replay.needed[NO_PRIOR], replay.needed[RANDOM])
        for replay in replays
    )
    signs = (saved > 0, 2 * n_ahead > n)
    answer = "worth it" if all(signs) else "unclear" if any(signs) else "not worth it"
    return (
        f"Verdict: {answer}. A prior needs {needed[PRIOR]:.1f} evaluations a task, {rival} "
        f"{needed[rival]:.1f}; it is ahead of both other ways on {n_ahead} of {n} tasks."
    )


def figures(replays: Sequence[Replay], left_out: Sequence[LeftOut]) -> dict[str, Any]:
    """Return everything as JSON-ready values."""
    return {
        "goal": GOAL,
        "tasks": [_figures_of(replay) for replay in replays],
        "mean": _figures_of(mean_replay(replays)),
        "left_out": [{"task": replay.task, "reason": replay.reason} for replay in left_out],
    }


def _n_ahead(replays: Sequence[Replay], way: str) -> int:
    return sum(replay.needed[PRIOR] < replay.needed[way] for replay in replays)


def _figures_of(replay: Replay) -> dict[str, Any]:
    return {
        "task": replay.task,
        "configurations": replay.n_configurations,
        "regret": {way: curve.tolist() for way, curve in replay.regret.items()},
        "needed": dict(replay.needed),
        "saved": {way: replay.saved(way) for way in WAYS},
    }
