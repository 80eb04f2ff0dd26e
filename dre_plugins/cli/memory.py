"""`dre memory`: the recorded studies."""

from __future__ import annotations

import datetime
import logging
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Column, Table

from dre_plugins.cli.console import console, tracked, warn, whole
from dre_plugins.cli.importing import write_tasks
from dre_plugins.cli.options import METADATA_FILES, Output, Tasks, check_writable, load_tasks

if TYPE_CHECKING:
    from dre_plugins.memory.index import Entry, Index
    from dre_plugins.memory.memory import Memory

memory = typer.Typer(
    no_args_is_help=True, help="Show and manage the studies that were recorded by `memory=`."
)

# Number of past studies that the statistics name.
N_MOST_USED = 5
# Fewest characters by which a study is found: its identity is hexadecimal, as short names may be.
SHORTEST_IDENTITY = 6

Folder = Annotated[
    str | None,  # as a path, the "$FOLDER" of a script that has set no FOLDER is the present one
    typer.Option(
        "--memory",
        metavar="PATH",
        help="Folder of the memory. Without it: that of DRE_MEMORY, or the user's own.",
    ),
]
Study = Annotated[
    str, typer.Argument(help="Name of a study, or the first 6 characters of its identity.")
]
Studies = Annotated[
    list[str] | None,
    typer.Argument(
        help="Names of studies, or the first 6 characters of identities. Without them: all."
    ),
]


@memory.command("list")
def list_studies(
    folder: Folder = None,
    parameter: Annotated[
        list[str] | None, typer.Option(help="Only studies with this parameter; can be repeated.")
    ] = None,
) -> None:
    """List the studies, the newest first.

    Example:

        dre memory list --parameter learning_rate
    """
    index = _index(_memory(folder))
    trials = Column("trials", justify="right")
    name, parameters = whole("name"), whole("parameters")
    table = Table("study", name, "framework", trials, "last trial", parameters)
    for entry in index.entries:
        if set(parameter or ()) <= entry.domains.keys():
            header = entry.header
            row = (header.study[:8], header.name, header.framework, str(entry.n_trials))
            table.add_row(*row, _date(entry.last), ", ".join(entry.domains))
    if index.entries and not table.row_count:
        warn(f"no study has the parameters {parameter}")
    console().print(table)


@memory.command("show")
def show(study: Study, folder: Folder = None) -> None:
    """Show a study: its best trial, its search space, and the studies that it learnt from.

    Example:

        dre memory show wine
    """
    from dre_plugins.cli.tables import entry_table, space_table
    from dre_plugins.memory.records import read_study
    from dre_plugins.recommend.directions import SIGNS

    opened = _memory(folder)
    sources = opened.source_studies()
    names = {entry.header.study: entry.header.name for entry in opened.index().entries}
    for entry in _found(opened, [study]):
        header, read = entry.header, read_study(entry.files)
        # Past tasks are recorded with the sign by which larger values are better, and searchers of
        # Syne Tune get values with the sign by which smaller ones are.
        signs = {
            "import": "as imported: larger is better, losses have a minus",
            "syne-tune": "smaller is better, what was maximised has a minus",
        }
        entries = {
            "identity": header.study,
            "framework": header.framework,
            "directions": signs.get(header.framework, ", ".join(header.directions)),
            "began": _date(header.began),
            "last trial": _date(entry.last),
            "trials": ", ".join(f"{count} {state}" for state, count in read.counts().items()),
        }
        if read.n_damaged:
            entries["damaged lines"] = str(read.n_damaged)
        best = read.best()
        if best is not None and best.value is not None:
            entries["best value"] = f"{SIGNS[header.directions[0]] * best.value + 0.0:g}"
            entries["there"] = ", ".join(f"{k}={v}" for k, v in best.configuration.items())
        # Of those that were deleted, only the identities are left.
        past = [f"{s[:8]} {names.get(s, '')}".strip() for s in sources.get(header.study, [])]
        entries["learnt from"] = ", ".join(past) or "no study"
        console().print(entry_table(f"study {header.title}", entries))
        console().print(space_table(read.space()))


