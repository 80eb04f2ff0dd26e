"""Tasks all of whose configurations are known: of scenarios, and of HPO-B.

    rbv2_xgboost, branin, …   1000 random configurations of a scenario (see ``scenarios``)
    hpob:5971                 a search space of HPO-B (Pineda Arango et al., 2021), from the folder
                              ``--hpob``; ``hpob``: all

All begin with the same few rows, which the benchmark gives, or a seed draws.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dre_bench.hpob_files import load_hpob, load_hpob_initialisations
from dre_bench.priors import scenario_metadata, search_space
from dre_bench.runs import Sources
from dre_bench.scenarios import scenario_of
from dre_bench.tasks import Scenario, Split
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.metadata import MetaDataset, Task

HPOB = "hpob"
N_ROWS = 1000
N_INITIAL = 5
# Canonical units of one row agree to this many decimals.
KEY_DECIMALS = 9

Units = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """Hold all configurations of a task and their values.

    Attributes:
        space: The search space.
        units: Canonical coordinates `[R, P]`.
        values: Values `[R]`, larger is better; NaN where there is none.
        start: Rows to begin with.
    """

    space: SearchSpace
    units: Units
    values: Units
    start: list[int]

    @property
    def features(self) -> Units:
        """What methods see that know no search space: a column for each feature `[R, D]`."""
        return self.space.features(self.units).astype(np.float64)


class Tables(ABC):
    """Hold the tables of one search space, some of them for learning."""

    @abstractmethod
    def tasks(self, split: Split) -> Sequence[int | str]:
        """Return the tasks of a split."""

    @abstractmethod
    def table(self, task: int | str, seed: int) -> Table:
        """Return a task's table, and the rows that a seed begins with."""

    @abstractmethod
    def metadata(self, split: Split) -> MetaDataset:
        """Return the evaluations of a split, to learn from."""


class ScenarioTables(Tables):
    """Random configurations of a scenario; what is learnt from has good ones besides."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._space = search_space(scenario.parameters)

    def tasks(self, split: Split) -> Sequence[int]:
        """Return the tasks of a split."""
        return self._scenario.splits[split]

    def table(self, task: int | str, seed: int) -> Table:
        """Return 1000 configurations that are the same for all seeds."""
        number = int(task)
        rng = np.random.default_rng(number)
        units = self._space.canonical(rng.random((N_ROWS, self._space.n_parameters)))
        configurations = [self._space.to_configuration(row) for row in units]
        values = self._scenario.evaluate_many(number, configurations)[self._scenario.metric]
        order = np.random.default_rng([seed, number]).permutation(N_ROWS)
        return Table(self._space, units, values, order[:N_INITIAL].tolist())

    def metadata(self, split: Split) -> MetaDataset:
        """Return random and locally improved configurations of a split's tasks."""
        return scenario_metadata(self._scenario, split)


