"""What tests break on purpose: fits of the surrogate, the disk, the file of a prior."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dre_plugins.engine import ScorerSettings
from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.space import SearchSpace
from dre_plugins.transfer.prior import Card, Prior


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
    settings = ScorerSettings(n_members=3, hidden=(8, 8))
    ensemble = DeepRankingEnsemble.initialise(settings, space.n_features, seed=0)
    favourites = np.full((1, space.n_parameters), 0.5)
    Prior(ensemble, space, Card(name="one"), favourites).save(path)
