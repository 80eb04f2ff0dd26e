"""`dre-bench`: compare samplers, and report what came out."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.table import Table

from dre_bench.measuring import calibration, numbers, scale, speed
from dre_bench.names import entry_of
from dre_bench.replays.command import evaluate
from dre_plugins.checks import require
from dre_plugins.cli.console import console, printable, tracked
from dre_plugins.cli.errors import command_line
from dre_plugins.cli.options import PRIOR_FILES, check_folder, check_machine, check_writable

app = command_line(
    "dre-bench",
    """Compare samplers; check what is claimed.

    dre-bench run --suite quick --jobs 2

    dre-bench report runs.jsonl --html report.html
    """,
)


def main() -> None:
    """Run the command line."""
    app(prog_name="dre-bench")


@app.command("suites")
def suites() -> None:
    """List the suites.

    Example:

        dre-bench suites
    """
    from dre_bench.problems.catalogue import problem_of
    from dre_bench.suites import SUITES

    table = Table()
    table.add_column("name", no_wrap=True)
    table.add_column("purpose")
    table.add_column("samplers")
    table.add_column("data", no_wrap=True)
    for name, suite in SUITES.items():
        samplers = suite.samplers or tuple(
            dict.fromkeys(
                sampler for part in suite.problems for sampler in problem_of(part).samplers
            )
        )
        table.add_row(name, suite.purpose, ", ".join(samplers), suite.needs or "none")
    console().print(table)


@app.command("problems")
def problems() -> None:
    """List the problems that suites are made of.

    Example:

        dre-bench problems
    """
    from dre_bench.problems.catalogue import PROBLEMS

    table = Table()
    for title in ("name", "purpose", "samplers"):
        table.add_column(title, no_wrap=title == "name")
    table.add_column("trials", justify="right")
    for name, problem in PROBLEMS.items():
        table.add_row(name, problem.purpose, ", ".join(problem.samplers), str(problem.trials))
    console().print(table)


@app.command("run")
def run(
    suite: Annotated[str, typer.Option(help="Name of a suite, see dre-bench suites.")] = "quick",
    out: Annotated[Path, typer.Option("--output", "-o", help="File of the runs.")] = Path(
        "runs.jsonl"
    ),
    data: Annotated[
        Path | None, typer.Option(help="Folder with the scenarios of YAHPO Gym.")
    ] = None,
    hpob: Annotated[Path | None, typer.Option(help="Folder with the files of HPO-B.")] = None,
    environments: Annotated[
        Path | None, typer.Option(help="Folder with environments of rivals: ax/bin/python, …")
    ] = None,
    problems: Annotated[str, typer.Option(help="Others than the suite's: asha,table,…")] = "",
    samplers: Annotated[str, typer.Option(help="Others than the suite's: random,tpe,dre:…")] = "",
    scenarios: Annotated[str, typer.Option(help="Others than the suite's: branin,botorch:…")] = "",
    split: Annotated[
        str, typer.Option(help="Other tasks than the suite's: train, validation or test.")
    ] = "",
    tasks: Annotated[int | None, typer.Option(help="Tasks of each scenario.")] = None,
    trials: Annotated[int | None, typer.Option(help="Another length of the studies.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Another number of seeds.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes of one thread each.")] = 1,
) -> None:
    """Run a suite. What is in the file already is not run again.

    Example:

        dre-bench run --suite quick --jobs 2

        dre-bench report runs.jsonl --html report.html
    """
    from dre_bench import runs
    from dre_bench.problems import catalogue
    from dre_bench.samplers import split_specifications
    from dre_bench.suites import SUITES
    from dre_bench.tasks import SPLITS

    chosen = entry_of(SUITES, "suite", suite)
    require(jobs >= 1, "--jobs", jobs, "at least 1")
    for option, number in (("--tasks", tasks), ("--trials", trials), ("--seeds", seeds)):
        require(number is None or number >= 1, option, number, "at least 1")
    require(split in ("", *SPLITS), "--split", split, f"one of {', '.join(SPLITS)}")
    named = problems.split(",") if problems else chosen.problems
    check_folder(out)
    # Set here because the workers inherit it, and numpy and torch read it when they are imported.
    os.environ.update(runs.ONE_THREAD)
    sources = runs.Sources(
        data=data and data.resolve(),
        hpob=hpob and hpob.resolve(),
        priors=out.resolve().with_suffix(".priors"),
        environments=environments and environments.resolve(),
    )
    planned = catalogue.plan(
        sources,
        named,
        samplers=split_specifications(samplers) if samplers else chosen.samplers,
        scenarios=scenarios.split(",") if scenarios else chosen.scenarios,
        split=cast(Any, split) or chosen.split,
        tasks_per_scenario=tasks or chosen.tasks_per_scenario,
        seeds=seeds or chosen.seeds,
        trials=trials or chosen.trials,
    )
    missing = catalogue.missing_libraries(planned, sources.environments)
    for (problem, sampler), library in missing.items():
        console().print(f"Skipped {sampler} of {problem}: pip install {library}")
    planned = [run for run in planned if (run.problem, run.sampler) not in missing]
    catalogue.check_samplers(planned)
    todo = runs.unfinished(planned, out)
    console().print(f"{len(todo)} runs to do, {len(planned) - len(todo)} done before, in {out}")
    n_failed = runs.execute(catalogue.study, sources, todo, out=out, jobs=jobs)
    if n_failed:
        raise ValueError(f"{n_failed} runs failed; their errors are in {out}.")
    console().print(f"Now: dre-bench report {out} --html report.html")


@app.command("import-hpob")
def import_hpob(
    folder: Annotated[Path, typer.Argument(help="The folder hpob-data, or one of its tables.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder to write to, one .npz a search space.")
    ],
    split: Annotated[str, typer.Option(help="Tables: train, validation or test.")] = "train",
    space: Annotated[
        list[str] | None,
        typer.Option(help="Number of a search space; repeat it for several. Without it: all."),
    ] = None,
) -> None:
    """Write the tables of HPO-B as past tasks, which dre meta-train and dre-bench evaluate take.

    Example:

        dre-bench import-hpob hpob-data --space 5970 -o tasks
    """
    from dre_bench.hpob_files import load_hpob

    by_space = load_hpob(folder, split=cast(Any, split), spaces=space or None)
    output.mkdir(parents=True, exist_ok=True)
    for name, metadata in by_space.items():
        metadata.save(output / f"{name}.npz")
        console().print(f"{metadata.summary()}\nwritten to {output / name}.npz", soft_wrap=True)


@app.command("train-universal")
def train_universal(
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write: .safetensors.")],
    steps: Annotated[int, typer.Option(help="Steps of the training.")] = 600,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal results.")] = 0,
    device: Annotated[str, typer.Option(help="Where to meta-train: cpu, cuda, …")] = "cpu",
    threads: Annotated[int, typer.Option(help="Threads of the CPU.")] = 1,
) -> None:
    """Meta-train a universal prior on synthetic tasks, as the package ships one.

    Example:

        dre-bench train-universal -o universal.safetensors --seed 0
    """
    check_writable(output, PRIOR_FILES)
    check_machine(seed, device, threads)
    from dre_bench.universal import training
    from dre_plugins.engine.runtime import isolated
    from dre_plugins.universal.network import UniversalSettings

    settings, size = training.UniversalTrainingSettings(n_steps=steps), UniversalSettings()
    with isolated("cpu", threads):
        prior = training.meta_train_universal(
            size,
            settings,
            seed=seed,
            device=device,
            progress=lambda numbers: tracked(numbers, "meta-training", len(numbers)),
        )
        lessons = training.validation_lessons()
        untrained = training.initial(size, seed)
        loss, before = (training.validated(network, lessons) for network in (prior, untrained))
    training.save(prior, output, f"dre-bench train-universal --steps {steps} --seed {seed}")
    console().print(
        f"{steps} steps: minus the log density of answers on {len(lessons)} lessons that were "
        f"not trained on is {loss:.3f}; {before:.3f} before.\nwritten to {output}",
        soft_wrap=True,
    )


@app.command("report")
def report(
    runs: Annotated[list[Path], typer.Argument(help="Files of runs.")],
    html: Annotated[Path | None, typer.Option(help="Page with all of it, to be written.")] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Folder for all figures, as PNG and SVG.")
    ] = None,
    against: Annotated[str, typer.Option(help="Sampler that others are compared with.")] = "",
    samplers: Annotated[str, typer.Option(help="Only these: random,tpe,dre:…")] = "",
    problem: Annotated[str, typer.Option(help="Only this problem.")] = "",
    scenario: Annotated[str, typer.Option(help="Only this scenario.")] = "",
    checkpoints: Annotated[str, typer.Option(help="Numbers of trials: 10,20,50.")] = "",
) -> None:
    """Report regret, ranks and significance: as text, and as a page that needs no network.

    Each problem is a part of it. The page says what all terms mean. A terminal gets tables to look
    at, a file or a pipe gets them as Markdown.

    Example:

        dre-bench report runs.jsonl --html report.html
    """
    from dre_bench.reports import report as reports
    from dre_bench.samplers import split_specifications

    made = reports.load(
        runs,
        samplers=split_specifications(samplers) if samplers else (),
        problem=problem or None,
        scenario=scenario or None,
        against=against or None,
        checkpoints=numbers("--checkpoints", checkpoints),
    )
    if console().is_terminal:
        for part in reports.for_terminal(made):
            console().print(part)
    else:
        typer.echo(printable(reports.text(made)))
    options = [
        ("--html", html),
        ("--figures", figures),
        ("--against", against),
        ("--samplers", samplers),
        ("--problem", problem),
        ("--scenario", scenario),
        ("--checkpoints", checkpoints),
    ]
    given = [part for name, value in options if value for part in (name, str(value))]
    command = shlex.join(["dre-bench", "report", *map(str, runs), *given])
    reports.write(made, command=command, html=html, figures=figures)
    if html is not None:
        console().print(f"Page: {html}")


for measure in (speed, calibration, scale, evaluate):
    app.command()(measure)


if __name__ == "__main__":
    main()
