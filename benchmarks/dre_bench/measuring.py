"""`dre-bench speed`, `calibration` and `scale`: measure ours on this machine."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.table import Table

from dre_plugins.checks import require
from dre_plugins.cli.console import console, tracked
from dre_plugins.engine.settings import check_device


def numbers(option: str, text: str) -> list[int]:
    """Read numbers separated by commas.

    Raises:
        ValueError: If the text of the option holds anything else.
    """
    try:
        return [int(part) for part in text.split(",")] if text else []
    except ValueError as error:
        raise ValueError(f"{option} must be numbers separated by commas, got {text!r}.") from error


def speed(
    samplers: Annotated[str, typer.Option(help="Others than ours and its rivals.")] = "",
    dimensions: Annotated[str, typer.Option(help="Numbers of parameters.")] = "10",
    trials: Annotated[str, typer.Option(help="Numbers of trials.")] = "10,50,100,300,1000",
    threads: Annotated[str, typer.Option(help="Numbers of threads.")] = "1",
    repeats: Annotated[int, typer.Option(help="Suggestions of each, an even number.")] = 6,
) -> None:
    """Time suggestions: mean and 95th percentile, by the number of trials.

    Not the median: without a prior, fast and slow suggestions take turns.

    Example:

        dre-bench speed --dimensions 5,10,20,40 --trials 10,100,1000,3000 --threads 1,2
    """
    from dre_bench import speed as measured
    from dre_bench.samplers import split_specifications

    require(repeats >= 1, "--repeats", repeats, "at least 1")
    table = Table("sampler", "parameters", "trials", "threads", "mean, s", "95 %, s")
    chosen = split_specifications(samplers) if samplers else measured.SAMPLERS
    sizes = (
        numbers("--dimensions", dimensions),
        numbers("--trials", trials),
        numbers("--threads", threads),
    )
    found = measured.timings(chosen, *sizes, repeats)
    ours = None
    for timing in tracked(found, "suggesting", math.prod(map(len, (chosen, *sizes)))):
        table.add_row(
            timing.sampler,
            *map(str, (timing.dimension, timing.trials, timing.threads)),
            *(f"{seconds:.3f}" for seconds in (timing.mean, timing.late)),
        )
        if measured.is_comparable(timing):
            ours = timing.mean
    console().print(table)
    if ours is not None:
        paper = measured.paper_procedure_seconds(measured.PAPER_TRIALS)
        console().print(
            f"At {measured.PAPER_TRIALS} trials the paper's procedure fits for {paper:.1f} s, a "
            f"whole suggestion takes {ours:.3f} s: {paper / ours:.0f} times less."
        )


def calibration(
    scenarios: Annotated[str, typer.Option(help="Names of tables.")] = "mixed,branches",
    data: Annotated[
        Path | None, typer.Option(help="Folder with the scenarios of YAHPO Gym.")
    ] = None,
    prior: Annotated[str, typer.Option(help="shipped, a name or a path.")] = "",
    split: Annotated[str, typer.Option(help="train, validation or test.")] = "validation",
    tasks: Annotated[int, typer.Option(help="Tasks of each scenario.")] = 5,
    trials: Annotated[str, typer.Option(help="Numbers of trials to learn from.")] = "10,20,40,80",
) -> None:
    """Report how often true ranks lie within the intervals that are predicted for them.

    Example:

        dre-bench calibration --scenarios branin,hartmann6,mixed
    """
    from dre_bench import calibration as measured
    from dre_bench.runs import Sources
    from dre_bench.tasks import SPLITS, Split
    from dre_plugins.plots.calibration import INTERVALS

    require(tasks >= 1, "--tasks", tasks, "at least 1")
    require(bool(trials), "--trials", trials, "numbers separated by commas")
    require(split in SPLITS, "--split", split, f"one of {SPLITS}")
    covered = [f"in {interval:.0%}" for interval in INTERVALS]
    table = Table("tables", "trials", *covered, "factor")
    names, lengths = scenarios.split(","), numbers("--trials", trials)
    found = measured.coverages(
        Sources(data=data),
        names,
        lengths,
        split=cast(Split, split),
        prior=prior or None,
        n_tasks=tasks,
    )
    parts = [*tracked(found, "fitting", len(names) * len(lengths))]
    for coverage in [*parts, measured.pooled(parts)]:
        shares = [f"{share:.0%}" for share in coverage.covered]
        table.add_row(
            coverage.scenario, str(coverage.trials or "all"), *shares, f"{coverage.factor:.2f}"
        )
    console().print(table)


def scale(
    candidates: Annotated[int, typer.Option(help="Candidates to choose among.")] = 1_000_000,
    batches: Annotated[
        str, typer.Option(help="Lists that each member sees in one step.")
    ] = "1,16,256",
    tasks: Annotated[int, typer.Option(help="Past tasks to meta-train on.")] = 1000,
    evaluations: Annotated[int, typer.Option(help="Evaluations of each.")] = 1000,
    members: Annotated[int, typer.Option(help="Scorers of the ensemble.")] = 10,
    devices: Annotated[str, typer.Option(help="Without it: cpu, and cuda if there is one.")] = "",
) -> None:
    """Time the choice among many candidates, and steps of meta-training by batch.

    Of 16 parameters. On a CPU, seconds are those of one thread of the processor.

    Example:

        dre-bench scale --batches 1,16,256,4096 --tasks 20000
    """
    from dre_bench import scale as measured

    for option, number in (
        ("--candidates", candidates),
        ("--tasks", tasks),
        ("--evaluations", evaluations),
        ("--members", members),
    ):
        require(number >= 1, option, number, "at least 1")
    sizes = numbers("--batches", batches)
    require(all(size >= 1 for size in sizes), "--batches", batches, "at least 1")
    chosen = devices.split(",") if devices else measured.devices()
    for device in chosen:
        check_device(device)
    choice = Table("device", "candidates", "score, s", "rank, s", "choose, s", "memory, MB")
    for device in chosen:
        timed = measured.scoring(device, candidates, members)
        seconds = (f"{part:.3f}" for part in timed.seconds)
        choice.add_row(device, str(candidates), *seconds, f"{timed.memory / 1e6:.0f}")
    console().print(choice)
    speeds = Table("device", "batch", "ms a step", "lists/s", "memory, MB")
    for device in chosen:
        for row in measured.throughputs(device, sizes, members, tasks, evaluations):
            step, memory = f"{1e3 * row.step:.1f}", f"{row.memory / 1e6:.0f}"
            speeds.add_row(device, str(row.n_lists), step, f"{row.lists:.0f}", memory)
    console().print(speeds)
