"""Warps: monotone maps of values to a scale on which draws are uniform."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dre_plugins.space.base import Array

# Beyond, the distribution function of the normal distribution cannot tell values apart.
_TAIL = 1e-15


class Warp(Protocol):
    def forward(self, values: Array) -> Array: ...

    def inverse(self, positions: Array) -> Array: ...


@dataclass(frozen=True, slots=True)
class Linear:
    def forward(self, values: Array) -> Array:
        return values

    def inverse(self, positions: Array) -> Array:
        return positions


@dataclass(frozen=True, slots=True)
class Log:
    def forward(self, values: Array) -> Array:
        # What is not positive lies below every range.
        return np.log(np.maximum(values, np.finfo(float).tiny))

    def inverse(self, positions: Array) -> Array:
        return np.exp(positions)


@dataclass(frozen=True, slots=True)
class ReverseLog:
    def forward(self, values: Array) -> Array:
        # What is not below 1 lies above every range.
        return -np.log1p(-np.minimum(values, 1.0 - np.finfo(float).epsneg))

    def inverse(self, positions: Array) -> Array:
        return -np.expm1(-positions)


@dataclass(frozen=True, slots=True)
class Gaussian:
    mean: float
    sd: float

    def forward(self, values: Array) -> Array:
        from scipy.special import ndtr

        return np.asarray(ndtr((values - self.mean) / self.sd), dtype=np.float64)

    def inverse(self, positions: Array) -> Array:
        from scipy.special import ndtri

        # Beyond eight standard deviations the distribution function cannot tell values apart.
        inside = np.minimum(np.maximum(positions, _TAIL), 1.0 - _TAIL)
        return self.mean + self.sd * np.asarray(ndtri(inside), dtype=np.float64)


WARPS: dict[str, Warp] = {"linear": Linear(), "log": Log(), "reverse-log": ReverseLog()}
