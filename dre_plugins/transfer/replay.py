"""Replays of past tasks: how soon would a sampler have found what is known to be best?

A past task is a table of evaluated configurations. A sampler picks one row after another, and
learns what each was worth only once it has picked it. Everything it can find has been evaluated
already, so a replay costs no evaluation.

Notation: `N` rows of a table, `K` picks; see docs/architecture.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dre_plugins.engine.acquisition import average_rank, get_acquisition
from dre_plugins.engine.fitting import FittingError
from dre_plugins.engine.runtime import isolated
from dre_plugins.engine.settings import PRESETS
from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.recommend.lists import TrialList, dense_ranks
from dre_plugins.recommend.mixture import Mixture, Part
from dre_plugins.recommend.prior import AlignedPrior
from dre_plugins.recommend.recommender import N_STARTUP_TRIALS
from dre_plugins.space.candidates import distinct
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.prior import Prior

Floats = NDArray[np.float64]

# The ways of picking that are compared.
PRIOR, FRESH, RANDOM, YOURS = "prior", "no prior", "random order", "your order"
WAYS = (PRIOR, FRESH, RANDOM, YOURS)

# A way has arrived when it is as near to the best as this share of the task's range of values.
GOAL = 0.01
# Fewer different configurations tell no way from another.
MIN_CONFIGURATIONS = 5
N_PICKS = 30

PRESET = PRESETS["default"]

# The members before they are fitted, by seed.
Start = Callable[[int], Part]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Hold the different configurations of a task that have a value, in the order of the task.

    Args:
        space: The search space.
        units: Canonical coordinates `[N, P]`.
        values: Final values `[N]`, larger is better.
    """

    space: SearchSpace
    units: Floats
    values: Floats

    @classmethod
    def of(cls, task: Task) -> Table:
        """Return the table of a task: what was evaluated again counts with its first value."""
        rows = np.flatnonzero(~np.isnan(task.values))
        rows = rows[distinct(task.units[rows], set())]
        return cls(task.space, task.units[rows], task.values[rows])

    def __len__(self) -> int:
        return len(self.values)

    @property
    def regret(self) -> Floats:
        """Return how far each row is from the best, as a share of the range of values `[N]`.

        Infinite values count as the best or the worst finite one.
        """
        finite = self.values[np.isfinite(self.values)]
        if not len(finite) or finite.min() == finite.max():
            return np.where(self.values == self.values.max(), 0.0, 1.0)
        # Halved, so that the range of any two floats is finite.
        halves = np.clip(self.values, finite.min(), finite.max()) / 2.0
        return np.asarray((halves.max() - halves) / (halves.max() - halves.min()))


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
        metadata: Past tasks.
        train: Makes a prior from the other tasks.
        names: The tasks to replay; None: all.
        n_picks: Most picks of a replay.
        seeds: One replay each; means are reported.
        n_threads: Threads of the surrogates.

    Yields:
        The replay of each task, or why there is none; one that fails does not end the others.

    Raises:
        ValueError: If there is no task of such a name.
    """
    everything = {task.name for task in metadata}
    for task in metadata if names is None else metadata.subset(names):
        reason = why_not(task)
        outcome: Replay | LeftOut = LeftOut(task.name, reason)
        if not reason:
            try:
                prior = train(metadata.subset(everything - {task.name})).on(task.space)
                outcome = replay(task, prior, n_picks=n_picks, seeds=seeds, n_threads=n_threads)
            # Nothing to learn from, nothing in common with this task, or numerics.
            except (ValueError, FittingError, FloatingPointError) as error:
                outcome = LeftOut(task.name, str(error))
        yield outcome


def why_not(task: Task) -> str:
    """Return why a task cannot be replayed; empty if it can."""
    table = Table.of(task)
    if len(table) < MIN_CONFIGURATIONS:
        return (
            f"it has {len(table)} different configurations with a value, fewer than "
            f"{MIN_CONFIGURATIONS}"
        )
    return "all of its values are the same" if np.unique(table.values).size == 1 else ""


def replay(
    task: Task,
    prior: AlignedPrior,
    *,
    n_picks: int = N_PICKS,
    seeds: Sequence[int] = (0,),
    n_threads: int = 1,
) -> Replay:
    """Replay a task, see `why_not` for which one can be.

    Args:
        task: The task; evaluations without a value are left out.
        prior: What is known about its search space.
        n_picks: Most picks; at most all rows of its table.
        seeds: One replay each; means are reported.
        n_threads: Threads of the surrogates.
    """
    table = Table.of(task)
    n_picks = min(n_picks, len(table))
    regret = table.regret
    aligned = prior.ensemble.to("cpu", n_threads)

    def with_prior(seed: int) -> Part:
        return Part(aligned, prior.encode, PRESET.from_prior)

    def without_prior(seed: int) -> Part:
        fresh = DeepRankingEnsemble.initialise(
            PRESET.scorer, task.space.n_features, seed=seed, n_threads=n_threads
        )
        return Part(fresh, task.space.features, PRESET.from_random)

    def generator(seed: int) -> np.random.Generator:
        # Named after the task, so that no draw of luck is shared by all tasks.
        return np.random.default_rng([seed, *task.name.encode()])

    with isolated("cpu", n_threads):
        rows = {
            PRIOR: [picks(table, with_prior, n_picks, 0, generator(seed)) for seed in seeds],
            FRESH: [
                picks(table, without_prior, n_picks, N_STARTUP_TRIALS, generator(seed))
                for seed in seeds
            ],
            YOURS: [np.arange(len(table))],
        }
    curves = {
        way: np.mean([best_so_far(regret[one[:n_picks]]) for one in orders], axis=0)
        for way, orders in rows.items()
    }
    needed = {
        way: float(np.mean([evaluations_needed(regret, one) for one in orders]))
        for way, orders in rows.items()
    }
    curves[RANDOM] = expected_best(regret, n_picks)
    needed[RANDOM] = evaluations_needed(regret, np.arange(0))
    return Replay(
        task.name,
        len(table),
        {way: curves[way] for way in WAYS},
        {way: needed[way] for way in WAYS},
    )


def picks(
    table: Table, start: Start, n_picks: int, n_random: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Return the rows that an ensemble picks, in order `[K]`.

    Args:
        table: What there is to pick from.
        start: The members that each pick starts from.
        n_picks: Number of picks K.
        n_random: How many of them are drawn at random before the ensemble takes over.
        rng: Source of everything random.
    """
    picked = rng.permutation(len(table))[: min(n_random, n_picks)]
    while len(picked) < n_picks:
        first, second = (int(number) for number in rng.integers(2**63, size=2))
        picked = np.append(picked, _next(table, start(first), picked, second))
    return picked


