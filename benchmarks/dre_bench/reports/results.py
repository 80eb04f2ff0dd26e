"""Regret curves of paired runs in one frame, whatever they were read from.

Only (scenario, task, seed) that every sampler finished are kept: each comparison is a paired one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pandas as pd

from dre_bench.reports import statistics
from dre_bench.reports.statistics import Floats
from dre_bench.runs import Record, run_of
from dre_bench.samplers import N_STARTUP_TRIALS

Key: TypeAlias = tuple[str, int | str, int]
"""Scenario, task, seed: what samplers are compared on."""
TaskKey: TypeAlias = tuple[str, int | str]
RUN = ["scenario", "task", "seed"]
INDEX = ["sampler", *RUN]
STAGNATION_TRIALS = 20
STAGNATION_REGRET = 0.02


@dataclass(frozen=True)
class Protocol:
    """How the numbers of runs are to be read.

    Attributes:
        regret: What regret is, in a sentence or two.
        step: What is counted, such as "trials".
        n_startup: First steps whose suggestions take no time and are left out of times.
        checkpoints: Numbers of steps that are reported by default.
    """

    regret: str
    step: str = "trials"
    n_startup: int = N_STARTUP_TRIALS
    checkpoints: tuple[int, ...] = (20, 30, 50)


STUDIES = Protocol(
    "Normalised: (best − x) / (best − median) of the best value x so far. “best” is the highest "
    "value known for the task, over all runs given and the random sample that every run records; "
    "“median” is that sample's. 0 is as good as anything known, 1 is what half of random search "
    "reaches at its first trial. It depends on the runs that are given together, through “best”."
)
TABLES = Protocol(
    "The distance of the best row so far to the best row of the task's table, as a share of the "
    "range of the table: 0 is its best, 1 its worst. Rows without a value count as its worst.",
    step="evaluations",
    n_startup=5,
    checkpoints=(10, 20, 35, 50, 100),
)


def by_sampler(runs: pd.DataFrame) -> pd.DataFrame:
    """Average over runs."""
    return runs.groupby(level="sampler", sort=False).mean()


def ranks(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the place of each sampler among those of the same run; ties share their mean."""
    return runs.groupby(level=RUN, sort=False).rank()


def standard_error(runs: pd.DataFrame) -> pd.DataFrame:
    """Return that of the mean over tasks, ``[samplers, steps]``; 0 for a single task."""
    tasks = runs.groupby(level=INDEX[:3], sort=False).mean()
    return tasks.groupby(level="sampler", sort=False).sem().fillna(0.0)


