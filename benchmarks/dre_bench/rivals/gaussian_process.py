"""A Gaussian process as people use it today: BoTorch's, with its own priors.

The "GP" among the paper's baselines is the same model with older defaults; BoTorch's
`SingleTaskGP` has log-normal priors on the lengthscales that grow with the dimension (Hvarfner et
al., 2024), and the logarithm of the expected improvement (Ament et al., 2023).
"""

from __future__ import annotations

import torch
from botorch import settings
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from dre_bench.rivals.protocol import CHUNK, TableMethod


class GP(TableMethod):
    """Choose the row of the largest expected improvement of BoTorch's Gaussian process."""

    def _acquisition_values(self, observed: Tensor, values: Tensor, pending: Tensor) -> Tensor:
        # Equal values cannot be standardised, which is no reason to warn.
        with settings.validate_input_scaling(False):
            model = SingleTaskGP(observed, values[:, None], outcome_transform=Standardize(m=1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        acquisition = LogExpectedImprovement(model, best_f=values.max())
        with torch.no_grad():
            return torch.cat([acquisition(part[:, None]) for part in pending.split(CHUNK)])
