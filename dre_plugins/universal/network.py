"""The network of the universal prior: trials in, a mixture of Gaussian processes out.

It reads every feature separately, so it applies to any number of features and is invariant to the
order of features and of trials. Its output for a feature depends on the trials along that feature
and on the mean over all features. The first guess of each process is refined along the gradient of
its evidence, with learnt step sizes.

Notation: `B` tasks, `H` processes, `N` trials, `D` features, `W` width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from dre_plugins.engine.settings import require
from dre_plugins.universal.processes import Hypotheses, Processes

# Limits of the logarithms of lengthscales, noises and exponents of warps.
LENGTHSCALES = (-3.5, 6.0)
NOISES = (-8.0, 0.7)
WARP = 1.5
# Offsets of guesses: lengthscales grow with the number of features (Hvarfner et al., 2024), and
# those of different processes differ by a factor of up to 20.
LENGTHSCALE, BY_DIMENSION, SPREAD, NOISE = 0.3, 0.35, 1.5, -4.0
# Scale of the network's outputs in a guess, and of gradients in a refinement.
REACH, STEP = 3.0, 0.3
# Type and device of the weights, whatever the user's defaults are.
_KIND: Any = {"dtype": torch.float32, "device": "cpu"}


@dataclass(frozen=True, slots=True)
class UniversalSettings:
    """Choose the size of the network.

    Args:
        n_processes: Number H of Gaussian processes in the mixture.
        width: Width W of hidden layers.
        n_refinements: Number of refinements of the guesses.

    Raises:
        ValueError: If any is no integer, or outside its limits.
    """

    n_processes: int = 8
    width: int = 48
    n_refinements: int = 2

    def __post_init__(self) -> None:
        # Files have these numbers, too, and must not ask for more than fits into memory.
        limits = {"n_processes": (1, 64), "width": (1, 1024), "n_refinements": (0, 16)}
        for name, (low, high) in limits.items():
            value = getattr(self, name)
            is_integer = isinstance(value, int) and not isinstance(value, bool)
            remedy = f"an integer from {low} to {high}"
            require(is_integer and low <= value <= high, name, value, remedy)


class UniversalPrior(nn.Module):
    """Propose Gaussian processes for the trials of any task.

    Args:
        settings: Size of the network. Its weights are uninitialised; overwrite them.
    """

    def __init__(self, settings: UniversalSettings) -> None:
        super().__init__()
        self.settings = settings
        n, width = settings.n_processes, settings.width
        self.cell = _network(2, width, width)
        self.column = _network(2 * width + 3, width, width)
        self.task = _network(width, width, width)
        self.scales = _network(2 * width, width, n + 2)
        self.rest = _network(width, width, 2 * n)
        rounds = range(settings.n_refinements)
        self.scale_steps = nn.ModuleList(_network(2 * (width + n), width, n) for _ in rounds)
        self.noise_steps = nn.ModuleList(_network(width + 2 * n, width, n) for _ in rounds)
        self.spread = nn.Parameter(torch.linspace(-SPREAD, SPREAD, n, **_KIND))
        self.trust = nn.Parameter(torch.ones((), **_KIND))

    def forward(
        self, features: Tensor, targets: Tensor, mean_variance: float = 0.0
    ) -> tuple[Processes, Tensor]:
        """Return processes that are conditioned on trials, and how likely each is.

        Args:
            features: Features of the trials `[B, N, D]`, from 0 to 1.
            targets: Targets of the trials `[B, N]`, see `universal.targets`.
            mean_variance: Variance of the constant mean; at 0, as in training, the mean is 0.

        Returns:
            The processes, and the logarithms of their weights `[B, H]`.
        """
        columns, task = self._read(features, targets)
        hypotheses = replace(self._guess(columns, task), mean_variance=mean_variance)
        for scale_step, noise_step in zip(self.scale_steps, self.noise_steps, strict=True):
            processes = Processes.conditioned(hypotheses, features, targets)
            gradient = processes.gradient()
            by_scale, by_noise = (torch.asinh(part).to(features.dtype) / 2.0 for part in gradient)
            scales, noises = hypotheses.lengthscales, hypotheses.noises
            along = [columns, by_scale.mT, (scales.mT - 1.0) / 2.0]
            scales = scales + STEP * by_scale + scale_step(torch.cat(along, -1)).mT
            about = [task, by_noise, (noises - NOISE) / 2.0]
            noises = noises + STEP * by_noise + noise_step(torch.cat(about, -1))
            hypotheses = replace(
                hypotheses, lengthscales=scales.clamp(*LENGTHSCALES), noises=noises.clamp(*NOISES)
            )
        processes = Processes.conditioned(hypotheses, features, targets)
        # The likelihood is tempered, as no task is exactly a Matérn process.
        believed = hypotheses.weights + torch.sigmoid(self.trust) * processes.log_likelihood
        return processes, torch.log_softmax(believed, -1)

    def _read(self, features: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Return an encoding of each feature `[B, D, 2 W]`, and of the task `[B, W]`."""
        n_tasks, n_trials, n_features = features.shape
        along = targets[..., None].expand(-1, -1, n_features)
        cells = self.cell(torch.stack([2.0 * features - 1.0, along], -1))
        size = features.new_full((n_tasks, n_features), math.log(n_trials) / 4.0)
        moments = [features.mean(1), features.std(1, correction=0), size]
        pooled = [cells.mean(1), cells.amax(1), torch.stack(moments, -1)]
        columns = self.column(torch.cat(pooled, -1))
        task = self.task(columns.mean(1))
        return torch.cat([columns, task[:, None].expand(-1, n_features, -1)], -1), task

    def _guess(self, columns: Tensor, task: Tensor) -> Hypotheses:
        n = self.settings.n_processes
        outputs = self.scales(columns)
        middle = LENGTHSCALE + BY_DIMENSION * math.log(columns.shape[1])
        scales = middle + self.spread[None, :, None] + REACH * outputs[..., :n].mT
        noises, weights = (REACH * self.rest(task)).split(n, -1)
        return Hypotheses(
            scales.clamp(*LENGTHSCALES),
            (NOISE + noises).clamp(*NOISES),
            weights,
            (REACH * outputs[..., n:]).clamp(-WARP, WARP),
        )


class _Linear(nn.Linear):
    """Be a linear layer without torch's initialisation, which draws from the user's generator.

    `torch.nn.utils.skip_init` does the same but imports SymPy, which takes .35 s.
    """

    def reset_parameters(self) -> None:
        pass


def _network(n_in: int, width: int, n_out: int) -> nn.Sequential:
    first, last = _Linear(n_in, width, **_KIND), _Linear(width, n_out, **_KIND)
    return nn.Sequential(first, nn.SiLU(), last)
