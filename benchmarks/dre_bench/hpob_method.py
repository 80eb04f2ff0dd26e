"""Our ensemble as a method that HPO-B drives: which row of a table to evaluate next.

Columns are anonymous numbers in [0, 1]. The interface is that of HPO-B (Pineda Arango et al.,
2021): its `HPOBHandler.evaluate` and `evaluate_continuous` drive `DRETable` unmodified.

Notation: `N` observed rows, `C` pending rows, `D` columns.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dre_bench.rivals.protocol import rows_of
from dre_bench.table_contexts import contexts_of, in_contexts
from dre_bench.tables import trials_of
from dre_plugins.adapters.common.options import seed_from
from dre_plugins.checks import require
from dre_plugins.recommend.prior import AUTO, UNIVERSAL, GivenPrior, LoadedPrior
from dre_plugins.recommend.recommender import Recommender
from dre_plugins.recommend.settings import RecommenderSettings, Settings, checked_settings
from dre_plugins.space import Float, SearchSpace
from dre_plugins.space.seen import Seen
from dre_plugins.study.arguments import prior_from
from dre_plugins.transfer.metadata import MetaDataset
from dre_plugins.transfer.prior import Prior

Matrix = NDArray[np.float64]

logger = logging.getLogger("dre_plugins")


class DRETable:
    """Choose rows of a table by a deep ranking ensemble (Khazi et al., ICLR 2023).

    All rows, observed and pending, are ranked against each other, as in the paper. A suggestion
    is a function of the data, the seed and the number of observations only: nothing is kept
    between calls but counters.

    Example:
        ```python
        method = DRETable(seed=0)
        handler.evaluate(method, search_space_id, dataset_id, "test0", n_trials=100)
        ```

    Args:
        seed: Non-negative seed. None takes one from the operating system, once.
        prior: What is known beforehand, see `DRESampler`. Parameters of a trained prior and
            the columns are matched by name.
        past: Tasks that a trained prior has learnt from; in a table, its members read their
            contexts, see `table_contexts`. None: the context of the observed rows.
        names: Names of the columns; None: "x0", "x1", …, as HPO-B names them.
        n_startup_trials: Rows that must be observed before the surrogate takes over; until then
            pending rows are drawn at random. Benchmarks give the first rows themselves.
        failed: What NaN values mean: "worst" ranks these rows last, "ignore" leaves them out.
        settings: What most users leave as it is, see `dre_plugins.Settings`.

    Attributes:
        stats: Counters of `dre_plugins.Recommender`: "suggestions", their sources, "fallbacks".

    Raises:
        ValueError: If an argument is invalid, or the prior knows none of the columns.
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        prior: GivenPrior = UNIVERSAL,
        past: MetaDataset | None = None,
        names: Sequence[str] | None = None,
        n_startup_trials: int = 0,
        failed: str = "worst",
        settings: Settings | None = None,
    ) -> None:
        self._seed = seed_from(seed)
        is_one = not isinstance(prior, (list, tuple))
        require(is_one, "prior", prior, "one prior: a table has one column of values")
        require(prior != AUTO, "prior", prior, "named: columns in [0, 1] do not tell a learner")
        self._settings = checked_settings(settings).for_recommender(
            n_startup_trials=n_startup_trials, failed=failed
        )
        self._prior = self._table_prior = prior_from(prior, self._settings.preset)
        if past is not None:
            if not isinstance(self._prior, Prior):
                raise ValueError(f"past needs a trained prior, got {prior!r}.")
            contexts = contexts_of(self._prior, past)
            self._table_prior = in_contexts(self._prior, contexts)
        self._recommender: Recommender | None = None
        self.stats: Counter[str] = Counter()
        if names is not None:
            distinct = len(set(names)) == len(names) > 0
            require(distinct, "names", names, "different, and at least one")
            self._recommender = self._new_recommender(names)

    @overload
    def observe_and_suggest(
        self, X_observed: ArrayLike, y_observed: ArrayLike, X_pending: ArrayLike
    ) -> int: ...

    @overload
    def observe_and_suggest(
        self, X_observed: ArrayLike, y_observed: ArrayLike, X_pending: None = None
    ) -> Matrix: ...

    def observe_and_suggest(
        self, X_observed: ArrayLike, y_observed: ArrayLike, X_pending: ArrayLike | None = None
    ) -> int | Matrix:
        """Return which pending row to evaluate next, or which point of the whole space.

        Args:
            X_observed: What was evaluated `[N, D]`; clipped to [0, 1].
            y_observed: Its values `[N]` or `[N, 1]`, larger is better; only their order counts,
                and NaN means that the evaluation failed.
            X_pending: What may be evaluated `[C, D]`; clipped to [0, 1]. None: any point of
                [0, 1]^D, as in the continuous part of HPO-B.

        Returns:
            An index into `X_pending`, or a point `[D]`. Rows that equal an observed one are
            chosen only when all of them do.

        Raises:
            ValueError: If the arrays do not fit each other, X is not finite, or nothing pends.
        """
        observed = rows_of("X_observed", X_observed).numpy()
        values = np.asarray(y_observed, dtype=np.float64).reshape(-1)
        require(len(values) == len(observed), "y_observed", values.shape, f"[{len(observed)}]")
        if X_pending is None:
            recommender = self._recommender_of(observed.shape[1])
            history = trials_of(recommender.space, observed, values)
            return recommender.suggest(history, index=len(values))[0].units
        pending = rows_of("X_pending", X_pending).numpy()
        require(len(pending) > 0, "X_pending", pending.shape, "of at least one row")
        if len(observed):
            remedy = f"of {pending.shape[1]} columns, as X_pending"
            fits = observed.shape[1] == pending.shape[1]
            require(fits, "X_observed", observed.shape, remedy)
        recommender = self._recommender_of(pending.shape[1])
        table = np.concatenate([observed, pending]) if len(observed) else pending
        seen = Seen()
        if len(observed):
            seen.include(observed)
        settings = self._settings
        if seen.has(pending).all():
            # Nothing else is left than to suggest again what was observed.
            settings, table = replace(settings, allow_duplicates=True), pending
        recommender = self._recommender_for(recommender.space, settings, self._table_prior)
        history = trials_of(recommender.space, observed, values)
        chosen = recommender.suggest(history, index=len(values), candidates=table)[0]
        return int(np.abs(pending - chosen.units).max(axis=1).argmin())

    def _recommender_of(self, n_columns: int) -> Recommender:
        """Return the recommender for tables of so many columns, made at the first call."""
        if self._recommender is None:
            self._recommender = self._new_recommender([f"x{i}" for i in range(n_columns)])
        names = self._recommender.space.names
        remedy = f"of {len(names)} columns, {', '.join(names)}; make another DRETable for others"
        require(len(names) == n_columns, "X", f"{n_columns} columns", remedy)
        return self._recommender

    def _new_recommender(self, names: Sequence[str]) -> Recommender:
        space = SearchSpace({name: Float(0.0, 1.0) for name in names})
        recommender = self._recommender_for(space, self._settings, self._prior)
        if recommender.prior_summary:
            logger.info(recommender.prior_summary)
        return recommender

    def _recommender_for(
        self, space: SearchSpace, settings: RecommenderSettings, prior: LoadedPrior
    ) -> Recommender:
        return Recommender(space, settings, seed=self._seed, stats=self.stats, prior=prior)
