"""Evaluations of past tasks, in one form for all sources.

Notation: `N` evaluations of a task, `P` parameters of its search space; see docs/architecture.md.
Larger values are better.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dre_plugins.recommend.lists import TrialList, final_values, has_failed, trial_lists
from dre_plugins.recommend.trials import ConstraintState, Trial, TrialState, constraint_states
from dre_plugins.space import Float, Integer, SearchSpace
from dre_plugins.space.base import SLACK, Array, Mask
from dre_plugins.transfer import archive
from dre_plugins.transfer.archive import MetadataError

__all__ = ["MetaDataset", "MetadataError", "Task"]

FORMAT = "dre-plugins/metadata"
VERSION = 1

_MAX_LISTED = 10  # tasks in a summary


@dataclass(frozen=True, eq=False)
class Task:
    """Hold the evaluations of one task (a study, a data set): larger values are better.

    Args:
        space: Search space of the task.
        units: Canonical coordinates in `space` `[N, P]`; values outside the ranges extrapolate,
            see `SearchSpace.to_units`.
        values: Final values `[N]`; NaN where there is none (failed or pruned); infinities are
            ranked like any other value.
        failed: Which evaluations ended without anything to rank them by `[N]`.
        rungs: By step: reported values `[N]`, NaN where nothing was reported or all failed.

    Raises:
        ValueError: The arrays do not fit each other or the space.
    """

    name: str
    space: SearchSpace
    units: Array
    values: Array
    failed: Mask
    rungs: Mapping[float, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = len(self.values)
        arrays = {"units": self.units, "values": self.values, "failed": self.failed}
        arrays |= {f"rungs[{step}]": reported for step, reported in self.rungs.items()}
        for key, array in arrays.items():
            shape = (n, self.space.n_parameters) if key == "units" else (n,)
            if array.shape != shape:
                raise ValueError(
                    f"Task {self.name!r}: {key} has shape {array.shape}, not {shape}; "
                    "give one row for each evaluation, one column for each parameter."
                )
        if (~np.isnan(self.values) & self.failed).any():
            raise ValueError(f"Task {self.name!r}: what failed must have the value NaN.")

    @classmethod
    def from_trials(cls, name: str, space: SearchSpace, trials: Sequence[Trial]) -> Task:
        """Return the task that trials describe; running ones are left out.

        A trial that violates a constraint has failed.

        Raises:
            ValueError: A configuration has a value that can never belong to its domain.
        """
        ended = [
            replace(trial, state=TrialState.FAILED, value=None)
            if state is ConstraintState.VIOLATED
            else trial
            for trial, state in zip(trials, constraint_states(trials), strict=True)
            if trial.state is not TrialState.RUNNING
        ]
        failed = np.array([has_failed(trial) for trial in ended], dtype=np.bool_)
        rungs: dict[float, Array] = {}
        for step in sorted({float(step) for trial in ended for step in trial.rungs}):
            reported = np.array([trial.rungs.get(step, math.nan) for trial in ended])
            reported[failed] = math.nan
            if not np.isnan(reported).all():
                rungs[step] = reported
        try:
            units = space.to_units([trial.configuration for trial in ended])
        except ValueError as error:
            raise ValueError(f"Task {name!r}: {error}") from error
        return cls(name, space, units, final_values(ended), failed, rungs)

    def trials(self) -> list[Trial]:
        """Return the evaluations as trials, of which numbers may not be in their domains."""
        results = zip(self.results(), self._configurations(), strict=True)
        return [replace(trial, configuration=configuration) for trial, configuration in results]

    def results(self) -> list[Trial]:
        """Return the evaluations as trials without configurations, which take time to decode."""
        trials = []
        for row, value in enumerate(self.values.tolist()):
            reported = {step: float(values[row]) for step, values in self.rungs.items()}
            rungs = {step: value for step, value in reported.items() if not math.isnan(value)}
            ended = TrialState.PRUNED if math.isnan(value) else TrialState.COMPLETE
            state = TrialState.FAILED if self.failed[row] else ended
            trials.append(Trial({}, state, None if math.isnan(value) else value, rungs))
        return trials

    def _configurations(self) -> list[dict[str, Any]]:
        configurations = self.space.to_configurations(self.units)
        for name, units in zip(self.space.names, self.units.T, strict=True):
            domain = self.space.domains[name]
            if not isinstance(domain, (Float, Integer)):
                continue
            # Numbers outside, or between values of a grid.
            rows = np.flatnonzero(np.abs(domain.snap(units) - units) > SLACK)
            for row, number in zip(rows, domain.numbers(units[rows]), strict=True):
                if name in configurations[row]:
                    number = float(f"{number:.12g}")  # decoding a unit adds digits
                    is_whole = isinstance(domain, Integer)
                    configurations[row][name] = math.floor(number + 0.5) if is_whole else number
        return configurations

    def lists(self) -> list[TrialList]:
        """Return the ranked lists of the evaluations, by the rules of a running study.

        Those whose values are all the same say nothing and are left out.
        """
        found = trial_lists(self.results(), failed="worst", max_length=len(self))
        return [part for part in found if np.ptp(part.ranks) > 0]

    def __len__(self) -> int:
        return len(self.values)

    @property
    def n_complete(self) -> int:
        """Return how many evaluations have a final value."""
        return int((~np.isnan(self.values)).sum())

    def counts(self) -> dict[str, int]:
        """Return how many evaluations are complete, were pruned, and failed."""
        n_failed = int(self.failed.sum())
        n_pruned = len(self) - self.n_complete - n_failed
        return {"complete": self.n_complete, "pruned": n_pruned, "failed": n_failed}


@dataclass(frozen=True, eq=False)
class MetaDataset:
    """Hold past tasks, whose search spaces may differ.

    Args:
        tasks: The tasks, each with a name of its own.
        source: Where they come from, free text.
        licence: Licence, free text.
        skipped: Number of items that an importer left out, by reason.

    Raises:
        ValueError: Two tasks have the same name.
    """

    tasks: tuple[Task, ...]
    source: str = ""
    licence: str = ""
    skipped: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        twice = [name for name, n in Counter(task.name for task in self.tasks).items() if n > 1]
        if twice:
            raise ValueError(
                f"Several tasks have the name {twice[0]!r}; MetaDataset.of numbers them."
            )

    @classmethod
    def of(
        cls,
        tasks: Iterable[Task],
        *,
        source: str = "",
        licence: str = "",
        skipped: Mapping[str, int] | None = None,
    ) -> MetaDataset:
        """Return a metadata set of tasks that may be empty or share names.

        Empty tasks are left out and counted in `skipped`; a repeated name is numbered.
        """
        tasks = list(tasks)
        n_empty = sum(len(task) == 0 for task in tasks)
        counted = Counter(skipped or {}) + Counter({"empty study": n_empty})
        kept = _numbered(task for task in tasks if len(task))
        return cls(kept, source, licence, dict(counted))

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def __add__(self, other: MetaDataset) -> MetaDataset:
        return MetaDataset.of(
            (*self.tasks, *other.tasks),
            source=_joined(self.source, other.source),
            licence=_joined(self.licence, other.licence),
            skipped=Counter(self.skipped) + Counter(other.skipped),
        )

    @property
    def n_evaluations(self) -> int:
        """Return the number of evaluations of all tasks."""
        return sum(len(task) for task in self.tasks)

    def subset(self, names: Collection[str]) -> MetaDataset:
        """Return the tasks with these names, in the present order.

        Raises:
            ValueError: There is no task of such a name.
        """
        chosen = {names} if isinstance(names, str) else set(names)
        present = [task.name for task in self.tasks]
        unknown = sorted(chosen - set(present))
        if unknown:
            raise ValueError(f"There are no tasks {unknown}; the names are {present}.")
        return replace(self, tasks=tuple(task for task in self.tasks if task.name in chosen))

    def summary(self) -> str:
        """Return a short text with tasks, evaluations by state, and skipped items."""
        total: Counter[str] = Counter()
        for task in self.tasks:
            total.update(task.counts())
        origin = f" from {self.source}" if self.source else ""
        licence = f" (licence: {self.licence})" if self.licence else ""
        lines = [f"{counted(len(self), 'task')}, {_evaluations(total)}{origin}{licence}"]
        lines += [
            f"  {task.name}: {_evaluations(task.counts())}, "
            f"{counted(task.space.n_parameters, 'parameter')}"
            for task in self.tasks[:_MAX_LISTED]
        ]
        if len(self) > _MAX_LISTED:
            lines.append(f"  … and {len(self) - _MAX_LISTED} more")
        lines += [f"skipped: {count} × {reason}" for reason, count in self.skipped.items()]
        return "\n".join(lines)

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to JSON, or to a NumPy archive, which is smaller.

        Args:
            path: Ends in ".json" or ".npz".

        Raises:
            ValueError: The suffix is another, or a category is of a type that no file holds.
        """
        tree = {
            "format": FORMAT,
            "version": VERSION,
            "source": self.source,
            "licence": self.licence,
            "skipped": dict(self.skipped),
            "tasks": [_task_to_tree(task) for task in self.tasks],
        }
        archive.write(Path(path), tree)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> MetaDataset:
        """Read what `save` has written; nothing in it can run code.

        Raises:
            MetadataError: The file is missing, damaged, no metadata, or of a newer version.
        """
        path = Path(path)
        tree = archive.read(path)
        if tree.get("format") != FORMAT:
            raise MetadataError(
                f"{str(path)!r} is no file of MetaDataset.save; import other data with "
                "from_table or the function for its framework."
            )
        if tree.get("version") != VERSION:
            raise MetadataError(
                f"{str(path)!r} has version {tree.get('version')!r}, this package reads "
                f"{VERSION}; update dre-plugins."
            )
        try:
            return cls(
                tasks=tuple(_task_from_tree(state) for state in tree["tasks"]),
                source=str(tree["source"]),
                licence=str(tree["licence"]),
                skipped={str(reason): int(n) for reason, n in tree["skipped"].items()},
            )
        except archive.DAMAGES as error:
            raise archive.damaged(path, error) from error


