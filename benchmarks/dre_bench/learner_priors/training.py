"""How the prior of a learner is meta-trained."""

from __future__ import annotations

from dataclasses import replace

from dre_bench.learner_priors.tasks import LEARNERS, Tables, defaults_of
from dre_plugins.engine.settings import ContextSettings, ScorerSettings
from dre_plugins.transfer.meta_training import MetaTrainingSettings
from dre_plugins.transfer.metadata import MetaDataset
from dre_plugins.transfer.prior import Prior

# Networks of this size make a file of about 150 KB.
SCORER = ScorerSettings(
    activation="silu", range_limit=None, centred=True, context=ContextSettings()
)
SETTINGS = MetaTrainingSettings(n_steps=300, validate_every=50, patience=4)
COMMAND = "python -m dre_bench.learner_priors --evaluations FILE --out FOLDER"


def train(name: str, metadata: MetaDataset, tables: Tables) -> Prior:
    """Meta-train the prior of a learner.

    Args:
        name: A key of `LEARNERS`.
        metadata: Its past tasks, see `tasks.metadata_of`.
        tables: The evaluations, which say what the library's defaults are.
    """
    return Prior.train(
        without_validation(metadata),
        validation=validation_of(metadata),
        name=name,
        description=f"{LEARNERS[name].title} on small tables, by accuracy, log loss, AUC or RMSE",
        defaults=defaults_of(name, tables),
        scorer=SCORER,
        settings=SETTINGS,
        rebuild=COMMAND,
    )


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
