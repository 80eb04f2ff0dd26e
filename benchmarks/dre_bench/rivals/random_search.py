"""Random search (Bergstra and Bengio, 2012): the baseline of all baselines."""

from __future__ import annotations

import torch
from torch import Tensor

from dre_bench.rivals.protocol import TableMethod


class Random(TableMethod):
    """Choose any pending row with equal probability."""

    def _acquisition_values(self, observed: Tensor, values: Tensor, pending: Tensor) -> Tensor:
        return torch.rand(len(pending), dtype=torch.float64)