@memory.command("forget")
def forget(
    studies: Annotated[
        list[str], typer.Argument(help="Names, or the first 6 characters of identities.")
    ],
    folder: Folder = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete studies, and all stored trials that others learn from, as some may be theirs.

    Example:

        dre memory forget wine iris
    """
    from dre_plugins.transfer.metadata import counted

    opened = _memory(folder)
    found = _found(opened, studies)
    trials = counted(sum(entry.n_trials for entry in found), "trial")
    if not yes:
        names = console().escaped(", ".join(entry.header.title for entry in found))
        try:
            agrees = typer.confirm(f"Delete {names}, with {trials}?")
        except (typer.Abort, RuntimeError):  # the input ends, or is closed
            typer.echo()
            agrees = False
        if not agrees:
            raise ValueError("Nothing was deleted; --yes deletes without asking.")
    opened.forget(found)
    forgotten = counted(len(found), "study", "studies")
    console().print(f"Forgot {forgotten} with {trials}.")


@memory.command("export")
def export(output: Output, studies: Studies = None, folder: Folder = None) -> None:
    """Write studies, the newest last, to a file for other commands, such as `dre meta-train`.

    Example:

        dre memory export -o tasks.json
    """
    from dre_plugins.memory.selection import tasks_of
    from dre_plugins.transfer.metadata import counted

    check_writable(output, METADATA_FILES)
    opened = _memory(folder)
    entries = _found(opened, studies) if studies else _index(opened).entries
    metadata, used = tasks_of(entries, logging.getLogger("dre_plugins"))
    # Of many past studies the last ones are learnt from.
    by_age = sorted(zip(metadata, used, strict=True), key=lambda pair: pair[1].last)
    metadata = replace(metadata, tasks=tuple(task for task, _ in by_age))
    read = f"{counted(len(entries), 'study', 'studies')} read, none with a trial to learn from"
    write_tasks(metadata, output, f"There is nothing to export in {opened.path} ({read})")


@memory.command("import")
def import_studies(tasks: Tasks, folder: Folder = None) -> None:
    """Record past tasks from files of `dre import` or Optuna storages; known ones are skipped.

    An imported study that has grown since takes the place of the earlier one.

    Example:

        dre memory import sqlite:///studies.db
    """
    from dre_plugins.memory.records import has_grown, identity_of, import_task
    from dre_plugins.memory.selection import tasks_of
    from dre_plugins.transfer.metadata import unnumbered

    opened, metadata = _memory(folder), load_tasks(tasks)
    entries = opened.index().entries
    present = {entry.header.study for entry in entries}
    # Those that were recorded while they ran have other identities than the same as past tasks.
    names = {unnumbered(task.name) for task in metadata if identity_of(task) not in present}
    likely = [entry for entry in entries if unnumbered(entry.header.title) in names]
    before, read = tasks_of(likely, logging.getLogger("dre_plugins"))
    present |= {identity_of(task) for task in before}
    bar = tracked(metadata, "studies", len(metadata))
    new = [task for task in bar if import_task(opened.records, task, present)]
    for entry, earlier in zip(read, before, strict=True):
        grown = any(has_grown(task, earlier) for task in new)
        if entry.header.framework == "import" and grown:
            for path in entry.files:  # several, if a drive has kept copies that conflict
                path.unlink(missing_ok=True)
    console().print(f"Recorded {len(new)} of {len(metadata)} studies in {opened.path}.")


@memory.command("stats")
def stats(folder: Folder = None) -> None:
    """Show the size of the memory, the studies that others learnt from, and the gain of that.

    "first suggestions" compares the suggestion that a study made before it had observed anything
    with what its trials let expect of space-filling ones, with which it would have begun without a
    memory. The gain of its later trials cannot be told from records.

    Example:

        dre memory stats
    """
    from dre_plugins.cli.tables import entry_table

    opened = _memory(folder)
    index, sources = _index(opened), opened.source_studies()
    entries = index.entries
    learners = [entry for entry in entries if sources.get(entry.header.study)]
    counts = {
        "studies": str(len(entries)),
        "of these, learnt from others": str(len(learners)),
        "trials": str(sum(entry.n_trials for entry in entries)),
        "search spaces": str(len({entry.digest for entry in entries})),
        "records": f"{sum(entry.n_bytes for entry in entries) / 1e6:.1f} MB",
        "damaged records": str(len(index.damaged)),
        "first suggestions": _first_suggestions(learners),
    }
    console().print(entry_table(f"memory {opened.path}", counts))
    # A study that has no trial yet has a choice of past studies, but no record.
    times = Counter(study for entry in learners for study in sources[entry.header.study])
    most = Table(whole("learnt from most"), "in studies", title_justify="left")
    for entry in sorted(entries, key=lambda e: -times[e.header.study])[:N_MOST_USED]:
        if times[entry.header.study]:
            most.add_row(entry.header.dated, str(times[entry.header.study]))
    if most.row_count:
        console().print(most)


def _first_suggestions(learners: list[Entry]) -> str:
    """Say how good the first suggestions were of studies that have learnt from others."""
    from dre_plugins.memory.records import read_study
    from dre_plugins.memory.savings import MIN_STUDIES, savings

    bar = tracked(learners, "studies", len(learners))
    found = savings(read_study(entry.files) for entry in bar)
    if found.n_studies < MIN_STUDIES:
        return f"known from {MIN_STUDIES} studies on, of {found.n_studies} so far"
    return (
        f"beat {found.share:.0%} ± {found.error:.0%} of space-filling trials, as expected in "
        f"{found.n_studies} studies: as good as the best of {found.trials:.1f} such trials"
    )


def _memory(folder: str | None) -> Memory:
    from dre_plugins.memory.memory import Memory

    opened = Memory.of(True if folder is None else folder)
    assert opened is not None  # only False and None mean none
    return opened


def _index(opened: Memory) -> Index:
    """Return the index of a memory; remark if there are damaged records, or no studies."""
    index = opened.index()
    for name in index.damaged:
        warn(f"the record {opened.records / name} is damaged or unreadable, and left out")
    if not index.entries:
        warn(f"there are no studies in {opened.path}")
    return index


def _found(memory: Memory, words: list[str]) -> list[Entry]:
    """Return the studies of some names, or of identities that begin so where no name matches."""
    entries = memory.index().entries
    matching: dict[str, Entry] = {}
    for word in words:
        matches = [e for e in entries if word == e.header.name != ""]
        if not matches and len(word) >= SHORTEST_IDENTITY:
            matches = [e for e in entries if e.header.study.startswith(word)]
        if not matches:
            raise ValueError(f"There is no study {word!r} in {memory.path}; see dre memory list.")
        matching |= {entry.header.study: entry for entry in matches}
    return [*matching.values()]


def _date(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")
