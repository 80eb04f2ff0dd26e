"""Synthetic tasks, which the universal prior learns from: random functions on random spaces.

A space has numeric, integer and categorical parameters, some of which are active only under one
choice of a category. A function is a mixture of what real ones are made of: smooth interactions
(random features, some with heavy tails), effects of single parameters, bowls (whose centre may lie
outside), trends and categories; with warped axes, irrelevant parameters, skewed values, plateaus,
steps, floors and noise.

Notation: `B` functions on one space, `M` configurations, `P` parameters, `D` features. Larger
values are better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

MAX_FEATURES = 40
MAX_CHOICES = 5
MAX_LEVELS = 20
# Coordinates that a category has in smooth interactions, and how far apart categories are.
EMBEDDING, APART = 3, 0.6
N_RANDOM_FEATURES = 96
N_WAVES = 16
# Configurations by which the parts of a function are brought to one scale.
N_SCALING = 400


@dataclass(frozen=True, slots=True)
class Parameter:
    """Describe one parameter.

    Args:
        n_values: Number of its values; 0 if they are continuous.
        is_category: Whether its values have no order.
        condition: Position of a category and the choice under which it is active; None: always.
    """

    n_values: int = 0
    is_category: bool = False
    condition: tuple[int, int] | None = None

    @property
    def n_features(self) -> int:
        """Return how many features it has: those of its values, and whether it is active."""
        return (self.n_values if self.is_category else 1) + (self.condition is not None)


def draw_space(rng: np.random.Generator, max_features: int = MAX_FEATURES) -> list[Parameter]:
    """Draw a search space of 2 to so many features; a half of them have less than a fifth."""
    n_features = round(math.exp(rng.uniform(math.log(1.5), math.log(max_features))))
    categorical = rng.choice([0.0, 0.2, 0.5, 1.0], p=[0.45, 0.3, 0.15, 0.1])
    integer = rng.choice([0.0, 0.3, 0.8], p=[0.5, 0.3, 0.2])
    space: list[Parameter] = []
    remaining = n_features
    while remaining:
        categories = [i for i, parameter in enumerate(space) if parameter.is_category]
        if remaining >= 2 and rng.random() < categorical:
            choices = min(int(rng.integers(2, MAX_CHOICES + 1)), remaining)
            space.append(Parameter(choices, is_category=True))
        else:
            condition = None
            if categories and remaining >= 2 and rng.random() < 0.4:
                parent = int(rng.choice(categories))
                condition = parent, int(rng.integers(space[parent].n_values))
            levels = int(rng.integers(2, MAX_LEVELS + 1)) if rng.random() < integer else 0
            space.append(Parameter(levels, condition=condition))
        remaining -= space[-1].n_features
    return space


class SyntheticTasks:
    """Hold random functions on one search space.

    Args:
        space: Its parameters.
        n_tasks: How many functions B.
        generator: Source of everything random.
    """

    def __init__(
        self, space: Sequence[Parameter], n_tasks: int, generator: torch.Generator
    ) -> None:
        self.space = tuple(space)
        self.n_tasks = n_tasks
        self.generator = generator
        self._draw()

    def units(self, n: int) -> Tensor:
        """Draw coordinates of configurations `[B, n, P]`, uniformly."""
        return self._uniform(self.n_tasks, n, len(self.space))

    def features(self, units: Tensor) -> Tensor:
        """Return what a surrogate sees of configurations, `[B, M, P]` -> `[B, M, D]`.

        As in real spaces: categories are one-hot, an inactive parameter reads .5 and its flag 0.
        """
        places, active = self._places(units), self._active(units)
        columns = []
        for i, parameter in enumerate(self.space):
            if parameter.is_category:
                index = self._index(units, i)
                columns.append(torch.nn.functional.one_hot(index, parameter.n_values).float())
                continue
            columns.append(torch.where(active[..., i], places[..., i], 0.5)[..., None])
            if parameter.condition is not None:
                columns.append(active[..., i, None].float())
        return torch.cat(columns, -1)

    def values(self, units: Tensor, *, is_noisy: bool = True) -> Tensor:
        """Return what configurations are worth, `[B, M, P]` -> `[B, M]`."""
        mean, deviation = self._moments
        value = self._shaped((self._sum(units) - mean) / deviation)
        value = torch.maximum(value, self._floor) / self._spread
        return value + self._noise * self._normal(*value.shape) if is_noisy else value

    def _draw(self) -> None:
        n_tasks, n = self.n_tasks, len(self.space)
        uniform, normal = self._uniform, self._normal
        is_relevant = uniform(n_tasks, n) >= 0.6 * uniform(n_tasks, 1)
        is_warped = (uniform(n_tasks, 1, 1) < 0.5).float()
        self._warps = torch.exp(0.6 * normal(n_tasks, n, 2) * is_warped)
        self._draw_interactions(is_relevant)
        relevance = torch.exp(normal(n_tasks, 1, n)) * is_relevant[:, None]
        frequencies = normal(n_tasks, 1, n, N_WAVES) / 0.35
        self._frequencies = frequencies * torch.exp(0.5 * normal(n_tasks, 1, n, 1))
        self._wave_phases = 2.0 * math.pi * uniform(n_tasks, 1, n, N_WAVES)
        heights = math.sqrt(2.0 / N_WAVES) * normal(n_tasks, 1, n, N_WAVES)
        self._heights = heights * relevance[..., None]
        self._centres = 1.4 * uniform(n_tasks, 1, n) - 0.2
        self._power = torch.where(uniform(n_tasks, 1, 1) < 0.5, 1.0, 2.0)
        self._curvature = torch.exp(normal(n_tasks, 1, n)) * is_relevant[:, None]
        self._slopes = normal(n_tasks, n, 1) * is_relevant[..., None]
        share = torch.exp(0.7 * normal(n_tasks, 1))
        self._offsets = [
            normal(n_tasks, entry.n_values) * share if entry.is_category else None
            for entry in self.space
        ]
        usual = torch.tensor([1.0, 0.0, 0.0, -1.0, -0.5])
        self._shares = torch.softmax(2.0 * normal(n_tasks, 5) + usual, -1)
        self._shape = torch.randint(0, 6, (n_tasks,), generator=self.generator)
        self._bend = 2.0 * uniform(n_tasks, 1) + 0.3
        is_exact = uniform(n_tasks, 1) < 0.4
        self._noise = torch.where(is_exact, 0.0, 10.0 ** (3.3 * uniform(n_tasks, 1) - 4.0))
        self._scale()

    def _draw_interactions(self, is_relevant: Tensor) -> None:
        n_tasks, n = is_relevant.shape
        uniform, normal = self._uniform, self._normal
        middle = math.log(0.35) + 0.35 * math.log(n) + 0.5 * normal(n_tasks, 1)
        lengthscales = torch.exp(middle + 0.8 * normal(n_tasks, n))
        lengthscales = torch.where(is_relevant, lengthscales, 30.0)
        owners = [
            i
            for i, entry in enumerate(self.space)
            for _ in range(EMBEDDING if entry.is_category else 1)
        ]
        # Frequencies of Student's t: of functions that are as rough as a Matérn process.
        waves = normal(n_tasks, len(owners), N_RANDOM_FEATURES)
        tails = normal(n_tasks, 1, N_RANDOM_FEATURES, 5).square().mean(-1).clamp_min(0.05).sqrt()
        is_smooth = uniform(n_tasks, 1, 1) < 0.4
        waves = torch.where(is_smooth, waves, waves / tails)
        self._waves = waves / lengthscales[:, owners, None]
        self._phases = 2.0 * math.pi * uniform(n_tasks, 1, N_RANDOM_FEATURES)
        self._amplitudes = normal(n_tasks, N_RANDOM_FEATURES, 1)
        self._embeddings = [
            APART * normal(n_tasks, entry.n_values, EMBEDDING) if entry.is_category else None
            for entry in self.space
        ]

    def _scale(self) -> None:
        """Bring the parts of each function, the sum, and what becomes of it to one scale."""
        units = self.units(N_SCALING)
        parts = self._parts(units)
        self._part_moments = parts.mean(1, keepdim=True), parts.std(1, keepdim=True) + 1e-6
        total = self._sum(units)
        self._moments = total.mean(1, keepdim=True), total.std(1, keepdim=True) + 1e-9
        shaped = self._shaped((total - self._moments[0]) / self._moments[1])
        self._spread = shaped.std(1, keepdim=True) + 1e-9
        # A fifth of them end at a floor, up to half of the space.
        share = 0.5 * self._uniform(self.n_tasks, 1)
        ordered = shaped.sort(1).values
        floor = ordered.gather(1, (share * (N_SCALING - 1)).long())
        has_floor = self._uniform(self.n_tasks, 1) < 0.2
        self._floor = torch.where(has_floor, floor, -1e9)

    def _sum(self, units: Tensor) -> Tensor:
        mean, deviation = self._part_moments
        parts = (self._parts(units) - mean) / deviation
        return (parts * self._shares[:, None]).sum(-1)

    def _parts(self, units: Tensor) -> Tensor:
        """Return the parts of each function `[B, M, 5]`."""
        active = self._active(units)
        places = self._places(units).clamp(1e-6, 1.0 - 1e-6)
        first, second = (exponent[:, None] for exponent in self._warps.unbind(-1))
        places = torch.where(active, 1.0 - (1.0 - places**first) ** second, 0.5)
        offset = torch.zeros(units.shape[:2])
        coordinates = []
        for i, (embedding, offsets) in enumerate(
            zip(self._embeddings, self._offsets, strict=True)
        ):
            if embedding is None or offsets is None:
                coordinates.append(places[..., i, None])
                continue
            index = self._index(units, i)
            offset = offset + offsets.gather(1, index)
            coordinates.append(embedding.gather(1, index[..., None].expand(-1, -1, EMBEDDING)))
        smooth = torch.cos(torch.cat(coordinates, -1) @ self._waves + self._phases)
        is_number = torch.tensor([not exponent.is_category for exponent in self.space])
        counts = (active & is_number).float()
        waves = torch.cos(places[..., None] * self._frequencies + self._wave_phases)
        single = (waves * self._heights).sum(-1)
        bowl = -((places - self._centres).abs() ** self._power) * self._curvature
        parts = [
            (smooth @ self._amplitudes)[..., 0],
            (single * counts).sum(-1),
            (bowl * counts).sum(-1),
            ((places * counts) @ self._slopes)[..., 0],
            offset,
        ]
        return torch.stack(parts, -1)

    def _shaped(self, values: Tensor) -> Tensor:
        """Return values as they are, skewed to either side, saturated, or in steps."""
        bent = self._bend * values.clamp(-4.0, 4.0)
        steps = torch.where(self._bend > 1.3, torch.floor(3.0 * values) / 3.0, values)
        forms = [values, bent.exp(), -(-bent).exp(), torch.tanh(bent), values, steps]
        chosen = self._shape[:, None, None].expand(-1, values.shape[1], 1)
        return torch.stack(forms, -1).gather(-1, chosen)[..., 0]

    def _index(self, units: Tensor, i: int) -> Tensor:
        n_values = self.space[i].n_values
        return (units[..., i] * n_values).long().clamp(0, n_values - 1)

    def _places(self, units: Tensor) -> Tensor:
        """Return coordinates on the grids of integers `[B, M, P]`."""
        places = units.clone()
        for i, parameter in enumerate(self.space):
            if parameter.n_values and not parameter.is_category:
                places[..., i] = self._index(units, i) / (parameter.n_values - 1)
        return places

    def _active(self, units: Tensor) -> Tensor:
        """Return which parameters are active `[B, M, P]`."""
        active = torch.ones_like(units, dtype=torch.bool)
        for i, parameter in enumerate(self.space):
            if parameter.condition is not None:
                parent, choice = parameter.condition
                active[..., i] = self._index(units, parent) == choice
        return active

    def _uniform(self, *shape: int) -> Tensor:
        return torch.rand(*shape, generator=self.generator)

    def _normal(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self.generator)
