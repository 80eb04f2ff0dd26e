"""How the prior of a learner is meta-trained."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dre_bench.learner_priors.favourites import portfolio
from dre_bench.learner_priors.tasks import LEARNERS, Tables, defaults_of, metadata_of, tables_of
from dre_plugins.engine.settings import ContextSettings, ScorerSettings
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.meta_training import MetaTrainingSettings
from dre_plugins.transfer.metadata import MetaDataset
from dre_plugins.transfer.prior import Prior

# Networks of this size make a file of about 150 KB.
SCORER = ScorerSettings(
    activation="silu", range_limit=None, centred=True, context=ContextSettings()
)
SETTINGS = MetaTrainingSettings(n_steps=300, validate_every=50, patience=4)
COMMAND = "python -m dre_bench.learner_priors --evaluations FILE"


def train(
    name: str, datasets: list[str], tables: Tables, left_out: Collection[str] = ()
) -> Prior | None:
    """Meta-train the prior of a learner; None if there is nothing to learn from.

    Args:
        name: A key of `LEARNERS`.
        datasets: Names of all data sets, as `read_tables` has them.
        tables: The evaluations.
        left_out: Data sets that must not be learnt from.
    """
    metadata = metadata_of(name, datasets, tables, left_out)
    if not len(metadata):
        return None
    prior = Prior.train(
        without_validation(metadata),
        validation=validation_of(metadata),
        name=name,
        description=f"{LEARNERS[name].title} on small tables, by accuracy, log loss, AUC or RMSE",
        defaults=defaults_of(name, tables),
        scorer=SCORER,
        settings=SETTINGS,
        rebuild=COMMAND,
    )
    members = portfolio_of(name, prior.space, datasets, tables, left_out)
    return prior if members is None else replace(prior, favourites=members[:1], portfolio=members)


def portfolio_of(
    name: str,
    space: SearchSpace,
    datasets: list[str],
    tables: Tables,
    left_out: Collection[str] = (),
) -> NDArray[np.float64] | None:
    """Return the first trials of a study, in order, coordinates `[F, P]` of the prior's space.

    Args:
        name: See `train`.
        space: The search space of the prior.
        datasets: See `train`.
        tables: See `train`.
        left_out: See `train`.
    """
    places = [place for place, dataset in enumerate(datasets) if dataset not in left_out]
    return portfolio(space, tables_of(name, tables), places)


def validation_of(metadata: MetaDataset) -> MetaDataset:
    """Return the tasks that decide when to stop: all metrics of every sixth data set."""
    datasets = sorted({dataset_of(task.name) for task in metadata})[5::6]
    return metadata.subset({t.name for t in metadata if dataset_of(t.name) in datasets})


def dataset_of(task: str) -> str:
    """Return the data set of a task's name.

    >>> dataset_of("regression/cpu by rmse")
    'regression/cpu'
    """
    return task.rpartition(" by ")[0]


def without_validation(metadata: MetaDataset) -> MetaDataset:
    """Return the tasks that weights are fitted to."""
    out = {task.name for task in validation_of(metadata)}
    return replace(metadata, tasks=tuple(task for task in metadata if task.name not in out))
