"""Regret curves of paired runs in one array, whatever they were read from.

Only (scenario, task, seed) that every sampler finished are kept: each comparison is a paired one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from dre_bench.reports import statistics
from dre_bench.reports.statistics import Floats, Integers
from dre_bench.runs import Record, run_of
from dre_bench.samplers import N_STARTUP_TRIALS

Key: TypeAlias = tuple[str, int | str, int]
"""Scenario, task, seed: what samplers are compared on."""
TaskKey: TypeAlias = tuple[str, int | str]


@dataclass(frozen=True)
class Protocol:
    """How the numbers of runs are to be read.

    Attributes:
        regret: What regret is, in a sentence or two.
        step: What is counted: "trials", or "steps" after initial ones.
        first_step: How many of them are done at index 0.
        n_startup: First steps whose suggestions take no time and are left out of times.
        checkpoints: Numbers of steps that are reported by default.
    """

    regret: str
    step: str = "trials"
    first_step: int = 1
    n_startup: int = N_STARTUP_TRIALS
    checkpoints: tuple[int, ...] = (20, 30, 50)


STUDIES = Protocol(
    regret=(
        "Normalised: (best − x) / (best − median) of the best value x so far. “best” is the "
        "highest value known for the task, over all runs given and the random sample that every "
        "run records; “median” is that sample's. 0 is as good as anything known, 1 is what half "
        "of random search reaches at its first trial. It depends on the runs that are given "
        "together, through “best”."
    )
)


TABLES = Protocol(
    regret=(
        "The distance of the best row so far to the best row of the task's table, as a share of "
        "the range of the table: 0 is its best, 1 its worst. Rows without a value count as its "
        "worst."
    ),
    step="evaluations",
    n_startup=5,
    checkpoints=(10, 20, 35, 50, 100),
)


@dataclass(frozen=True)
class Results:
    """Paired runs.

    Attributes:
        samplers: Names, in the order of axis 0.
        keys: (scenario, task, seed), in the order of axis 1.
        regret: Normalised regret of the best so far, ``[samplers, keys, trials]``.
        ask_seconds: Seconds of each suggestion, ``[samplers, keys, trials]``; NaN if not known.
        protocol: How to read them.
    """

    samplers: tuple[str, ...]
    keys: tuple[Key, ...]
    regret: Floats
    ask_seconds: Floats
    protocol: Protocol

    @property
    def scenarios(self) -> list[str]:
        """Names of the scenarios, sorted."""
        return sorted({scenario for scenario, _, _ in self.keys})

    @property
    def tasks(self) -> list[TaskKey]:
        """The tasks, sorted: scenario and name."""
        return sorted({key[:2] for key in self.keys})

    @property
    def task_of_run(self) -> Integers:
        """Index in `tasks` of every key, ``[keys]``."""
        index = {task: i for i, task in enumerate(self.tasks)}
        return np.array([index[key[:2]] for key in self.keys])

    @property
    def steps(self) -> Integers:
        """How many trials are done at each index of the last axis."""
        return np.arange(self.regret.shape[2]) + self.protocol.first_step

    def of_scenario(self, scenario: str) -> Results:
        """The runs of one scenario."""
        chosen = [i for i, key in enumerate(self.keys) if key[0] == scenario]
        return replace(
            self,
            keys=tuple(self.keys[i] for i in chosen),
            regret=self.regret[:, chosen],
            ask_seconds=self.ask_seconds[:, chosen],
        )

    def index_of(self, steps: Sequence[int]) -> list[int]:
        """Indices of the last axis at which so many trials are done.

        Raises:
            ValueError: If the runs do not reach one of them.
        """
        known = self.steps
        outside = [step for step in steps if not known[0] <= step <= known[-1]]
        if outside:
            raise ValueError(
                f"checkpoints must be from {known[0]} to {known[-1]}, what the runs have, "
                f"got {', '.join(map(str, outside))}."
            )
        return [step - int(known[0]) for step in steps]

    def ranks(self) -> Floats:
        """Place of each sampler at each trial, 1 = best, ``[samplers, keys, trials]``."""
        return statistics.ranks(self.regret)

    def by_task(self) -> Floats:
        """Mean regret over the seeds of each task, ``[samplers, tasks, trials]``."""
        return statistics.mean_by_task(self.regret, self.task_of_run)

    def stagnating(self) -> Floats:
        """Share of stagnating runs, ``[samplers]``."""
        return statistics.stagnating(self.regret)

    def seconds_per_ask(self) -> Floats:
        """Quantiles 5 %, 50 %, 95 % of seconds after the start-up trials, ``[samplers, 3]``."""
        return statistics.quantiles(self.ask_seconds[:, :, self.protocol.n_startup :])


def finished(records: Sequence[Record]) -> list[Record]:
    """Return the records of runs that did not fail; of one that is there twice the later one."""
    return [*{run_of(one): one for one in records if "error" not in one}.values()]


def key_of(record: Record) -> Key:
    """What samplers are compared on."""
    return record["scenario"], record["task"], record["seed"]


def comparable(records: Sequence[Record]) -> list[list[Record]]:
    """Group finished runs of one problem: a file may hold runs of several suites.

    Args:
        records: Of one problem.

    Returns:
        Groups of scenarios with the same samplers and lengths of studies. What no (scenario,
        task, seed) pairs is left out.
    """
    samplers = defaultdict[tuple[str, int], set[str]](set)
    for one in records:
        samplers[one["scenario"], one["trials"]].add(one["sampler"])
    groups = defaultdict[tuple[frozenset[str], int], list[Record]](list)
    for one in records:
        alike = frozenset(samplers[one["scenario"], one["trials"]])
        groups[alike, one["trials"]].append(one)
    return [group for group in groups.values() if paired_keys(group)]


def paired_keys(records: Sequence[Record]) -> tuple[Key, ...]:
    """Return what every sampler finished, sorted."""
    keys = defaultdict[str, set[Key]](set)
    for one in records:
        keys[one["sampler"]].add(key_of(one))
    return tuple(sorted(set.intersection(*keys.values())))


def best_known(records: Sequence[Record]) -> dict[TaskKey, float]:
    """Return the highest value of each task, over finished runs and their random samples."""
    best: dict[TaskKey, float] = defaultdict(lambda: -np.inf)
    for one in records:
        task = key_of(one)[:2]
        reached = [value for value in one["values"] if not math.isnan(value)]
        best[task] = max(best[task], one["reference"]["best"], *reached)
    return best


def collect(records: Sequence[Record], best: Mapping[TaskKey, float]) -> Results:
    """Arrange finished studies by sampler and key, and normalise them.

    Args:
        records: Records that can be compared.
        best: The highest value known for each task, see `best_known`.

    Raises:
        ValueError: If no (scenario, task, seed) was finished by every sampler.
    """
    return _arranged(records, lambda one: _study_regret(one, best), STUDIES)


def collect_tables(records: Sequence[Record]) -> Results:
    """Arrange finished runs on tables by sampler and key.

    Args:
        records: Records that can be compared.

    Raises:
        ValueError: If no (scenario, task, seed) was finished by every sampler.
    """
    return _arranged(records, table_regret, TABLES)


def _arranged(
    records: Sequence[Record], regret_of: Callable[[Record], Floats], protocol: Protocol
) -> Results:
    regret = defaultdict[str, dict[Key, Floats]](dict)
    seconds: dict[tuple[str, Key], Floats] = {}
    for one in records:
        name, key = one["sampler"], key_of(one)
        regret[name][key] = curve = regret_of(one)
        known = np.array(one["ask_seconds"], dtype=np.float64)
        # A table that was exhausted ended the run; its curve goes on.
        missing = len(curve) - len(known)
        seconds[name, key] = np.pad(known, (0, missing), constant_values=np.nan)
    return paired(regret, seconds, protocol)


def _study_regret(record: Record, best: Mapping[TaskKey, float]) -> Floats:
    unit = record["reference"]["median"]
    return statistics.normalised_regret(record["values"], best[key_of(record)[:2]], unit)


def table_regret(record: Record) -> Floats:
    """Return the regret after each evaluation of a table, ``[trials]``.

    A run that ended early, because its table was exhausted, stays at what it had found.
    """
    best, worst = record["reference"]["best"], record["reference"]["worst"]
    regret = statistics.normalised_regret(record["values"], best, worst)
    missing = max(0, record["trials"] - len(regret))
    return np.pad(regret, (0, missing), mode="edge")


def paired(
    regret: Mapping[str, Mapping[Key, Floats]],
    seconds: Mapping[tuple[str, Key], Floats],
    protocol: Protocol,
) -> Results:
    """Keep what every sampler finished; the shortest run sets the length.

    Args:
        regret: Curves ``[trials]`` by sampler and key.
        seconds: Seconds of suggestions ``[trials]`` by sampler and key, where they are known.
        protocol: How to read them.

    Raises:
        ValueError: If no key is every sampler's.
    """
    everywhere = set.intersection(*(set(runs) for runs in regret.values())) if regret else set()
    if not everywhere:
        raise ValueError("no (scenario, task, seed) was finished by every sampler.")
    keys = tuple(sorted(everywhere))
    n_trials = min(len(runs[key]) for runs in regret.values() for key in keys)
    unknown = np.full(n_trials, np.nan)
    return Results(
        tuple(regret),
        keys,
        np.array([[runs[key][:n_trials] for key in keys] for runs in regret.values()]),
        np.array(
            [[seconds.get((name, key), unknown)[:n_trials] for key in keys] for name in regret]
        ),
        protocol,
    )