def _next(table: Table, part: Part, picked: NDArray[np.intp], seed: int) -> int:
    """Return the row of the largest acquisition; before the first pick, of the best mean rank."""
    values = table.values[picked]
    lists = [TrialList(picked, dense_ranks(values), 1.0)] if len(picked) else []
    # As in the paper, ranks are taken against the table itself.
    mixture = Mixture([part.fit(lists, table.units, seed, share=1.0)], table.units)
    ranks = mixture.ranks(table.units)
    if len(picked):
        incumbent = ranks[:, picked[np.argmax(values)]]
        value = get_acquisition(PRESET.acquisition)(ranks, incumbent).numpy()
    else:
        value = average_rank(ranks, ranks[:, 0]).numpy()
    value[picked] = -np.inf
    return int(np.argmax(value))


def best_so_far(regret: Floats) -> Floats:
    """Return the smallest regret up to each pick `[K]`."""
    return np.minimum.accumulate(regret)


def expected_best(regret: Floats, n_picks: int) -> Floats:
    """Return the expected smallest regret among 1, 2, … rows drawn without repeats `[K]`.

    Exact: the best i rows are all missed by k draws with probability C(N − i, k) / C(N, k), and
    each of them that is missed adds its distance to the next one.
    """
    ascending = np.sort(regret)
    n = len(ascending)
    missed = np.ones(n)  # by k draws so far: the best 0, 1, … N − 1 rows
    left = n - np.arange(n)  # rows beside these
    gaps = np.diff(ascending, prepend=0.0)
    expected = np.empty(n_picks)
    for k in range(n_picks):
        missed = missed * np.maximum(left - k, 0) / (n - k)
        expected[k] = missed @ gaps
    return expected


def evaluations_needed(regret: Floats, picked: NDArray[np.intp]) -> float:
    """Return after how many evaluations the regret is at most `GOAL`.

    Where no pick gets there, the rows that are left are taken in random order, which gets there
    after (rows left + 1) / (good rows + 1) more on average.

    Args:
        regret: Regret of all rows `[N]`.
        picked: Rows in the order in which they were picked `[K]`.
    """
    is_good = regret <= GOAL
    hits = np.flatnonzero(is_good[picked])
    if len(hits):
        return float(hits[0] + 1)
    return float(len(picked) + (len(regret) - len(picked) + 1) / (is_good.sum() + 1))


def mean_replay(replays: Sequence[Replay]) -> Replay:
    """Return means over tasks; a table that is exhausted stays at its best."""
    n_picks = max(len(one.regret[PRIOR]) for one in replays)
    return Replay(
        "mean",
        round(sum(one.n_configurations for one in replays) / len(replays)),
        {
            way: np.array(
                [
                    np.mean([one.regret_after(way, k) for one in replays])
                    for k in range(1, n_picks + 1)
                ]
            )
            for way in WAYS
        },
        {way: float(np.mean([one.needed[way] for one in replays])) for way in WAYS},
    )
