"""Tables, figures and a page of benchmark runs: ``python -m dre_plugins.benchmarks.report FILE``.

    python -m dre_plugins.benchmarks.report runs.jsonl --html report.html --figures figures
    python -m dre_plugins.benchmarks.report hpob.jsonl --published FOLDER --html report.html

Prints Markdown; files are of `benchmarks.quality` (and those that write the same), of
`benchmarks.table`, or of `benchmarks.hpob` with published curves beside them (see
`benchmarks.published`). Definitions, for one task with values that are maximised:

    normalised regret  (best - x) / (best - median) of the best value x so far. ``best`` is the
                       highest value known for the task, over all runs given and the random sample
                       of 2000 configurations that every run records; ``median`` is that sample's.
                       0 is as good as anything known, 1 is what half of random search reaches at
                       its first trial. Means go over seeds and tasks alike. For tables and HPO-B
                       it is the distance to the best of the table, as a share of its range.
    rank               place among the samplers of the same (scenario, task, seed), 1 = best, ties
                       share their mean place; averaged.
    win/tie/loss       over tasks, by the mean regret over seeds, against one named sampler; p is
                       that of a two-sided Wilcoxon signed-rank test over the same differences,
                       adjusted by Holm for the number of samplers compared with the named one.
    area               mean regret over all trials.
    stagnating         share of runs that end above a regret of 0.02 and did not improve in their
                       last 20 trials.
    ask                median seconds of a suggestion after the start-up trials.

Only (scenario, task, seed) that every sampler finished are compared. Regret depends on the runs
that are given together, through ``best``.
"""

from __future__ import annotations

import argparse
import platform
import shlex
import sys
from collections import defaultdict
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import dre_plugins
from dre_plugins.benchmarks import published
from dre_plugins.benchmarks.quality import Record, read_records, run_of
from dre_plugins.benchmarks.results import Results, collect, collect_tables
from dre_plugins.benchmarks.summary import Analysis, overview

__all__ = ["Results", "collect", "load", "main", "markdown"]

PACKAGES = {
    "matplotlib": ("matplotlib", "plots"),
    "scikit-posthocs": ("scikit_posthocs", "bench"),
}
"""What figures need: the name that is imported, and the extra that has it."""

SEED = 0
"""Of the bootstrap, so that a report can be repeated."""


def load(
    files: Sequence[Path],
    curves: Sequence[Path] = (),
    samplers: Sequence[str] = (),
) -> tuple[Results, list[Record]]:
    """Read runs and pair them.

    Args:
        files: Runs files, all of `benchmarks.quality`, of `benchmarks.table` or of
            `benchmarks.hpob`.
        curves: Published result curves of HPO-B: files, or folders of them.
        samplers: Only these; all by default.

    Returns:
        The paired runs, and the records that they are from.

    Raises:
        ValueError: If a file is missing or cannot be read, if there is nothing to compare, or if
            runs of different protocols are given together.
    """
    for path in (*files, *curves):
        if not path.exists():
            raise ValueError(f"{path} does not exist.")
    records = [record for path in files for record in read_records(path)]
    kinds = {_kind(record) for record in records} | ({"hpob"} if curves else set())
    if len(kinds) > 1:
        raise ValueError(
            f"the runs are of different protocols ({', '.join(sorted(kinds))}), whose regrets are "
            "on different scales; report on each apart."
        )
    if kinds == {"hpob"}:
        sources = [published.own_curves(records), *map(published.load_published, curves)]
        chosen = [
            {name: runs for name, runs in source.items() if not samplers or name in samplers}
            for source in sources
        ]
        return published.combined(*chosen), records
    name = "method" if kinds == {"table"} else "sampler"
    of_samplers = [record for record in records if not samplers or record[name] in samplers]
    return (collect_tables if kinds == {"table"} else collect)(of_samplers), records


def markdown(results: Results, against: str, checkpoints: Sequence[int] | None = None) -> str:
    """The report as Markdown tables, for all scenarios together and for each."""
    checkpoints = checkpoints or _fitting(results)
    parts = [("All scenarios", results)]
    if len(results.scenarios) > 1:
        parts += [(name, results.of_scenario(name)) for name in results.scenarios]
    return "\n\n".join(_section(title, part, against, checkpoints) for title, part in parts)


