"""The table protocol of the paper: which of many known configurations to look at next.

All methods begin with the same rows, then choose one row after another among those that are left.
Methods are "random", "dre", the classes of `dre_bench.rivals` (see `BASELINES`), variants of
ours (`ablation:NAME`, see `problems.ablations`), or the import path of any class with HPO-B's
`observe_and_suggest(X_observed, y_observed, X_pending)`. Arguments follow a colon:
"deep-ensemble:n_members=10", "dre:prior=shipped"; "dre:prior=trained" meta-trains a prior on the
training split. Baselines that learn from past tasks are given those of the training split, once a
process and outside of the time a step. Baselines see the features of the space as columns; ours
sees the space.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Protocol, TypeAlias

import numpy as np

from dre_bench.names import imported
from dre_bench.problems import ablations
from dre_bench.runs import Record, Run, Sources
from dre_bench.samplers import parse_arguments, prior_for
from dre_bench.table_contexts import contexts_of, in_contexts
from dre_bench.tables import Table, Units, row_keys, tables_of, trials_of
from dre_plugins.recommend.prior import UNIVERSAL, LoadedPrior
from dre_plugins.recommend.recommender import Recommender
from dre_plugins.recommend.settings import RecommenderSettings
from dre_plugins.recommend.trials import Trial
from dre_plugins.transfer.prior import Prior

# Rows seen -> next row.
Chooser: TypeAlias = Callable[[list[int]], int]

BASELINES = {
    "gp": "dre_bench.rivals.gaussian_process.GP",
    "deep-ensemble": "dre_bench.rivals.deep_ensemble.DeepEnsemble",
    "dkgp": "dre_bench.rivals.deep_kernel_gp.DKGP",
    "fsbo": "dre_bench.rivals.deep_kernel_gp.FSBO",
    "rgpe": "dre_bench.rivals.rgpe.RGPE",
    "tst": "dre_bench.rivals.two_stage.TST",
    "taf": "dre_bench.rivals.two_stage.TAF",
    "random": "dre_bench.rivals.random_search.Random",
}
# These combine models of past tasks, which take minutes to fit, and are all the same.
COMBINING = ("rgpe", "tst", "taf")


class Method(Protocol):
    """Describe what chooses rows of a table, as HPO-B does."""

    def observe_and_suggest(
        self, X_observed: Units, y_observed: Units, X_pending: Units, /
    ) -> int:
        """Return an index into `X_pending` `[C, D]`, from `[N, D]` and values `[N, 1]`."""


def visit_table(sources: Sources, run: Run) -> Record:
    """Visit rows of a task's table.

    Returns:
        ``rows``, of which the first ``n_initial`` were given; their ``values``, ``ask_seconds``;
        ``reference``: best and worst value of the table.

    Raises:
        ValueError: There is no such method or task.
    """
    table = tables_of(sources, run.scenario).table(run.task, run.seed)
    choose = _chooser(sources, run, table)
    rows, seconds = visit(choose, table, run.trials)
    return {
        "rows": rows,
        "n_initial": len(table.start),
        "values": [float(value) for value in table.values[rows]],
        "ask_seconds": seconds,
        "reference": {
            "best": float(np.nanmax(table.values)),
            "worst": float(np.nanmin(table.values)),
        },
    }


def visit(choose: Chooser, table: Table, n: int) -> tuple[list[int], list[float]]:
    """Return the rows that are looked at, and the seconds that each choice took.

    Args:
        choose: Returns the next row.
        table: Holds the rows to begin with, whose choice takes no time.
        n: How many rows in all; fewer if the table is exhausted.
    """
    rows = [*table.start]
    seconds = [0.0] * len(rows)
    while len(rows) < min(n, len(table.values)):
        start = time.perf_counter()
        rows.append(choose(rows))
        seconds.append(round(time.perf_counter() - start, 5))
    return rows, seconds


def method_chooser(method: Method, table: Table) -> Chooser:
    """Return how a method chooses, which sees nothing but columns."""
    X, y = table.features, table.values[:, None]

    def choose(rows: list[int]) -> int:
        pending = np.delete(np.arange(len(X)), rows)
        return int(pending[method.observe_and_suggest(X[rows], y[rows], X[pending])])

    return choose


def dre_chooser(recommender: Recommender, table: Table) -> Chooser:
    """Return how a recommender chooses, which sees the search space."""
    # Of rows that are equal, the first one counts.
    row_of = {key: row for row, key in reversed([*enumerate(row_keys(table.units))])}
    history: list[Trial] = []

    def choose(rows: list[int]) -> int:
        new = rows[len(history) :]
        history.extend(trials_of(table.space, table.units[new], table.values[new]))
        suggestion = recommender.suggest(history, index=len(rows), candidates=table.units)[0]
        return row_of[row_keys(suggestion.units[None])[0]]

    return choose


def _chooser(sources: Sources, run: Run, table: Table) -> Chooser:
    """Return how the method of a run chooses.

    Raises:
        ValueError: If there is no such method.
    """
    name, _, arguments = run.sampler.partition(":")
    if name == "ablation":
        variant = ablations.variant_of(arguments)
        prior = ablations.trained(sources, run.scenario, arguments)
        return dre_chooser(
            Recommender(table.space, variant.settings, seed=run.seed, prior=prior), table
        )
    options = parse_arguments(arguments)
    if name == "dre":
        given = _prior(sources, run.scenario, options.pop("prior", UNIVERSAL))
        settings = RecommenderSettings(n_startup_trials=0, **options)
        recommender = Recommender(table.space, settings, seed=run.seed, prior=given)
        return dre_chooser(recommender, table)
    return method_chooser(_baseline(sources, run, name, options), table)


def _prior(sources: Sources, scenario: str, given: str | None) -> LoadedPrior:
    if given is None:
        return None
    if given == UNIVERSAL:
        return UNIVERSAL
    if given == "trained":
        return ablations.trained(sources, scenario, ablations.DEFAULT)
    return _loaded(sources, scenario, prior_for(scenario, given))


def _baseline(sources: Sources, run: Run, name: str, options: dict[str, Any]) -> Method:
    make = _class(name)
    if "past" not in inspect.signature(make).parameters:
        method: Method = make(**{"seed": run.seed, **options})
        return method
    # Learning from past tasks takes longest by far, and is the same for all seeds.
    learnt = _learnt(name, tuple(sorted(options.items())), sources, run.scenario)
    method = learnt.with_seed(run.seed)
    return method


def _class(name: str) -> Any:
    module, _, attribute = BASELINES.get(name, name).rpartition(".")
    if not module:
        names = ", ".join(["dre", "ablation:…", *BASELINES])
        raise ValueError(f"unknown method {name!r}; known: {names}, and import paths of classes.")
    return imported(f"method {name!r}", module, attribute)


@cache
def _learnt(name: str, options: Sequence[tuple[str, Any]], sources: Sources, scenario: str) -> Any:
    metadata = partial(tables_of(sources, scenario).metadata, "train")
    shares = name in COMBINING and not options
    return _class(name)(_models(sources, scenario) if shares else metadata(), **dict(options))


@cache
def _models(sources: Sources, scenario: str) -> Any:
    from dre_bench.rivals.past_models import PastModels

    metadata = tables_of(sources, scenario).metadata("train")
    return PastModels(metadata, 100, np.random.default_rng(0))


@cache
def _loaded(sources: Sources, scenario: str, name: str) -> Prior:
    prior = Prior.load(name)
    return in_contexts(prior, contexts_of(prior, tables_of(sources, scenario).metadata("train")))
