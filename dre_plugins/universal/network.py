"""The network of the universal prior: trials in, a mixture of Gaussian processes out.

It reads every feature separately, so it applies to any number of features and is invariant to the
order of features and of trials. Its output for a feature depends on the trials along that feature
and on the mean over all features. The first guess of each process is refined along the gradient of
its evidence, with learnt step sizes.

Notation: `B` tasks, `H` processes, `N` trials, `D` features, `W` width.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from dre_plugins.checks import require
from dre_plugins.universal.processes import Hypotheses, Processes

# Limits of the logarithms of lengthscales, variances and exponents of warps.
LENGTHSCALES = (-3.5, 6.0)
TRENDS = (-9.0, 2.0)
AMPLITUDES = (-5.0, 5.0)
NOISES = (-8.0, 0.7)
WARP = 1.5
# Offsets of guesses: lengthscales grow with the number of features (Hvarfner et al., 2024), and
# those of different processes differ by a factor of up to 20; every second has a larger trend.
LENGTHSCALE, BY_DIMENSION, SPREAD = 0.3, 0.35, 1.5
TREND, TREND_SPREAD, NOISE = -3.0, 2.0, -4.0
# Trials from which on there may be a trend where values far from all trials are not expected to
# differ much (lab/2026-11-27-amplitude-and-trend.md#studies).
TREND_TRIALS = 20
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
        self.of_features = _network(2 * width, width, 3 * n + 2)
        self.of_task = _network(width, width, 3 * n)
        rounds = range(settings.n_refinements)
        self.feature_steps = nn.ModuleList(
            _network(2 * width + 6 * n, width, 3 * n) for _ in rounds
        )
        self.task_steps = nn.ModuleList(_network(width + 4 * n, width, 2 * n) for _ in rounds)
        self.spread = nn.Parameter(torch.linspace(-SPREAD, SPREAD, n, **_KIND))
        in_turns = [i // 2 + (n + 1) // 2 * (i % 2) for i in range(n)]
        trends = torch.linspace(-TREND_SPREAD, TREND_SPREAD, n, **_KIND)[in_turns]
        self.trend_spread = nn.Parameter(trends)
        self.trust = nn.Parameter(torch.ones((), **_KIND))

    def forward(
        self,
        features: Tensor,
        targets: Tensor,
        mean_variance: Tensor | None = None,
        *,
        is_limited: bool = False,
        categories: Sequence[slice] = (),
    ) -> tuple[Processes, Tensor]:
        """Return processes that are conditioned on trials, and how likely each is.

        Args:
            features: Features of the trials `[B, N, D]`, from 0 to 1.
            targets: Targets of the trials `[B, N]`, see `universal.targets`.
            mean_variance: Variance of the constant mean `[B]`; None, as in training: it is 0.
            is_limited: Whether values far from all trials are not expected to differ by more than
                those of the trials: the amplitude is at most 1, and before `TREND_TRIALS` trials
                there is no trend.
            categories: The features of each category: one for each of its values.

        Returns:
            The processes, and the logarithms of their weights `[B, H]`.
        """
        columns, task = self._read(features, targets)
        hypotheses = self._guess(columns, task)
        if mean_variance is not None:
            hypotheses = replace(hypotheses, mean_variance=mean_variance[:, None])
        hypotheses = _limited(hypotheses, features.shape[1]) if is_limited else hypotheses
        for steps in zip(self.feature_steps, self.task_steps, strict=True):
            processes = Processes.conditioned(hypotheses, features, targets)
            hypotheses = self._refined(hypotheses, processes.gradient(), (columns, task), steps)
            hypotheses = _limited(hypotheses, features.shape[1]) if is_limited else hypotheses
        hypotheses = _with_untried(hypotheses, features, categories)
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
        n, log_dimension = self.settings.n_processes, math.log(columns.shape[1])
        outputs = REACH * self.of_features(columns)
        scales, *trends = outputs[..., :-2].mT.split(n, 1)
        noises, weights, amplitudes = self.of_task(task).split(n, -1)
        scales = scales + LENGTHSCALE + BY_DIMENSION * log_dimension + self.spread[:, None]
        trend = torch.cat(trends, -1) + TREND - log_dimension + self.trend_spread[:, None]
        return Hypotheses(
            scales.clamp(*LENGTHSCALES),
            trend.clamp(*TRENDS),
            (REACH * amplitudes).clamp(*AMPLITUDES),
            (NOISE + REACH * noises).clamp(*NOISES),
            REACH * weights,
            outputs[..., -2:].clamp(-WARP, WARP),
            columns.new_zeros(len(columns), 1),
        )

    def _refined(
        self,
        guess: Hypotheses,
        gradient: tuple[Tensor, ...],
        encoding: tuple[Tensor, Tensor],
        steps: tuple[nn.Module, nn.Module],
    ) -> Hypotheses:
        """Return hypotheses of more evidence: a step along its gradient, and a learnt one."""
        (columns, task), (feature_step, task_step) = encoding, steps
        n, n_features = self.settings.n_processes, columns.shape[1]
        by_scale, by_trend, by_amplitude, by_noise = (
            torch.asinh(part).to(columns.dtype) / 2.0 for part in gradient
        )
        inputs = [
            by_scale,
            *by_trend.split(n_features, -1),
            (guess.lengthscales - 1.0) / 2.0,
            *((guess.trends - TREND) / 3.0).split(n_features, -1),
        ]
        moves = feature_step(torch.cat([columns, torch.cat(inputs, 1).mT], -1))
        scale, *trend = moves.mT.split(n, 1)
        inputs = [by_noise, by_amplitude, (guess.noises - NOISE) / 2.0, guess.amplitudes / 2.0]
        noise, amplitude = task_step(torch.cat([task, *inputs], -1)).split(n, -1)
        scales = guess.lengthscales + STEP * by_scale + scale
        trends = guess.trends + STEP * by_trend + torch.cat(trend, -1)
        amplitudes = guess.amplitudes + STEP * by_amplitude + amplitude
        noises = guess.noises + STEP * by_noise + noise
        return replace(
            guess,
            lengthscales=scales.clamp(*LENGTHSCALES),
            trends=trends.clamp(*TRENDS),
            amplitudes=amplitudes.clamp(*AMPLITUDES),
            noises=noises.clamp(*NOISES),
        )


def _limited(hypotheses: Hypotheses, n_trials: int) -> Hypotheses:
    """Return the hypotheses with an amplitude of at most 1, and without a trend of few trials."""
    most = TRENDS[0 if n_trials < TREND_TRIALS else 1]
    return replace(
        hypotheses,
        amplitudes=hypotheses.amplitudes.clamp_max(0.0),
        trends=hypotheses.trends.clamp_max(most),
    )


def _with_untried(
    hypotheses: Hypotheses, features: Tensor, categories: Sequence[slice]
) -> Hypotheses:
    """Return hypotheses in which an untried value of a category may matter as much as any other.

    The trials say nothing of a feature that is the same in all of them. Where one value of a
    category is far better than the others tried, the network expects an untried one to be like
    these, so that it may never be tried (lab/2026-11-29-untried-values.md). So its feature has the
    shortest lengthscale, and the largest trend, of the features of the category's tried values.
    """
    varies = (features != features[:, :1]).flatten(0, 1).any(0)
    lengthscales, trends = hypotheses.lengthscales.clone(), hypotheses.trends.clone()
    by_degree = trends.unflatten(-1, (2, -1))  # the linear and the quadratic terms
    for place in categories:
        tried, untried = (
            kept.nonzero()[:, 0] + place.start for kept in (varies[place], ~varies[place])
        )
        if len(tried) and len(untried):
            lengthscales[..., untried] = lengthscales[..., tried].amin(-1, keepdim=True)
            by_degree[..., untried] = by_degree[..., tried].amax(-1, keepdim=True)
    return replace(hypotheses, lengthscales=lengthscales, trends=trends)


class _Linear(nn.Linear):
    """Be a linear layer without torch's initialisation, which draws from the user's generator.

    `torch.nn.utils.skip_init` does the same but imports SymPy, which takes .35 s.
    """

    def reset_parameters(self) -> None:
        pass


def _network(n_in: int, width: int, n_out: int) -> nn.Sequential:
    first, last = _Linear(n_in, width, **_KIND), _Linear(width, n_out, **_KIND)
    return nn.Sequential(first, nn.SiLU(), last)