def main(arguments: Sequence[str] | None = None) -> None:
    """Report on runs files from the command line."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not (options.runs or options.published):
        parser.error("give runs files, or --published")
    needed = ["matplotlib"] if options.plot or options.figures or options.html else []
    needed += ["scikit-posthocs"] if options.figures or options.html else []
    for name in needed:
        module, extra = PACKAGES[name]
        if find_spec(module) is None:
            parser.error(f"figures need {name}: pip install 'dre-plugins[{extra}]'")
    try:
        chosen = options.samplers.split() if options.samplers else ()
        results, records = load(options.runs, options.published, chosen)
        checkpoints = _checkpoints(results, options.checkpoints)
    except ValueError as error:
        parser.error(str(error))
    against = options.against or results.samplers[0]
    if against not in results.samplers:
        parser.error(f"--against {against}: the runs are of {', '.join(results.samplers)}")

    print(markdown(results, against, checkpoints))
    left_out = _left_out(records, results)
    if left_out:
        print(f"\n{left_out}")
    if options.plot:
        _plot(results, options.plot)
    if options.figures or options.html:
        command = _command(parser.prog, arguments)
        analysis = Analysis.of(results, against, checkpoints, np.random.default_rng(SEED))
        _write(analysis, options.html, options.figures, command, _versions(records), left_out)


def _kind(record: Record) -> str:
    """Return which benchmark a record is of."""
    if "space" in record:
        return "hpob"
    return "table" if "method" in record else "studies"


def _write(
    analysis: Analysis,
    html: Path | None,
    folder: Path | None,
    command: str,
    versions: dict[str, str],
    left_out: str,
) -> None:
    # Here, because a report in Markdown needs no Matplotlib.
    from dre_plugins.benchmarks import figures, page

    drawn = figures.draw_all(analysis)
    if folder:
        figures.save(drawn, folder)
    if html:
        html.parent.mkdir(parents=True, exist_ok=True)
        content = page.render(
            analysis, drawn, command=command, versions=versions, left_out=left_out
        )
        html.write_text(content, encoding="utf-8")


def _plot(results: Results, path: Path) -> None:
    from dre_plugins.benchmarks import figures

    figures.scenario_curves(results).savefig(path, dpi=120)


def _fitting(results: Results) -> list[int]:
    """The usual checkpoints, as far as the runs reach; or their end."""
    last = int(results.steps[-1])
    return [n for n in results.protocol.checkpoints if n <= last] or [last]


def _checkpoints(results: Results, text: str | None) -> list[int]:
    if text is None:
        return _fitting(results)
    try:
        wanted = sorted({int(part) for part in text.split(",")})
    except ValueError as error:
        raise ValueError(
            f"--checkpoints must be numbers separated by commas, got {text!r}."
        ) from error
    # As ever, those beyond the end are left out.
    chosen = [n for n in wanted if n <= results.steps[-1]]
    if not chosen:
        last = f"{results.steps[-1]} {results.protocol.step}"
        raise ValueError(f"--checkpoints {text}: the runs end after {last}.")
    results.index_of(chosen)
    return chosen


def _section(title: str, results: Results, against: str, checkpoints: Sequence[int]) -> str:
    table = overview(results, against, checkpoints)
    lines = [table.head, ["---"] * len(table.head), *table.rows]
    n_tasks, n_runs = len(results.tasks), len(results.keys)
    return f"### {title}: {n_tasks} tasks, {n_runs} runs a sampler\n\n" + "\n".join(
        f"| {' | '.join(line)} |" for line in lines
    )


def _left_out(records: Sequence[Record], results: Results) -> str:
    """Say which records of studies were not compared."""
    own = [record for record in records if record.get("sampler") in results.samplers]
    finished = {run_of(record) for record in own if "error" not in record}
    n_failed = len({run_of(record) for record in own} - finished)
    n_unpaired = len(finished) - len(results.samplers) * len(results.keys) if own else 0
    if not (n_failed or n_unpaired):
        return ""
    return f"Left out: {n_failed} failed runs, {n_unpaired} runs without their pair."


def _versions(records: Sequence[Record]) -> dict[str, str]:
    """Versions of packages: in the runs, where they are recorded, and of the report."""
    of_runs = defaultdict[str, set[str]](set)
    for record in records:
        for name, one in record.get("versions", {}).items():
            of_runs[f"{name} (runs)"].add(one)
    of_report = {
        "dre_plugins (report)": dre_plugins.__version__,
        "python (report)": platform.python_version(),
        **{
            f"{name} (report)": version(name)
            for name in ("numpy", "scipy", "matplotlib", "scikit-posthocs")
        },
    }
    return {name: ", ".join(sorted(found)) for name, found in of_runs.items()} | of_report


def _command(program: str, arguments: Sequence[str] | None) -> str:
    given = sys.argv[1:] if arguments is None else arguments
    return f"{program} {shlex.join(given)}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m dre_plugins.benchmarks.report",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", type=Path, nargs="*", help="JSONL files of benchmark runs")
    parser.add_argument(
        "--published",
        type=Path,
        nargs="+",
        default=[],
        help="published curves of HPO-B: files, or folders of them",
    )
    parser.add_argument("--samplers", help="only these: specifications, separated by spaces")
    parser.add_argument("--against", help="sampler that the others are compared with")
    parser.add_argument(
        "--checkpoints",
        help="numbers of trials to report at, separated by commas; default: 20,30,50, for HPO-B "
        "5,10,25,50,75,100",
    )
    parser.add_argument("--plot", type=Path, help="PNG file of the curves, to be written")
    parser.add_argument("--figures", type=Path, help="folder for all figures, as PNG and SVG")
    parser.add_argument("--html", type=Path, help="page with all of it, to be written")
    return parser


if __name__ == "__main__":
    main()