def by_task(column: pd.Series) -> pd.DataFrame:
    """Average over the seeds of each task: a frame ``[samplers, tasks]``."""
    means = column.groupby(level=INDEX[:3], sort=False).mean()
    samplers = means.index.unique("sampler")
    tasks = [key[1:] for key in means.index[: len(means) // len(samplers)]]
    return pd.DataFrame(means.to_numpy().reshape(len(samplers), -1), samplers, tasks)


@dataclass(frozen=True)
class Results:
    """Paired runs: a row for each sampler and key, in this order, a column for each step.

    Attributes:
        regret: Normalised regret of the best so far; columns say how many steps are done.
        seconds: Seconds of each suggestion; NaN if not known.
        protocol: How to read them.
    """

    regret: pd.DataFrame
    seconds: pd.DataFrame
    protocol: Protocol

    @property
    def samplers(self) -> list[str]:
        """Names, in their order."""
        return [*self.regret.index.unique("sampler")]

    @property
    def keys(self) -> list[Key]:
        """(scenario, task, seed) of all runs of a sampler, sorted."""
        return [*self.regret.loc[self.samplers[0]].index]

    @property
    def scenarios(self) -> list[str]:
        """Names of the scenarios, sorted."""
        return sorted({key[0] for key in self.keys})

    def of_scenario(self, scenario: str) -> Results:
        """The runs of one scenario."""
        chosen = self.regret.index.get_level_values("scenario") == scenario
        return replace(self, regret=self.regret[chosen], seconds=self.seconds[chosen])

    def stagnating(self) -> pd.Series:
        """Share of runs that are stuck: no gain in their last trials, and not good."""
        last = self.regret.iloc[:, -1]
        before = self.regret.iloc[:, max(-STAGNATION_TRIALS - 1, -self.regret.shape[1])]
        return by_sampler((last == before) & (last > STAGNATION_REGRET))

    def seconds_per_ask(self) -> pd.Series:
        """Median seconds after the start-up trials, ``[samplers]``."""
        later = self.seconds.iloc[:, self.protocol.n_startup :]
        flat = later.to_numpy().reshape(len(self.samplers), -1)
        return pd.DataFrame(flat, self.samplers).median(axis=1)


@dataclass(frozen=True)
class Analysis:
    """Curves, and how they are compared.

    Attributes:
        results: The paired runs.
        against: The sampler that others are compared with.
        checkpoints: Numbers of trials that are reported.
    """

    results: Results
    against: str
    checkpoints: tuple[int, ...]


def finished(records: Sequence[Record]) -> list[Record]:
    """Return the records of runs that did not fail; of one that is there twice the later one."""
    return [*{run_of(record): record for record in records if "error" not in record}.values()]


def key_of(record: Record) -> Key:
    """What samplers are compared on."""
    return record["scenario"], record["task"], record["seed"]


def comparable(records: Sequence[Record]) -> list[list[Record]]:
    """Group finished runs of one problem: a file may hold runs of several suites.

    Returns:
        Groups of scenarios with the same samplers and lengths of studies. What no (scenario,
        task, seed) pairs is left out.
    """
    samplers = defaultdict[tuple[str, int], set[str]](set)
    for record in records:
        samplers[record["scenario"], record["trials"]].add(record["sampler"])
    groups = defaultdict[tuple[frozenset[str], int], list[Record]](list)
    for record in records:
        alike = frozenset(samplers[record["scenario"], record["trials"]])
        groups[alike, record["trials"]].append(record)
    return [group for group in groups.values() if paired_keys(group)]


def paired_keys(records: Sequence[Record]) -> list[Key]:
    """Return what every sampler finished, sorted."""
    keys = defaultdict[str, set[Key]](set)
    for record in records:
        keys[record["sampler"]].add(key_of(record))
    return sorted(set.intersection(*keys.values())) if keys else []


def paired_runs(records: Sequence[Record]) -> tuple[pd.MultiIndex, list[Record]]:
    """Return what every sampler finished: (sampler, scenario, task, seed), and the runs."""
    keys = paired_keys(records)
    runs = {(record["sampler"], *key_of(record)): record for record in records}
    samplers = dict.fromkeys(record["sampler"] for record in records)
    index = pd.MultiIndex.from_tuples([(n, *key) for n in samplers for key in keys], names=INDEX)
    return index, [runs[run] for run in index]


def best_known(records: Sequence[Record]) -> dict[TaskKey, float]:
    """Return the highest value of each task, over finished runs and their random samples."""
    best: dict[TaskKey, float] = defaultdict(lambda: -np.inf)
    for record in records:
        reached = np.fmax.reduce(record["values"], initial=record["reference"]["best"])
        best[key_of(record)[:2]] = max(best[key_of(record)[:2]], reached)
    return best


def collect(records: Sequence[Record], best: Mapping[TaskKey, float]) -> Results:
    """Pair finished studies; regret is normalised by the best value known of each task."""

    def regret(record: Record) -> Floats:
        highest, unit = best[key_of(record)[:2]], record["reference"]["median"]
        return statistics.normalised_regret(record["values"], highest, unit)

    return paired(records, regret, STUDIES)


def collect_tables(records: Sequence[Record]) -> Results:
    """Pair finished runs on tables."""
    return paired(records, table_regret, TABLES)


def table_regret(record: Record) -> Floats:
    """Return the regret after each evaluation of a table, ``[trials]``.

    A run that ended early, because its table was exhausted, stays at what it had found.
    """
    reference = record["reference"]
    regret = statistics.normalised_regret(record["values"], reference["best"], reference["worst"])
    return np.pad(regret, (0, max(0, record["trials"] - len(regret))), mode="edge")


def paired(
    records: Sequence[Record], regret_of: Callable[[Record], Floats], protocol: Protocol
) -> Results:
    """Keep what every sampler finished; the shortest run sets the length."""
    index, runs = paired_runs(records)
    curves = [regret_of(record) for record in runs]
    length = min(map(len, curves))
    steps = range(1, 1 + length)
    # Seconds that are not known; a table that was exhausted ended them, and its curve goes on.
    rest = [np.nan] * length
    seconds = [[*record.get("ask_seconds", ()), *rest][:length] for record in runs]
    regret = pd.DataFrame([curve[:length] for curve in curves], index, steps)
    return Results(regret, pd.DataFrame(seconds, index, steps), protocol)
