"""What tests break on purpose: fits of the surrogate, the disk, the file of a prior."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dre_plugins.engine import ScorerSettings
from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.space import SearchSpace
from dre_plugins.transfer.prior import Card, Prior

FITS: dict[str, Exception | None] = {
    "fit raises": RuntimeError("injected"),
    "memory": MemoryError(),
    "weights are NaN": None,
}


def break_fits(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """Let every fit raise, or return weights that are NaN."""
    fit, error = DeepRankingEnsemble.fit, FITS[fault]

    def broken(self: DeepRankingEnsemble, *arguments: Any, **keywords: Any) -> Any:
        if error is not None:
            raise error
        fitted = fit(self, *arguments, **keywords)
        spoilt = {name: value * math.nan for name, value in fitted.parameters.items()}
        return dataclasses.replace(fitted, parameters=spoilt)

    monkeypatch.setattr(DeepRankingEnsemble, "fit", broken)


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """Let the operating system refuse every byte of a file after the first kilobyte."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def write_prior(path: Path, space: SearchSpace) -> None:
    """Write a prior that knows nothing."""
    settings = ScorerSettings(n_members=3, hidden=(8, 8))
    ensemble = DeepRankingEnsemble.initialise(settings, space.n_features, seed=0)
    favourites = np.full((1, space.n_parameters), 0.5)
    Prior(ensemble, space, Card(name="one"), favourites).save(path)
