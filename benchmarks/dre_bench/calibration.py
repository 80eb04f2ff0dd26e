"""How often true ranks lie in the intervals that the surrogate predicts: `dre-bench calibration`.

On tables all of whose values are known: a model is fitted to some rows, half of them among the
best fifth as in a study, and predicts the ranks of all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata

from dre_bench.runs import Sources
from dre_bench.samplers import prior_for
from dre_bench.table_contexts import contexts_of, in_contexts
from dre_bench.tables import Table, drawn_rows, tables_of, trials_of
from dre_bench.tasks import Split
from dre_plugins.engine.runtime import isolated
from dre_plugins.plots.calibration import INTERVALS, covered
from dre_plugins.recommend.recommender import Recommender
from dre_plugins.transfer.prior import Prior

# Probability of the interval that the factor makes true.
FITTED = 0.8
GOOD_SHARE = 0.2


@dataclass(frozen=True)
class Coverage:
    """Hold how wrong predicted ranks are.

    Attributes:
        scenario: Name of the tables.
        trials: Rows that the model was fitted to; 0: as many as in each of several others.
        errors: Errors of predicted ranks, in units of what was predicted for them.
    """

    scenario: str
    trials: int
    errors: NDArray[np.float64]

    @property
    def covered(self) -> tuple[float, ...]:
        """Shares of true ranks within the intervals of `INTERVALS`."""
        return tuple(covered(self.errors, interval) for interval in INTERVALS)

    @property
    def factor(self) -> float:
        """Factor of the spread with which the interval of `FITTED` covers what it says."""
        half_width = norm.ppf(0.5 + 0.5 * FITTED)  # of the interval, in standard errors
        return float(np.quantile(np.abs(self.errors), FITTED) / half_width)


def pooled(parts: Sequence[Coverage]) -> Coverage:
    """Return several coverages as one."""
    return Coverage("all", 0, np.concatenate([part.errors for part in parts]))


def coverages(
    sources: Sources,
    scenarios: Sequence[str],
    trials: Sequence[int],
    *,
    split: Split,
    prior: str | None,
    n_tasks: int,
) -> Iterator[Coverage]:
    """Compare predicted with true ranks.

    Args:
        sources: Where data lie.
        scenarios: Names of tables.
        trials: Numbers of rows to fit to.
        split: Which tasks.
        prior: "shipped", a name or a path of a prior; None starts from random weights.
        n_tasks: At most so many tasks of each scenario.
    """
    for name in scenarios:
        tables = tables_of(sources, name)
        loaded = None
        if prior is not None:
            loaded = Prior.load(prior_for(name, prior))
            loaded = in_contexts(loaded, contexts_of(loaded, tables.metadata("train")))
        for n in trials:
            tasks = tables.tasks(split)[:n_tasks]
            errors = [
                _errors(tables.table(task, 0), n, place, loaded)
                for place, task in enumerate(tasks)
            ]
            yield Coverage(name, n, np.concatenate(errors))


@isolated(n_threads=1)
def _errors(table: Table, n: int, seed: int, prior: Prior | None) -> NDArray[np.float64]:
    rng = np.random.default_rng([seed, n])
    values = table.values
    good = np.argsort(-values)[: round(GOOD_SHARE * len(values))]
    rows = drawn_rows(good, len(values), n, rng)
    trials = trials_of(table.space, table.units[rows], values[rows])
    recommender = Recommender(table.space, seed=seed, prior=prior)
    model = recommender.ensemble(trials, index=len(trials), candidates=table.units)
    rest = np.setdiff1d(np.arange(len(values)), rows)
    mean, spread = model.predicted(table.units[rest])
    errors: NDArray[np.float64] = (rankdata(-values)[rest] - mean) / spread
    return errors