def _task_to_tree(task: Task) -> dict[str, Any]:
    try:
        space = task.space.to_dict()
    except ValueError as error:
        raise ValueError(f"Task {task.name!r}: {error}") from error
    return {
        "name": task.name,
        "space": space,
        "units": task.units,
        "values": task.values,
        "failed": task.failed,
        "steps": np.array([*task.rungs], dtype=np.float64),
        "rungs": [*task.rungs.values()],
    }


def _task_from_tree(state: Mapping[str, Any]) -> Task:
    space = SearchSpace.from_dict(state["space"])
    values = archive.numbers(state["values"])
    steps = archive.numbers(state["steps"]).tolist()
    return Task(
        name=str(state["name"]),
        space=space,
        units=archive.numbers(state["units"]).reshape(len(values), space.n_parameters),
        values=values,
        failed=archive.numbers(state["failed"]).astype(np.bool_),
        rungs=dict(zip(steps, map(archive.numbers, state["rungs"]), strict=True)),
    )


def _numbered(tasks: Iterable[Task]) -> tuple[Task, ...]:
    """Return tasks with names of their own: "a", "a (2)", …"""
    numbered: dict[str, Task] = {}
    for task in tasks:
        name, n = task.name, 1
        while name in numbered:
            n += 1
            name = f"{task.name} ({n})"
        numbered[name] = task if name == task.name else replace(task, name=name)
    return tuple(numbered.values())


def with_parameters(metadata: MetaDataset) -> MetaDataset:
    """Return the tasks that have searched anything: one of constants has no order to learn.

    The others are counted in `skipped`, with their names.
    """
    tasks = tuple(task for task in metadata if task.space.n_parameters)
    constant = [task.name for task in metadata if not task.space.n_parameters]
    reason = {f"tasks {constant}, where no parameter varies": len(constant)} if constant else {}
    return replace(metadata, tasks=tasks, skipped={**metadata.skipped, **reason})


def unnumbered(name: str) -> str:
    """Return a name without the numbers that it may have got where it was repeated."""
    return re.sub(r"( \(\d+\))+$", "", name)


def counted(n: int, singular: str, plural: str = "") -> str:
    """Return a number with its noun; a plural that is left out is the singular with an s."""
    return f"{n} {singular if n == 1 else plural or f'{singular}s'}"


def _joined(first: str, second: str) -> str:
    return "; ".join(dict.fromkeys(text for text in (first, second) if text))


def _evaluations(counts: Mapping[str, int]) -> str:
    parts = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    return (
        f"{counted(sum(counts.values()), 'evaluation')} ({parts})" if parts else "no evaluations"
    )
