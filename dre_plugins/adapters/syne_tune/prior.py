"""What past experiments and evaluations of Syne Tune teach, as a prior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dre_plugins.adapters.common.past_tasks import Mode, learnt_prior, listed
from dre_plugins.adapters.syne_tune.history import logger
from dre_plugins.adapters.syne_tune.sources import Source, metadata_from_experiments
from dre_plugins.engine.settings import require
from dre_plugins.transfer.metadata import MetaDataset

if TYPE_CHECKING:
    from dre_plugins.transfer.prior import Prior


def prior_from_evaluations(
    evaluations: Source | Sequence[Source] | MetaDataset,
    metric: str,
    do_minimize: bool | None = True,
    *,
    past_metric: str | None = None,
    past_mode: Mode | None = None,
) -> Prior:
    """Learn a prior from a handful of past tasks, in seconds.

    For more than about 20 of them train one (`Prior.train`, `dre meta-train`). Parameters that
    have other names now are joined by `prior.with_mapping({"name now": "name then"})`.

    Args:
        evaluations: `TransferLearningTaskEvaluations` by the name of the task; or experiments:
            their folders, names, or what `load_experiment` returns; or a `MetaDataset`.
        metric: Name of the metric.
        do_minimize: Whether small values are good.
        past_metric: Name of the metric in the past; None: the same, or the only one there is.
        past_mode: "min" or "max"; None: what an experiment says, else as `do_minimize` does.

    Raises:
        ValueError: If nothing has the metric, or there is nothing to learn from.
    """
    if not isinstance(evaluations, MetaDataset):
        parts = listed(evaluations)
        tables = [table for part in parts if isinstance(part, Mapping) for table in part.values()]
        if tables:  # which do not say their mode
            past_metric = past_metric or _metric_of(tables, metric)
            past_mode = past_mode or ("min" if do_minimize else "max")
        evaluations = metadata_from_experiments(
            evaluations, metric=past_metric or metric, mode=past_mode
        )
    return learnt_prior(evaluations, logger)


def _metric_of(tables: Sequence[Any], metric: str) -> str:
    """Return a metric's name in evaluations, where it may be the only one under another name."""
    for table in tables:
        is_table = hasattr(table, "objectives_names")
        require(is_table, "evaluations", table, "TransferLearningTaskEvaluations by name")
    names = sorted({name for table in tables for name in table.objectives_names})
    if len(names) == 1:
        return str(names[0])
    if metric not in names:
        raise ValueError(
            f"The past evaluations have {names} and no {metric!r}: say by past_metric which one "
            "is meant."
        )
    return metric
