"""Checks of the numbers that make a range."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from dre_plugins.space.base import UnsupportedDomainError, is_real
from dre_plugins.space.warps import WARPS, Warp

MAX_FLOAT = sys.float_info.max


def is_finite(value: Any) -> bool:
    """Say whether a value is a number that a float can hold."""
    if isinstance(value, np.generic):
        value = value.item()
    # One comparison refuses NaN, infinities and integers beyond the floats.
    return is_real(value) and bool(abs(value) <= MAX_FLOAT)


def are_finite(values: Sequence[Any]) -> bool:
    """Say whether `is_finite` holds for each value; for plain numbers without a call for each."""
    kinds = set(map(type, values))
    if kinds == {float}:
        return bool(np.isfinite(np.array(values)).all())
    if kinds == {int}:
        return bool(-MAX_FLOAT <= min(values) and max(values) <= MAX_FLOAT)
    return all(map(is_finite, values))


def finite(name: str, value: Any) -> float:
    """Return a finite number as a float."""
    if not is_finite(value):
        raise UnsupportedDomainError(
            f"{name} must be a finite number, got {value!r}; give finite bounds."
        )
    return float(value)


def positive(name: str, value: Any) -> float:
    """Return a positive finite number as a float."""
    if not is_finite(value) or value <= 0:
        raise UnsupportedDomainError(f"{name} must be a positive number, got {value!r}.")
    return float(value)


def check_order(low: float, high: float) -> None:
    """Refuse bounds in the wrong order."""
    if low > high:
        raise UnsupportedDomainError(
            f"low must not exceed high, got low={low!r}, high={high!r}; swap them."
        )


def check_scale(scale: object, low: float, scales: tuple[str, ...]) -> Warp:
    if scale not in scales:
        raise UnsupportedDomainError(f"scale must be one of {scales}, got {scale!r}.")
    if scale == "log" and low <= 0:
        raise UnsupportedDomainError(
            f"scale 'log' needs low > 0, got low={low!r}; raise low or use scale='linear'."
        )
    return WARPS[str(scale)]
