"""Tables of Syne Tune's blackbox repository: lcbench, fcnet, nasbench201, pd1, tabrepo, …

    NAME               the entry's first metric
    NAME/METRIC        another one: lcbench/val_accuracy
    NAME/METRIC/max    one of which nothing here says whether large or small values are good

Values are those at the highest fidelity, means over seeds. An entry is downloaded from the Hugging
Face Hub when it is first used; tasks are split by position, as those of scenarios are.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import numpy as np

from dre_bench.runs import Sources
from dre_bench.tables import MetaTables
from dre_bench.tasks import Split, split_by_position
from dre_plugins.transfer.metadata import MetaDataset

if TYPE_CHECKING:
    from syne_tune.blackbox_repository.blackbox_tabular import BlackboxTabular
    from syne_tune.optimizer.schedulers.transfer_learning import (
        transfer_learning_task_evaluation as offline,
    )

    from dre_plugins.adapters.common.past_tasks import Mode

# Words in the names of metrics that entries of the repository have.
LARGER = {"accuracy", "auc", "r2"}
SMALLER = {
    *("crps", "entropy", "error", "loss"),
    *("flops", "latency", "params", "runtime", "time"),
}


def read(_: Sources, name: str) -> MetaTables:
    """Return the tables of an entry of the repository.

    Raises:
        ValueError: There is no such entry or metric, nothing says which values are good, or what
            is needed is not installed or cannot be downloaded.
    """
    entry, metric, mode = [*name.split("/", 2), "", ""][:3]
    blackboxes = _loaded(entry)
    metrics = [*next(iter(blackboxes.values())).objectives_names]
    metric = metric or metrics[0]
    if metric not in metrics:
        raise ValueError(f"{entry!r} has no metric {metric!r}; it has {', '.join(metrics)}.")
    mode = mode or mode_of(entry, metric)
    if mode not in ("max", "min"):
        raise ValueError(f"mode must be max or min, got {mode!r} in {name!r}.")

    evaluations = {task: _final(blackbox, metric) for task, blackbox in blackboxes.items()}
    names = split_by_position([*evaluations])

    def load(split: Split) -> MetaDataset:
        return _metadata({task: evaluations[task] for task in names[split]}, cast("Mode", mode))

    return MetaTables(load)


def mode_of(entry: str, metric: str) -> Mode:
    """Return which values of a metric are good, by the words of its name.

    Raises:
        ValueError: The name does not tell.
    """
    words = {*re.split("[^a-z0-9]+", metric.lower())}
    is_larger, is_smaller = bool(words & LARGER), bool(words & SMALLER)
    if is_larger == is_smaller:
        raise ValueError(
            f"nothing says which values of {metric!r} are good: write {entry}/{metric}/max or "
            f"{entry}/{metric}/min."
        )
    return "max" if is_larger else "min"


def _metadata(
    evaluations: Mapping[str, offline.TransferLearningTaskEvaluations], mode: Mode
) -> MetaDataset:
    from dre_plugins.adapters.syne_tune.sources import metadata_from_experiments

    metadata = metadata_from_experiments(evaluations, mode=mode)
    if metadata.skipped:
        warnings.warn(f"tables lack {dict(metadata.skipped)}", stacklevel=2)
    return metadata


def _loaded(entry: str) -> Mapping[str, BlackboxTabular]:
    """Return the tasks of an entry."""
    try:
        from syne_tune.blackbox_repository import blackbox_list, load_blackbox

        if entry not in blackbox_list():
            entries = ", ".join(blackbox_list())
            raise ValueError(f"Syne Tune has no blackbox {entry!r}; it has {entries}.")
        loaded: Mapping[str, BlackboxTabular] = load_blackbox(entry)
    except ImportError as error:
        raise ValueError(
            f"syne-tune:{entry} needs more ({error}): pip install 'dre-plugins[syne-tune]' "
            "huggingface_hub fastparquet"
        ) from error
    except (KeyError, OSError) as error:  # Syne Tune cannot read all that it has written
        raise ValueError(f"syne-tune:{entry} cannot be downloaded or read: {error!r}") from error
    return loaded


def _final(blackbox: BlackboxTabular, metric: str) -> offline.TransferLearningTaskEvaluations:
    """Return the evaluations of one metric at the highest fidelity."""
    from syne_tune.optimizer.schedulers.transfer_learning import (
        transfer_learning_task_evaluation as offline,
    )

    place = [*blackbox.objectives_names].index(metric)
    highest = int(np.argmax(blackbox.fidelity_values))
    return offline.TransferLearningTaskEvaluations(
        configuration_space=blackbox.configuration_space,
        hyperparameters=blackbox.hyperparameters,
        objectives_names=[metric],
        objectives_evaluations=blackbox.objectives_evaluations[:, :, [highest]][..., [place]],
    )
