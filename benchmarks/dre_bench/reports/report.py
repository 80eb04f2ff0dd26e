"""Reports of benchmark runs: `dre-bench report FILES…`.

Files hold records of `dre-bench run`, also of several problems and suites; each problem is a part
of the report. Only (scenario, task, seed) that every sampler finished are compared; scenarios that
other samplers have run, or runs of another length, are parts of their own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields
from pathlib import Path

from rich.table import Table as RichTable

from dre_bench.problems.catalogue import PROBLEMS, problem_of
from dre_bench.reports import page, real_studies, tables
from dre_bench.reports.part import Part, Report
from dre_bench.reports.real_studies import Paired
from dre_bench.reports.results import (
    Analysis,
    Results,
    best_known,
    collect,
    collect_tables,
    comparable,
    finished,
)
from dre_bench.runs import MAXIMISE, Record, Run, read_records, run_of

STUDIES = (MAXIMISE, "ray", "syne-tune")
"""Problems that differ only in what runs the study: they share the best values known."""
TABLES = "table"
OURS = ("dre", "ablation:default")
"""Ours at its defaults: what others are compared with."""
MANY_SCENARIOS = 4
"""More of them are not listed in a heading."""
REQUIRED = [field.name for field in fields(Run) if field.default is MISSING]

Contents = list[tuple[str, Results | Paired]]
"""Problems, and runs of them that can be compared."""


def load(
    files: Sequence[Path],
    *,
    samplers: Sequence[str] = (),
    problem: str | None = None,
    scenario: str | None = None,
    against: str | None = None,
    checkpoints: Sequence[int] = (),
) -> Report:
    """Read runs, pair them, and compare them.

    Args:
        files: Files of runs.
        samplers: Only these; all by default.
        problem: Only this one.
        scenario: Only this one.
        against: The sampler that others are compared with; by default, and in parts that do not
            have it, ours at its defaults, or the first one.
        checkpoints: Numbers of trials to report at; each part takes those that it reaches, or its
            end.

    Raises:
        ValueError: If a file is missing or cannot be read, if there is nothing to compare, or if
            nothing is of what was named.
    """
    for path in files:
        if not path.exists():
            raise ValueError(f"{path} does not exist.")
    records = [record for path in files for record in _records(path)]
    if not records:
        given = ", ".join(map(str, files))
        raise ValueError(f"no (scenario, task, seed) to compare: there are no runs in {given}.")
    wanted = {"sampler": samplers, "problem": [problem or ""], "scenario": [scenario or ""]}
    for field, names in wanted.items():
        there = {record[field] for record in records}
        if missing := [name for name in names if name and name not in there]:
            choices = ", ".join(sorted(there))
            raise ValueError(f"nothing is of the {field} {missing[0]!r}, only of {choices}.")
    everything = finished(records)
    records = [r for r in records if all(r[f] in v or not any(v) for f, v in wanted.items())]
    contents = _contents(finished(records), checkpoints, everything)
    if not contents:
        raise ValueError("no (scenario, task, seed) was finished by every sampler.")
    compared = dict.fromkeys(name for _, content in contents for name in content.samplers)
    if against and against not in compared:
        raise ValueError(f"against must be among {', '.join(compared)}, got {against!r}.")
    return Report(
        tuple(_parts(contents, against, checkpoints)),
        tuple(_left_out(records, contents)),
        _versions(records),
    )


def text(report: Report) -> str:
    """Return a report as Markdown tables, for all scenarios of a part together and for each."""
    found = []
    for part in report.parts:
        if len(report.parts) > 1:
            found.append(f"## {part.title}")
        found += [tables.markdown(title, table) for title, table in part.tables.items()]
    return "\n\n".join([*found, *report.left_out])


def for_terminal(report: Report) -> Iterator[RichTable | str]:
    """Yield what `text` says, as tables to print."""
    for part in report.parts:
        if len(report.parts) > 1:
            yield part.title
        for title, table in part.tables.items():
            yield tables.for_terminal(title, table)
    yield from report.left_out


def write(
    report: Report, *, command: str, html: Path | None = None, figures: Path | None = None
) -> None:
    """Write a report as a page and as figures.

    Args:
        report: What to write.
        command: What made it, to be repeated.
        html: The page.
        figures: Folder for all figures, as PNG and SVG.

    Raises:
        ValueError: If there are no curves to draw.
    """
    # Here, because Matplotlib takes its time, and a report as text needs none.
    from dre_bench.reports import figures as drawing

    curves = {part.prefix(report.parts): part.curves for part in report.parts if part.curves}
    if figures and not curves:
        raise ValueError("figures are of curves, but real studies have tables only: see --html.")
    if not (html or figures):
        return
    drawn = {
        prefix + name: figure
        for prefix, analysis in curves.items()
        for name, figure in drawing.draw_all(analysis.results).items()
    }
    if figures:
        drawing.save(drawn, figures)
    if html:
        html.parent.mkdir(parents=True, exist_ok=True)
        html.write_text(page.render(report, drawn, command), encoding="utf-8")


def _records(path: Path) -> Iterator[Record]:
    """Read a file.

    Raises:
        ValueError: If a record is of another program, or its problem is not known.
    """
    for record in read_records(path):
        if missing := [name for name in REQUIRED if name not in record]:
            raise ValueError(
                f"{path}: a record has no {missing[0]!r}; expected records of dre-bench run."
            )
        # The first files did not say which problem theirs was.
        record = {"problem": MAXIMISE, **record}
        problem_of(str(record["problem"]))
        yield record


def _contents(
    records: Sequence[Record], checkpoints: Sequence[int], everything: Sequence[Record]
) -> Contents:
    """Pair finished runs, in the order of the problems.

    Which of them are reported must not change the scale: that is of everything.
    """
    of_problem = defaultdict[str, list[Record]](list)
    for record in records:
        of_problem[record["problem"]].append(record)
    found: Contents = []
    best = best_known([record for record in everything if record["problem"] in STUDIES])
    for problem in STUDIES:
        found += [(problem, collect(group, best)) for group in comparable(of_problem[problem])]
    found += [(TABLES, collect_tables(group)) for group in comparable(of_problem[TABLES])]
    real, all_real = (
        [record for record in given if record["problem"] not in (*STUDIES, TABLES)]
        for given in (records, everything)
    )
    found += [(pair.problem, pair) for pair in real_studies.collect(real, checkpoints, all_real)]
    order = [*PROBLEMS]
    return sorted(found, key=lambda content: order.index(content[0]))


def _parts(contents: Contents, against: str | None, checkpoints: Sequence[int]) -> Iterator[Part]:
    n_parts, numbers = Counter(problem for problem, _ in contents), Counter[str]()
    for problem, content in contents:
        numbers[problem] += 1
        is_only = n_parts[problem] == 1
        name = problem if is_only else f"{problem} ({numbers[problem]})"
        about = "" if is_only else _about(content)
        rivals = (rival for rival in (against, *OURS) if rival in content.samplers)
        rival = next(rivals, content.samplers[0])
        shown, analysis = {}, None
        if isinstance(content, Results):
            last = int(content.regret.columns[-1])
            steps = tables.reached(checkpoints or content.protocol.checkpoints, last)
            analysis = Analysis(content, rival, steps)
            shown = _tables(analysis)
        else:
            shown = real_studies.tables(content, rival)
        yield Part(name, about, shown, analysis, problem_of(problem).purpose)


def _about(content: Results | Paired) -> str:
    scenarios = sorted({key[0] for key in content.keys})
    if len(scenarios) > MANY_SCENARIOS:
        scenarios = [f"{len(scenarios)} scenarios"]
    if isinstance(content, Results):
        scenarios.append(f"{content.regret.columns[-1]} {content.protocol.step}")
    return ", ".join(scenarios)


def _tables(analysis: Analysis) -> dict[str, tables.Table]:
    results = analysis.results
    found = {"All scenarios": results}
    if len(results.scenarios) > 1:
        found |= {name: results.of_scenario(name) for name in results.scenarios}
    return {
        f"{title}: {tables.size(part.keys)}": tables.overview(
            part, analysis.against, analysis.checkpoints
        )
        for title, part in found.items()
    }


def _left_out(records: Sequence[Record], contents: Contents) -> Iterator[str]:
    """Say how many runs of each problem were not compared."""
    for problem in dict.fromkeys(record["problem"] for record in records):
        runs = [record for record in records if record["problem"] == problem]
        done = finished(runs)
        ours = {record["sampler"] for record in done}
        n_compared = sum(
            len(ours & {*content.samplers}) * len(content.keys)
            for name, content in contents
            if name == problem
        )
        n_failed = len({run_of(record) for record in runs}) - len(done)
        n_unpaired = len(done) - n_compared
        if n_failed or n_unpaired:
            yield (
                f"Left out of {problem}: {n_failed} failed runs, "
                f"{n_unpaired} runs without their pair."
            )


def _versions(records: Sequence[Record]) -> dict[str, str]:
    found = defaultdict[str, set[str]](set)
    for record in records:
        for name, version in record.get("versions", {}).items():
            found[name].add(version)
    return {name: ", ".join(sorted(versions)) for name, versions in found.items()}
