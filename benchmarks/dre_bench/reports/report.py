"""Reports of benchmark runs: `dre-bench report FILES…`.

Files hold records of `dre-bench run`, also of several problems and suites; each problem is a part
of the report. Only (scenario, task, seed) that every sampler finished are compared; scenarios that
other samplers have run, or runs of another length, are parts of their own. What regret, ranks and
tests are is said in `results`, `real_studies`, `statistics` and at the end of a page.
"""

from __future__ import annotations

import platform
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

from rich.table import Table as RichTable

import dre_plugins
from dre_bench.problems.catalogue import PROBLEMS, problem_of
from dre_bench.reports import figures as drawing
from dre_bench.reports import page, published, real_studies, tables
from dre_bench.reports.part import Part, prefixes
from dre_bench.reports.published import Curves
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
from dre_bench.reports.tables import Table, count, markdown, overview, reached
from dre_bench.runs import MAXIMISE, Record, Run, read_records, run_of

STUDIES = (MAXIMISE, "ray", "syne-tune")
"""Problems that differ only in what runs the study: they share the best values known."""
TABLES = "table"
WORKERS = ("async-8", "async-1")
OURS = ("dre", "ablation:default")
"""Ours at its defaults: what others are compared with."""

ASYNCHRONY = "Loss from asynchrony: 8 workers against 1"
MANY_SCENARIOS = 4
"""More of them are not listed in a heading."""
REQUIRED = [one.name for one in fields(Run) if one.default is MISSING]
PACKAGES = ("numpy", "scipy", "pandas", "matplotlib", "scikit-posthocs")

Content: TypeAlias = "tuple[str, Results | Paired]"
"""A problem, and runs of it that can be compared."""


@dataclass(frozen=True)
class Report:
    """What is said about some files.

    Attributes:
        parts: In the order of the problems.
        left_out: Which runs were not compared, a sentence for each problem.
        versions: Of packages in the runs, by name.
    """

    parts: tuple[Part, ...]
    left_out: tuple[str, ...]
    versions: Mapping[str, str]


