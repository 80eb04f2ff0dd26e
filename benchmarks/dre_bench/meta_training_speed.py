"""Measure how long meta-training takes to a validation loss, as ratios within one run.

    python -m dre_bench.meta_training_speed --data PATH

compares, on one thread and from the same metadata, our meta-training (all members and several
lists in one step, the default settings) with the published procedure (each member alone, one list
a step, Adam at 0.001). Both are `meta_train`: same network, same kernels, same validation draws;
both anneal, and both plan as many lists for a member. The Deep Set belongs to all members in ours;
trained alone, each has its own.

Of the published procedure one member is trained, and its time multiplied by the number of members.
Seconds are those of the processor, so that other programs on the machine do not count.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dre_bench.priors import scenario_metadata, search_space
from dre_bench.tasks import SCENARIOS, YahpoScenario
from dre_plugins.engine.settings import ScorerSettings
from dre_plugins.transfer.meta_training import MetaTrainingSettings, Progress, meta_train
from dre_plugins.transfer.task_lists import TaskLists
from dre_plugins.transfer.training import SCORER, encoder_of

# Looks of ours whose losses are compared, as shares of its steps; then the final quality.
SHARES = (0.05, 0.1, 0.25, 0.5)
# What counts as our final quality: the smallest validation loss and this much more.
SLACK = 0.01


@dataclass(frozen=True, slots=True)
class Look:
    """Hold what one look at the validation lists found.

    Args:
        step: Steps done.
        seconds: Processor time since the start.
        loss: Smallest validation loss so far.
    """

    step: int
    seconds: float
    loss: float


class _Enough(Exception):
    """End a training from within its progress callback."""


def looks_of(
    lists: TaskLists,
    validation: TaskLists,
    scorer: ScorerSettings,
    settings: MetaTrainingSettings,
    *,
    is_enough: Callable[[Look], bool] = lambda _: False,
) -> list[Look]:
    """Meta-train until it ends or is enough, and return all looks."""
    looks: list[Look] = []
    start = time.process_time()

    def look(progress: Progress) -> None:
        looks.append(Look(progress.step, time.process_time() - start, progress.best))
        if is_enough(looks[-1]):
            raise _Enough

    try:
        meta_train(lists, validation, scorer, settings, seed=0, on_progress=look)
    except _Enough:
        pass
    return looks


def one_by_one(settings: MetaTrainingSettings) -> MetaTrainingSettings:
    """Return the published procedure: one list a step, and as many lists as in `settings`."""
    n_steps = settings.n_steps * settings.n_lists
    return replace(settings, n_steps=n_steps, n_lists=1, learning_rate=1e-3, patience=n_steps)


def targets(looks: Sequence[Look]) -> list[float]:
    """Return the losses to compare at, largest first: those of some looks, and the final one."""
    best = looks[-1].loss * (1.0 + SLACK)
    passed = [next(one for one in looks if one.step >= s * looks[-1].step).loss for s in SHARES]
    return sorted({loss for loss in passed if loss > best} | {best}, reverse=True)


def first_below(looks: Sequence[Look], loss: float) -> Look | None:
    """Return the first look at which a loss was reached."""
    return next((look for look in looks if look.loss <= loss), None)


def table(ours: Sequence[Look], alone: Sequence[Look], n_members: int) -> str:
    """Return the times to each loss as Markdown."""
    last = alone[-1]
    rows = [
        f"| validation loss | ours, s | one member alone, s | × {n_members} members, s | ratio |",
        "|---|---|---|---|---|",
    ]
    for loss in targets(ours):
        batched, single = first_below(ours, loss), first_below(alone, loss)
        assert batched is not None  # targets are losses of ours
        row = f"| {loss:.2f} | {batched.seconds:.1f} | "
        if single is None:
            row += f"not reached in {last.seconds:.0f} ({last.loss:.2f}) | "
            least = n_members * last.seconds
            row += f"> {least:.0f} | > {least / batched.seconds:.0f} |"
        else:
            total = n_members * single.seconds
            row += f"{single.seconds:.1f} | {total:.0f} | {total / batched.seconds:.0f} |"
        rows.append(row)
    return "\n".join(rows)


def summary(name: str, looks: Sequence[Look], n_lists: int) -> str:
    """Return a line on speed and end of a training that reads `n_lists` in a step."""
    end = looks[-1]
    per_list = 1e3 * end.seconds / (end.step * n_lists)
    return (
        f"{name}: {end.step} steps in {end.seconds:.1f} s, {1e3 * end.seconds / end.step:.2f} ms "
        f"a step, {per_list:.3f} ms a list and member; validation loss {end.loss:.2f}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m dre_bench.meta_training_speed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the scenarios")
    parser.add_argument("--scenario", choices=SCENARIOS, default=SCENARIOS[0])
    parser.add_argument("--tasks", type=int, help="training tasks to use; all by default")
    parser.add_argument("--steps", type=int, help="steps of ours; the default of the package")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for the one member")
    options = parser.parse_args(arguments)

    scenario = YahpoScenario(options.data / options.scenario)
    training = scenario_metadata(scenario, "train")
    training = training.subset([task.name for task in training][: options.tasks])
    encode = encoder_of(search_space(scenario.parameters))
    lists = TaskLists.of(training.tasks, encode)
    validation = TaskLists.of(scenario_metadata(scenario, "validation").tasks, encode)
    print(
        f"{scenario.name}: {len(lists)} training lists of {lists.n_entries} evaluations, "
        f"{len(validation)} validation lists, {lists.n_features} features",
        flush=True,
    )

    settings = MetaTrainingSettings()
    if options.steps is not None:
        settings = replace(settings, n_steps=options.steps)
    n_members = SCORER.n_members
    ours = looks_of(lists, validation, SCORER, settings)
    print(summary("ours", ours, n_members * settings.n_lists), flush=True)
    goal = targets(ours)[-1]
    alone = looks_of(
        lists,
        validation,
        replace(SCORER, n_members=1),
        one_by_one(settings),
        is_enough=lambda look: look.loss <= goal or look.seconds >= options.limit,
    )
    print(summary("one member alone, one list a step", alone, 1))
    print("\n" + table(ours, alone, n_members))


if __name__ == "__main__":
    main()
