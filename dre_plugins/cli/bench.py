"""`dre bench`: compare samplers, and report what came out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from dre_plugins.cli.checks import check_folder, needs
from dre_plugins.cli.console import console
from dre_plugins.engine.settings import require

bench = typer.Typer(no_args_is_help=True, help="Compare samplers; check what is claimed.")


@bench.command("suites")
def suites() -> None:
    """List the suites.

    Example:

        dre bench suites
    """
    from dre_plugins.benchmarks.suites import SUITES

    table = Table()
    table.add_column("name")
    table.add_column("purpose")
    table.add_column("samplers")
    for title in ("tasks", "seeds", "trials"):
        table.add_column(title, justify="right")
    table.add_column("data")
    for name, suite in SUITES.items():
        table.add_row(
            name,
            suite.purpose,
            ", ".join(suite.samplers),
            str(len(suite.scenarios) * suite.tasks_per_scenario),
            str(suite.seeds),
            str(suite.trials),
            "YAHPO Gym" if suite.needs_data else "none",
        )
    console().print(table)


@bench.command("run")
def run(
    suite: Annotated[str, typer.Option(help="Name of a suite, see dre bench suites.")] = "quick",
    out: Annotated[Path, typer.Option("-o", "--out", help="File of the runs.")] = Path(
        "runs.jsonl"
    ),
    data: Annotated[
        Path | None, typer.Option(help="Folder with the scenarios of YAHPO Gym.")
    ] = None,
    samplers: Annotated[str, typer.Option(help="Others than the suite's: random,tpe,dre:…")] = "",
    scenarios: Annotated[str, typer.Option(help="Others than the suite's: branin,botorch:…")] = "",
    trials: Annotated[int | None, typer.Option(help="Another length of the studies.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Another number of seeds.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes of one thread each.")] = 1,
    ray_address: Annotated[
        str | None, typer.Option(help="Address of a Ray cluster, or local to start one.")
    ] = None,
) -> None:
    """Run a suite. What is in the file already is not run again.

    Example:

        dre bench run --suite quick --jobs 2

        dre bench report runs.jsonl --html report.html
    """
    with needs("optuna", "bench"):
        from dre_plugins.benchmarks import quality
        from dre_plugins.benchmarks.suites import suite_of

    chosen = suite_of(suite)
    require(jobs >= 1, "--jobs", jobs, "at least 1")
    require(trials is None or trials >= 1, "--trials", trials, "at least 1")
    require(seeds is None or seeds >= 1, "--seeds", seeds, "at least 1")
    check_folder(out)
    # Set here because the workers inherit it, and numpy and torch read it when they are imported.
    os.environ.update(quality.ONE_THREAD)
    planned = quality.plan(
        data,
        samplers=quality.split_specifications(samplers) if samplers else chosen.samplers,
        scenarios=scenarios.split(",") if scenarios else chosen.scenarios,
        split=chosen.split,
        tasks_per_scenario=chosen.tasks_per_scenario,
        seeds=seeds or chosen.seeds,
        trials=trials or chosen.trials,
    )
    todo = quality.unfinished(planned, out)
    console().print(f"{len(todo)} runs to do, {len(planned) - len(todo)} done before, in {out}")
    n_failed = quality.execute(data, todo, out=out, jobs=jobs, ray_address=ray_address)
    if n_failed:
        raise ValueError(f"{n_failed} runs failed; their errors are in {out}.")
    console().print(f"Now: dre bench report {out} --html report.html")


@bench.command("report")
def report(
    runs: Annotated[list[Path], typer.Argument(help="Files of runs.")],
    html: Annotated[Path | None, typer.Option(help="Page with all of it, to be written.")] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Folder for all figures, as PNG and SVG.")
    ] = None,
    published: Annotated[
        Path | None, typer.Option(help="Published curves of HPO-B: a file, or a folder of them.")
    ] = None,
    against: Annotated[str, typer.Option(help="Sampler that others are compared with.")] = "",
    samplers: Annotated[str, typer.Option(help="Only these, separated by spaces.")] = "",
    checkpoints: Annotated[str, typer.Option(help="Numbers of trials: 10,20,50.")] = "",
) -> None:
    """Report regret, ranks and significance: as text, and as a page that needs no network.

    Example:

        dre bench report runs.jsonl --html report.html
    """
    with needs("optuna", "bench"):
        from dre_plugins.benchmarks import report as reports

    options = {
        "--html": html,
        "--figures": figures,
        "--published": published,
        "--against": against,
        "--samplers": samplers,
        "--checkpoints": checkpoints,
    }
    given = [text for name, value in options.items() if value for text in (name, str(value))]
    reports.main([*map(str, runs), *given])
    if html is not None:
        console().print(f"Page: {html}")
