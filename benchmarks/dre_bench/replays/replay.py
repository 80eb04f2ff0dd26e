"""Replays of past tasks: how soon would a sampler have found what is known to be best?

A past task is a table of evaluated configurations. A sampler picks one row after another, and
learns the value of a row only after it has picked it. Everything it can find has been evaluated
already, so a replay costs no evaluation.

Notation: `N` rows of a table, `K` picks; see docs/architecture.md.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dre_bench.problems.tables import dre_chooser, visit
from dre_bench.tables import Table
from dre_plugins.engine.settings import FittingError
from dre_plugins.recommend.prior import UNIVERSAL, PriorLike
from dre_plugins.recommend.recommender import Recommender
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.space.seen import distinct
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.prior import Prior

Floats = NDArray[np.float64]

# The ways of picking that are compared.
PRIOR, NO_PRIOR, RANDOM, YOURS = "prior", "no prior", "random order", "your order"
WAYS = (PRIOR, NO_PRIOR, RANDOM, YOURS)

# A way has arrived when it is as near to the best as this share of the task's range of values.
GOAL = 0.01
# Fewer different configurations tell no way from another.
MIN_CONFIGURATIONS = 5
N_PICKS = 30


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """Hold what every way of picking would have found on one task.

    Args:
        task: Name of the task.
        n_configurations: Rows of its table.
        regret: By way: regret of the best row after each pick `[K]`, mean over seeds.
        needed: By way: evaluations until the regret is at most `GOAL`, mean over seeds.
    """

    task: str
    n_configurations: int
    regret: Mapping[str, Floats]
    needed: Mapping[str, float]

    def regret_after(self, way: str, n_picks: int) -> float:
        """Return the regret of one way after so many picks, or after the last one."""
        curve = self.regret[way]
        return float(curve[min(n_picks, len(curve)) - 1])

    def saved(self, way: str) -> float:
        """Return how many evaluations fewer than the user's own order a way needs."""
        return self.needed[YOURS] - self.needed[way]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Say why a task cannot be replayed."""

    task: str
    reason: str


def leave_one_out(
    metadata: MetaDataset,
    train: Callable[[MetaDataset], Prior],
    *,
    names: Collection[str] | None = None,
    n_picks: int = N_PICKS,
    seeds: Sequence[int] = (0,),
    n_threads: int = 1,
) -> Iterator[Replay | LeftOut]:
    """Replay one task after the other, each with a prior of the others.

    Args:
        names: The tasks to replay; None: all.
        n_picks: Most picks of a replay.
        seeds: One replay each; means are reported.

    Yields:
        The replay of each task, or why there is none; one that fails does not end the others.

    Raises:
        ValueError: If there is no task of such a name.
    """
    everything = {task.name for task in metadata}
    for task in metadata if names is None else metadata.subset(names):
        try:
            check_replayable(task)
            prior = train(metadata.subset(everything - {task.name}))
            yield replay(task, prior, n_picks=n_picks, seeds=seeds, n_threads=n_threads)
        # Nothing to pick from or learn from, nothing in common with this task, or numerics.
        except (ValueError, FittingError, FloatingPointError) as error:
            yield LeftOut(task.name, str(error))


def table_of(task: Task) -> Table:
    """Return the different configurations of a task that have a value, in its order.

    What was evaluated again counts with its first value.
    """
    rows = np.flatnonzero(~np.isnan(task.values))
    rows = rows[distinct(task.units[rows])]
    return Table(task.space, task.units[rows], task.values[rows], start=[])


def regrets_of(values: Floats) -> Floats:
    """Return how far each value is from the best, as a share of their range `[N]`.

    Infinite values count as the best or the worst finite one.
    """
    finite = values[np.isfinite(values)]
    if not len(finite) or finite.min() == finite.max():
        return np.where(values == values.max(), 0.0, 1.0)
    # Halved, so that the range of any two floats is finite.
    halves = np.clip(values, finite.min(), finite.max()) / 2.0
    return np.asarray((halves.max() - halves) / (halves.max() - halves.min()))


def check_replayable(task: Task) -> None:
    """Raise a ValueError that says why a task cannot be replayed, unless it can."""
    values = table_of(task).values
    if len(values) < MIN_CONFIGURATIONS:
        raise ValueError(
            f"it has {len(values)} different configurations with a value, fewer than "
            f"{MIN_CONFIGURATIONS}"
        )
    if np.unique(values).size == 1:
        raise ValueError("all of its values are the same")


def replay(
    task: Task,
    prior: PriorLike,
    *,
    n_picks: int = N_PICKS,
    seeds: Sequence[int] = (0,),
    n_threads: int = 1,
) -> Replay:
    """Replay a task, see `check_replayable` for which one can be.

    Args:
        task: The task; evaluations without a value are left out.
        n_picks: Most picks; at most all rows of its table.
    """
    table = table_of(task)
    n_rows = len(table.values)
    n_picks = min(n_picks, n_rows)
    settings = RecommenderSettings(n_threads=n_threads)
    # Seeded by the name of the task, so that tasks do not share random draws.
    hashes = [zlib.crc32(f"{task.name}/{seed}".encode()) for seed in seeds]
    orders: dict[str, list[list[int]]] = {YOURS: [[*range(n_rows)]]}
    for way, way_prior in ((PRIOR, prior), (NO_PRIOR, UNIVERSAL)):
        for seed in hashes:
            recommender = Recommender(task.space, settings, seed=seed, prior=way_prior)
            rows, _ = visit(dre_chooser(recommender, table), table, n_picks)
            orders.setdefault(way, []).append(rows)
    regret = regrets_of(table.values)
    curves = {RANDOM: expected_best(regret, n_picks)}
    needed = {RANDOM: evaluations_needed(regret, [])}
    for way, of_seeds in orders.items():
        best = [np.minimum.accumulate(regret[order[:n_picks]]) for order in of_seeds]
        curves[way] = np.mean(best, axis=0)
        needed[way] = float(np.mean([evaluations_needed(regret, order) for order in of_seeds]))
    by_way = {way: curves[way] for way in WAYS}, {way: needed[way] for way in WAYS}
    return Replay(task.name, n_rows, *by_way)


def expected_best(regret: Floats, n_picks: int) -> Floats:
    """Return the expected smallest regret among 1, 2, … rows drawn without repeats `[K]`.

    Exact: the best i rows are all missed by k draws with probability C(N − i, k) / C(N, k), and
    each of them that is missed adds its distance to the next one.
    """
    ascending = np.sort(regret)
    n = len(ascending)
    missed = np.ones(n)  # by k draws so far: the best 0, 1, … N − 1 rows
    beside = n - np.arange(n)  # rows beside these
    gaps = np.diff(ascending, prepend=0.0)
    expected = np.empty(n_picks)
    for k in range(n_picks):
        missed = missed * np.maximum(beside - k, 0) / (n - k)
        expected[k] = missed @ gaps
    return expected


def evaluations_needed(regret: Floats, picked: Sequence[int]) -> float:
    """Return after how many evaluations the regret is at most `GOAL`.

    Where no pick gets there, the rows that are left are taken in random order, which gets there
    after (rows left + 1) / (good rows + 1) more on average.

    Args:
        regret: Regret of all rows `[N]`.
        picked: Rows in the order in which they were picked `[K]`.
    """
    is_good = regret <= GOAL
    hits = [place for place, row in enumerate(picked) if is_good[row]]
    if hits:
        return float(hits[0] + 1)
    return float(len(picked) + (len(regret) - len(picked) + 1) / (is_good.sum() + 1))


def mean_replay(replays: Sequence[Replay]) -> Replay:
    """Return means over tasks; a table that is exhausted stays at its best."""
    steps = range(1, max(len(entry.regret[PRIOR]) for entry in replays) + 1)
    curves: dict[str, Floats] = {
        way: np.mean([[entry.regret_after(way, k) for k in steps] for entry in replays], axis=0)
        for way in WAYS
    }
    needed = {way: float(np.mean([entry.needed[way] for entry in replays])) for way in WAYS}
    n_configurations = round(sum(entry.n_configurations for entry in replays) / len(replays))
    return Replay("mean", n_configurations, curves, needed)