def load(
    files: Sequence[Path],
    curves: Sequence[Path] = (),
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
        curves: Published result curves of HPO-B: files, or folders of them.
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
    for path in (*files, *curves):
        if not path.exists():
            raise ValueError(f"{path} does not exist.")
    records = [record for path in files for record in _records(path)]
    sources: list[Curves] = [published.load_published(path) for path in curves]
    wanted = {
        "sampler": samplers,
        "problem": [problem] if problem else [],
        "scenario": [scenario] if scenario else [],
    }
    _check_known(wanted, records, sources)
    known = finished(records)
    records = [one for one in records if all(one[k] in v for k, v in wanted.items() if v)]
    sources = [published.chosen(source, samplers, scenario) for source in sources]
    contents = _contents(finished(records), sources, checkpoints, known)
    if not contents:
        raise ValueError("no (scenario, task, seed) was finished by every sampler.")
    names = dict.fromkeys(name for _, one in contents for name in one.samplers)
    if against and against not in names:
        raise ValueError(f"against must be among {', '.join(names)}, got {against!r}.")
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
        found += [markdown(title, table) for title, table in part.tables.items()]
    return "\n\n".join([*found, *report.left_out])


def for_terminal(report: Report) -> Iterator[RichTable | str]:
    """Yield what `text` says, part by part, as tables to print."""
    for part in report.parts:
        if len(report.parts) > 1:
            yield part.title
        for title, table in part.tables.items():
            yield tables.for_terminal(title, table)
    yield from report.left_out


def write(
    report: Report,
    *,
    command: str,
    html: Path | None = None,
    figures: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Write a report as figures and as a page.

    Args:
        report: What to write.
        command: What made it, to be repeated.
        html: The page.
        figures: Folder for all figures, as PNG and SVG.
        plot: File of the curves of each scenario; of each part, where there are several.

    Raises:
        ValueError: If there are no curves to draw.
    """
    prefix = prefixes(report.parts)
    curves = {part.name: part.curves for part in report.parts if part.curves}
    if (figures or plot) and not curves:
        raise ValueError("figures are of curves, but real studies have tables only: see --html.")
    drawn = {}
    if html or figures:
        drawn = {name: drawing.draw_all(analysis) for name, analysis in curves.items()}
    if figures:
        for name, of_part in drawn.items():
            drawing.save(of_part, figures, prefix[name])
    if plot:
        plot.parent.mkdir(parents=True, exist_ok=True)
        for name, analysis in curves.items():
            file = plot.with_name(prefix[name] + plot.name)
            drawing.scenario_curves(analysis.results).savefig(file, dpi=120)
    if html:
        html.parent.mkdir(parents=True, exist_ok=True)
        content = page.render(
            report.parts,
            drawn,
            command=command,
            versions={**report.versions, **_own_versions()},
            left_out=report.left_out,
        )
        html.write_text(content, encoding="utf-8")


def _records(path: Path) -> Iterator[Record]:
    """Read a file.

    Raises:
        ValueError: If a record is of another program, or its problem is not known.
    """
    for record in read_records(path):
        missing = [name for name in REQUIRED if name not in record]
        if missing:
            raise ValueError(
                f"{path}: a record has no {missing[0]!r}; expected records of dre-bench run."
            )
        # The first files did not say which problem theirs was.
        record = {"problem": MAXIMISE, **record}
        problem_of(str(record["problem"]))
        yield record


def _check_known(
    wanted: Mapping[str, Sequence[str]], records: Sequence[Record], sources: Sequence[Curves]
) -> None:
    """Raise a ValueError if something is wanted that nothing is of."""
    curves = [(name, key) for source in sources for name, runs in source.items() for key in runs]
    known = {
        "sampler": {name for name, _ in curves},
        "problem": {TABLES} if curves else set(),
        "scenario": {published.PREFIX + key[0] for _, key in curves},
    }
    for field, names in wanted.items():
        there = known[field] | {record[field] for record in records}
        missing = [name for name in names if name not in there]
        if missing:
            raise ValueError(
                f"nothing is of the {field} {missing[0]!r}, only of {', '.join(sorted(there))}."
            )


def _contents(
    records: Sequence[Record],
    sources: Sequence[Curves],
    checkpoints: Sequence[int],
    known: Sequence[Record],
) -> list[Content]:
    """Pair finished runs, in the order of the problems.

    Which of them are reported must not change the scale: that is of all that are `known`.
    """
    of_problem = defaultdict[str, list[Record]](list)
    for one in records:
        of_problem[one["problem"]].append(one)
    found: list[Content] = []
    best = best_known([one for one in known if one["problem"] in STUDIES])
    for problem in STUDIES:
        found += [(problem, collect(group, best)) for group in comparable(of_problem[problem])]
    tables = of_problem[TABLES]
    if sources:
        own = [one for one in tables if one["scenario"].startswith(published.PREFIX)]
        tables = [one for one in tables if not one["scenario"].startswith(published.PREFIX)]
        found.append((TABLES, published.combined(published.own_curves(own), *sources)))
    found += [(TABLES, collect_tables(group)) for group in comparable(tables)]
    real, real_known = (
        [one for one in given if one["problem"] not in (*STUDIES, TABLES)]
        for given in (records, known)
    )
    found += [(one.problem, one) for one in real_studies.collect(real, checkpoints, real_known)]
    order = [*PROBLEMS]
    return sorted(found, key=lambda content: order.index(content[0]))


def _parts(
    contents: Sequence[Content], against: str | None, checkpoints: Sequence[int]
) -> Iterator[Part]:
    n_parts = Counter(problem for problem, _ in contents)
    numbers = Counter[str]()
    for problem, one in contents:
        numbers[problem] += 1
        is_alone = n_parts[problem] == 1
        name = problem if is_alone else f"{problem} ({numbers[problem]})"
        about = "" if is_alone else _about(one)
        purpose = problem_of(problem).purpose
        named = (name for name in (against, *OURS) if name in one.samplers)
        rival = next(named, one.samplers[0])
        if isinstance(one, Results):
            steps = reached(checkpoints or one.protocol.checkpoints, int(one.regret.columns[-1]))
            analysis = Analysis(one, rival, steps)
            yield Part(name, about, _tables(analysis), analysis, purpose)
        else:
            tables = real_studies.tables(one, rival) | _asynchrony(one, contents)
            yield Part(name, about, tables, purpose=purpose)


def _about(one: Results | Paired) -> str:
    scenarios = sorted({scenario for scenario, _, _ in one.keys})
    if len(scenarios) > MANY_SCENARIOS:
        scenarios = [f"{len(scenarios)} scenarios"]
    length = [f"{one.regret.columns[-1]} {one.protocol.step}"] if isinstance(one, Results) else []
    return ", ".join([*scenarios, *length])


def _tables(analysis: Analysis) -> dict[str, Table]:
    results = analysis.results
    found = {"All scenarios": results}
    if len(results.scenarios) > 1:
        found |= {name: results.of_scenario(name) for name in results.scenarios}
    return {
        f"{title}: {count(len(part.tasks), 'task')}, {count(len(part.keys), 'run')} a sampler": (
            overview(part, analysis.against, analysis.checkpoints)
        )
        for title, part in found.items()
    }


def _asynchrony(one: Paired, contents: Sequence[Content]) -> dict[str, Table]:
    """What several workers lose, beside the same runs with one worker."""
    for _, many in contents:
        if (
            isinstance(many, Paired)
            and (many.problem, one.problem) == WORKERS
            and many.keys == one.keys
        ):
            return {ASYNCHRONY: real_studies.asynchrony(many, one)}
    return {}


def _left_out(records: Sequence[Record], contents: Sequence[Content]) -> Iterator[str]:
    """Say how many runs of each problem were not compared."""
    for problem in dict.fromkeys(one["problem"] for one in records):
        runs = [one for one in records if one["problem"] == problem]
        done = finished(runs)
        own = {one["sampler"] for one in done}
        n_compared = sum(
            len(own & {*one.samplers}) * len(one.keys) for name, one in contents if name == problem
        )
        n_failed = len({run_of(one) for one in runs}) - len(done)
        n_unpaired = len(done) - n_compared
        if n_failed or n_unpaired:
            yield (
                f"Left out of {problem}: {n_failed} failed runs, "
                f"{n_unpaired} runs without their pair."
            )


def _versions(records: Sequence[Record]) -> dict[str, str]:
    found = defaultdict[str, set[str]](set)
    for record in records:
        for name, one in record.get("versions", {}).items():
            found[f"{name} (runs)"].add(one)
    return {name: ", ".join(sorted(versions)) for name, versions in found.items()}


def _own_versions() -> dict[str, str]:
    return {
        "dre_plugins (report)": dre_plugins.__version__,
        "python (report)": platform.python_version(),
        **{f"{name} (report)": version(name) for name in PACKAGES},
    }
