"""Small lists of past tasks, and settings to meta-train with them in a moment."""

from dataclasses import replace

import torch
from torch import Tensor

from dre_plugins.engine import ContextSettings, ScorerSettings
from dre_plugins.engine.ranks import rank_normalised
from dre_plugins.transfer.meta_training import MetaTrainingSettings
from dre_plugins.transfer.task_lists import TaskLists

PLAIN = ScorerSettings(
    n_members=2, hidden=(8, 8), activation="silu", range_limit=None, centred=True
)
SCORER = replace(PLAIN, context=ContextSettings(hidden=8, size=4))
QUICK = MetaTrainingSettings(
    n_steps=60, learning_rate=0.01, n_lists=4, list_length=12, max_support=8, validate_every=20
)


def padded(features: list[Tensor], values: list[Tensor]) -> TaskLists:
    lengths = torch.tensor([len(row) for row in values])
    x = torch.nn.utils.rnn.pad_sequence(features, batch_first=True)
    y = torch.nn.utils.rnn.pad_sequence(values, batch_first=True)
    mask = torch.arange(y.shape[1]) < lengths[:, None]
    return TaskLists(x, rank_normalised(y, mask), lengths, torch.ones(len(lengths)))


def numbered(*lengths: int) -> TaskLists:
    """Lists whose features are the number of the list and that of the entry, counted from 1."""
    features = [
        torch.stack([torch.full((n,), row + 1.0), torch.arange(1.0, n + 1)], dim=1)
        for row, n in enumerate(lengths)
    ]
    return padded(features, [torch.arange(float(n)) for n in lengths])
