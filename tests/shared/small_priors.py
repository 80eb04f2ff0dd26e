"""Small priors, trained on tasks that a formula makes."""

from dataclasses import replace

import lists_of_tasks
import numpy as np
import torch
from lists_of_tasks import SCORER
from small_spaces import drawn

from dre_plugins.space import Categorical, Condition, Float, Integer, SearchSpace
from dre_plugins.transfer import prior as prior_module
from dre_plugins.transfer.meta_training import MetaTrainingSettings
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.prior import Prior

QUICK = replace(lists_of_tasks.QUICK, n_steps=30, validate_every=10)

DOMAINS = {
    "learning_rate": Float(1e-4, 1.0, "log"),
    "max_depth": Integer(1, 12),
    "booster": Categorical(("tree", "linear", "dart")),
    "rate_drop": Float(0.0, 1.0),
}
DROPS = Condition("rate_drop", "booster", ("dart",))
SPACE = SearchSpace(DOMAINS, [DROPS])
DEFAULTS = {"max_depth": 6}


def let_them_be_small(set_attribute=setattr) -> None:
    """Let priors of beliefs be small networks, which are trained in a tenth of a second."""
    scorer = replace(prior_module.SCORER, n_members=4, hidden=(16, 16))
    set_attribute(prior_module, "SCORER", scorer)
    settings = MetaTrainingSettings(n_steps=100, learning_rate=0.01, n_lists=2, list_length=40)
    set_attribute(prior_module, "OF_BELIEFS", settings)


def task(name: str, seed: int = 0, space: SearchSpace = SPACE, n: int = 30) -> Task:
    units = drawn(space, n, seed)
    values = -np.square(units[:, 0] - 0.4) + 0.01 * seed
    return Task(name, space, units, values, np.zeros(n, dtype=np.bool_))


def metadata(n_tasks: int = 3, space: SearchSpace = SPACE) -> MetaDataset:
    tasks = [task(f"task {i}", i, space) for i in range(n_tasks)]
    return MetaDataset.of(tasks, source="a formula", licence="CC0-1.0")


def small(data: MetaDataset, **options) -> Prior:
    return Prior.train(
        data, **{"scorer": SCORER, "settings": QUICK, "defaults": DEFAULTS} | options
    )


def of_a_formula() -> Prior:
    return small(metadata(), name="formula", description="One formula.", rebuild="make formula")


def scores(prior: Prior, space: SearchSpace, units: np.ndarray) -> torch.Tensor:
    aligned = prior.on(space)
    return aligned.ensemble.scores(torch.from_numpy(aligned.encode(units)))
