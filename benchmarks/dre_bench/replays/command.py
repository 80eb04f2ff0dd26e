"""`dre-bench evaluate`: what a prior would have saved on the user's own tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dre_plugins.checks import require
from dre_plugins.cli.console import console, tracked, warn
from dre_plugins.cli.options import (
    Device,
    Seed,
    Tasks,
    Threads,
    check_machine,
    check_writable,
    load_tasks,
)

if TYPE_CHECKING:
    from dre_plugins.transfer.metadata import MetaDataset
    from dre_plugins.transfer.prior import Prior

PICTURE_FILES = (".png", ".pdf", ".svg")


def evaluate(
    tasks: Tasks,
    prior: Annotated[
        str | None,
        typer.Option(
            metavar="PRIOR",
            help="Name or file of a prior to evaluate as it is. Without it: for every task, a "
            "prior is meta-trained on the other tasks.",
        ),
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(help="Name of a task to replay; repeat it for several. Without it: all."),
    ] = None,
    trials: Annotated[int, typer.Option(help="Most picks of a replay.")] = 30,
    seeds: Annotated[int, typer.Option(help="Replays of each task; means are shown.")] = 3,
    steps: Annotated[int, typer.Option(help="Steps of each meta-training.")] = 1500,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Picture to draw: .png, .pdf or .svg.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all figures here.")
    ] = None,
    seed: Seed = 0,
    device: Device = "cpu",
    threads: Threads = 1,
) -> None:
    """Tell what a prior of your other tasks would have saved you on each.

    Each task in turn is set aside; a prior is meta-trained on the others, and then replays it:
    it picks one of the configurations that you evaluated, is told its value, picks the next.
    Nothing is evaluated anew. Four ways of picking are compared:

    - **prior**: the ensemble with the prior, from the first pick on
    - **no prior**: 10 random picks, then the ensemble, which learns from these alone
    - **random order**: the expectation over all orders
    - **your order**: the order in which they were evaluated

    **Regret** is the distance of the best pick so far to the best value that you found, as a
    share of the range of your values: 0 is your best, 1 your worst.

    **Needed** is the number of evaluations until the regret is at most 0.01. Where the picks do
    not get there, the configurations that are left are counted in random order. **Saved** is what
    your order needed minus what the way needed.

    Compare the prior to no prior and to random order above all: they pick from the same table.
    Your order is another matter. A search finds the good region first and then stays in it, so
    that its table is full of good configurations, which even a random order meets soon.

    A replay can only find what you found. Evaluations without a value (failed, pruned) are left
    out, and a configuration that you evaluated again counts with its first value. If two tasks
    are really the same study, the figures are too good.

    Examples:

        dre-bench evaluate tasks.json -o saved.png

        dre-bench evaluate sqlite:///studies.db

        dre-bench evaluate tasks.json --prior prior.safetensors --json saved.json
    """
    for name, value in (("--trials", trials), ("--seeds", seeds), ("--steps", steps)):
        require(value >= 1, name, value, "at least 1")
    check_machine(seed, device, threads)
    if json_file is not None:
        check_writable(json_file, (".json",))
    if output is not None:
        check_writable(output, PICTURE_FILES)

    from dre_bench.replays.picture import draw
    from dre_bench.replays.replay import LeftOut, Replay, leave_one_out
    from dre_bench.replays.words import figures, in_words, replay_table, verdict
    from dre_bench.table_contexts import contexts_of, in_contexts
    from dre_plugins.transfer.meta_training import MetaTrainingSettings
    from dre_plugins.transfer.prior import Prior

    metadata = load_tasks(tasks)
    loaded = None if prior is None else Prior.load(prior)
    _check_tasks(metadata, loaded)
    settings = MetaTrainingSettings(n_steps=steps)

    def prior_for(others: MetaDataset) -> Prior:
        if loaded is not None:
            return loaded
        options = {"seed": seed, "device": device, "n_threads": threads}
        trained = Prior.train(others, settings=settings, **options)
        return in_contexts(trained, contexts_of(trained, others))

    outcomes = leave_one_out(
        metadata,
        prior_for,
        names=task or None,
        n_picks=trials,
        seeds=range(seed, seed + seeds),
        n_threads=threads,
    )
    replays: list[Replay] = []
    left_out: list[LeftOut] = []
    n_tasks = len(set(task or ())) or len(metadata)
    for outcome in tracked(outcomes, "replaying the tasks", n_tasks):
        if isinstance(outcome, Replay):
            replays.append(outcome)
        else:
            left_out.append(outcome)
    for outcome in left_out:
        warn(f"task {outcome.task!r} is left out: {outcome.reason}", "dre-bench")
    if not replays:
        raise ValueError("No task could be replayed.")
    console().print(replay_table(replays))
    console().print(in_words(replays), soft_wrap=True)
    if json_file is not None:
        text = json.dumps(figures(replays, left_out), indent=1)
        json_file.write_text(text, encoding="utf-8")
        console().print(f"figures: {json_file}", soft_wrap=True)
    if output is not None:
        draw(replays, output)
        console().print(f"picture: {output}", soft_wrap=True)
    console().print(verdict(replays), soft_wrap=True)


def _check_tasks(metadata: MetaDataset, prior: Prior | None) -> None:
    """Raise a ValueError if there is nothing to learn from; warn if the prior knows the tasks."""
    if prior is None:
        if len(metadata) < 2:
            raise ValueError(
                f"With {len(metadata)} task there is no other one to learn from; import more "
                "studies, or evaluate a prior with --prior."
            )
        return
    shared = sorted({task.name for task in metadata} & set(prior.card.tasks))
    if shared:
        warn(
            f"the prior was meta-trained on tasks with the names {shared}; if they are the same, "
            "the figures are too good.",
            "dre-bench",
        )
