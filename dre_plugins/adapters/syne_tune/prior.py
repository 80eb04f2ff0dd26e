"""Priors from past experiments of Syne Tune and offline evaluations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dre_plugins.adapters.common import past_tasks
from dre_plugins.adapters.common.limits import Limits
from dre_plugins.adapters.common.past_tasks import Mode, TaskDefinition
from dre_plugins.adapters.syne_tune.history import check_objective, logger
from dre_plugins.adapters.syne_tune.sources import Source, tasks_in
from dre_plugins.checks import require
from dre_plugins.transfer.metadata import MetaDataset
from dre_plugins.transfer.past_tasks import PastTasks


def prior_from_evaluations(
    evaluations: Source | Sequence[Source] | MetaDataset,
    metric: str,
    do_minimize: bool = True,
    *,
    past_metric: str | None = None,
    past_mode: Mode | None = None,
    constraints: Mapping[str, Any] | None = None,
) -> PastTasks:
    """Read past tasks for the argument `prior` of a scheduler or searcher.

    If there are more than a hundred, use `Prior.train` or `dre meta-train`. Parameters that have
    other names now are matched by `prior.with_mapping({"name now": "name then"})`.

    Args:
        evaluations: `TransferLearningTaskEvaluations` by the name of the task; or experiments:
            their folders, names, or what `load_experiment` returns; or a `MetaDataset`.
        metric: Name of the metric.
        do_minimize: Whether small values are good.
        past_metric: Name of the metric in the past; None: the same, or the only one there is.
        past_mode: "min" or "max"; None: what an experiment says, else as `do_minimize` does.
        constraints: Limits on other metrics, see `DRE`; trials that break one have failed.
            It, `past_metric` and `past_mode` are refused beside a `MetaDataset`, which is read.

    Raises:
        ValueError: If nothing has the metric, there is nothing to learn from, or an argument is
            wrong.
    """
    check_objective(metric, do_minimize)
    if isinstance(evaluations, MetaDataset):
        given = {"past_metric": past_metric, "past_mode": past_mode, "constraints": constraints}
        for name, value in given.items():
            remedy = "left out beside a MetaDataset: give it to metadata_from_experiments"
            require(value is None, name, value, remedy)
    else:
        parts = past_tasks.listed(evaluations)
        tables = [table for part in parts if isinstance(part, Mapping) for table in part.values()]
        if tables:
            past_metric = past_metric or _metric_of(tables, metric)
        otherwise: Mode = "min" if do_minimize else "max"
        limits = Limits.of(constraints)
        wanted = TaskDefinition(past_metric or metric, past_mode, limits, otherwise=otherwise)
        evaluations = tasks_in(evaluations, wanted)
    return past_tasks.past_tasks_in(evaluations, logger)


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
