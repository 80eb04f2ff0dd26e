"""The universal prior on a search space: its network, and the features that it reads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from dre_plugins.recommend.prior import UNIVERSAL, Universal, UniversalFile
from dre_plugins.recommend.sketch import MAX_FEATURES, sketched
from dre_plugins.space.base import Units
from dre_plugins.space.candidates import is_mostly_around_zero
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.universal.file import load_network
from dre_plugins.universal.processes import Processes


def process_features(space: SearchSpace, units: Units) -> torch.Tensor:
    """Return the features that the prior's processes read, of canonical coordinates, `[C, D]`."""
    return torch.from_numpy(sketched(space.features(units))).double()


def network_for(
    space: SearchSpace, prior: Universal = UNIVERSAL
) -> Callable[..., tuple[Processes, torch.Tensor]]:
    """Return the prior's network with what it knows of a space, see `UniversalPrior.forward`."""
    network = prior.network if isinstance(prior, UniversalFile) else load_network()
    is_sketch = space.n_features > MAX_FEATURES
    return partial(
        network,
        is_limited=is_mostly_around_zero(space),
        categories=() if is_sketch else space.category_features,
    )