class HpobTables(Tables):
    """Tables of a search space of HPO-B; the file of a split is read when it is asked for.

    Args:
        folder: Holds the files of HPO-B.
        space: The search space.

    Raises:
        ValueError: The files are missing, or there is no such search space.
    """

    def __init__(self, folder: Path, space: str) -> None:
        starts = load_hpob_initialisations(folder)
        if space not in starts:
            raise ValueError(f"HPO-B has no search space {space!r}; it has {', '.join(starts)}.")
        self._folder = folder
        self._space = space
        self._starts = {name: _by_seed(rows) for name, rows in starts[space].items()}

    def tasks(self, split: Split) -> Sequence[str]:
        """Return the tasks of a split."""
        return [task.name for task in self.metadata(split)]

    def table(self, task: int | str, seed: int) -> Table:
        """Return all evaluations of a task.

        Test data sets begin with the rows that HPO-B gives for its seeds; for others they are
        drawn.

        Raises:
            ValueError: There is no such task, or it has no initial rows for this seed.
        """
        found = self._task(str(task))
        return Table(found.space, found.units, found.values, self._start(found, seed))

    def metadata(self, split: Split) -> MetaDataset:
        """Return the evaluations of a split."""
        by_space = _hpob(self._folder, split)
        # Some have no data set to validate with.
        if self._space not in by_space and split != "validation":
            raise ValueError(
                f"the {split} file of HPO-B has no search space {self._space!r}; it has "
                f"{', '.join(by_space)}."
            )
        return by_space.get(self._space, MetaDataset(()))

    def _task(self, name: str) -> Task:
        splits: tuple[Split, ...] = ("test", "validation", "train")
        for split in splits:
            for task in self.metadata(split):
                if task.name == name:
                    return task
        raise ValueError(f"there is no table {name!r}.")

    def _start(self, task: Task, seed: int) -> list[int]:
        given = self._starts.get(task.name)
        if given is None:  # drawn for each task, so that tasks are independent
            rng = np.random.default_rng([seed, zlib.crc32(task.name.encode())])
            drawn: list[int] = rng.permutation(len(task))[:N_INITIAL].tolist()
            return drawn
        if seed >= len(given):
            raise ValueError(
                f"{task.name!r} has initial rows for {len(given)} seeds, not for seed {seed}."
            )
        return [*given[seed]]


@cache
def tables_of(sources: Sources, name: str) -> Tables:
    """Return tables by their name, read once a process.

    Raises:
        ValueError: There are none of that name, or their data are missing.
    """
    kind, _, space = name.partition(":")
    if kind == HPOB:
        return HpobTables(_hpob_folder(sources), space)
    return ScenarioTables(scenario_of(sources, name))


def expanded(sources: Sources, names: Sequence[str]) -> list[str]:
    """Return the names with `hpob` replaced by its search spaces that have test data sets."""
    found = []
    for name in names:
        if name == HPOB:
            found += [f"{HPOB}:{space}" for space in _hpob(_hpob_folder(sources), "test")]
        else:
            found.append(name)
    return found


def _hpob_folder(sources: Sources) -> Path:
    if sources.hpob is None or not sources.hpob.is_dir():
        given = "" if sources.hpob is None else f"; there is no folder {str(sources.hpob)!r}"
        raise ValueError(
            "tables of HPO-B need its files: name the folder that holds meta-test-dataset.json "
            f"with --hpob{given}."
        )
    return sources.hpob


@cache
def _hpob(folder: Path, split: Split) -> dict[str, MetaDataset]:
    """Parse the file of a split, with all search spaces in it: that takes longest by far."""
    return load_hpob(folder, split=split)


def _by_seed(rows: Mapping[str, list[int]]) -> list[list[int]]:
    """Return the rows of "test0", "test1", … "test10", in this order."""
    return [rows[seed] for seed in sorted(rows, key=lambda seed: (len(seed), seed))]


def drawn_rows(good: NDArray[np.intp], n_rows: int, n: int, rng: np.random.Generator) -> list[int]:
    """Return different rows, half of them or more among good ones, as a study has them."""
    drawn = [*rng.choice(good, n // 2, replace=False).tolist(), *rng.permutation(n_rows).tolist()]
    return [*dict.fromkeys(drawn)][:n]


def trials_of(space: SearchSpace, units: Units, values: Units) -> list[Trial]:
    """Return trials that have ended: rows of coordinates `[N, P]` with their values `[N]`."""
    return [
        Trial(space.to_configuration(row), TrialState.COMPLETE, float(value))
        for row, value in zip(units, values, strict=True)
    ]


def row_keys(units: Units) -> list[bytes]:
    """Return one hashable key a row of canonical units `[C, P]`, to find the row itself again."""
    rounded = np.round(units, KEY_DECIMALS) + 0.0  # no negative zeros
    rounded[np.isnan(rounded)] = np.nan  # one bit pattern for all NaN
    return [row.tobytes() for row in rounded]
