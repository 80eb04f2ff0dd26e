"""Beliefs of the user as a past task, whose values fall with the distance from the favourites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dre_plugins.engine.settings import require
from dre_plugins.space import SearchSpace
from dre_plugins.space.candidates import mutate, sobol
from dre_plugins.transfer.metadata import MetaDataset, Task

# Number of random completions of a partial configuration.
N_COMPLETIONS = 8
# Points near the favoured configurations, and all over the space.
N_NEAR = 128
N_SPREAD = 128


def metadata_of_beliefs(
    space: SearchSpace, configurations: Sequence[Mapping[str, Any]]
) -> MetaDataset:
    """Return the task that beliefs describe: configurations that are expected to be good.

    They may lack parameters. A ValueError says that there are none, or one is not in the space.
    """
    is_list = isinstance(configurations, Sequence) and len(configurations) > 0
    are_given = is_list and all(isinstance(given, Mapping) for given in configurations)
    require(are_given, "configurations", configurations, "at least one, in a list")
    for configuration in configurations:
        unknown = [name for name in configuration if name not in space.domains]
        require(not unknown, "configurations", unknown, f"made of {[*space.domains]}")
        for name, value in configuration.items():
            domain = space.domains[name]
            require(domain.contains(value), name, value, f"in {domain}")
    rng = np.random.default_rng(0)
    believed = space.to_units(configurations)
    favoured = np.repeat(believed, N_COMPLETIONS, axis=0)
    favoured = space.canonical(np.where(np.isnan(favoured), rng.random(favoured.shape), favoured))
    near = space.canonical(mutate(space, favoured, N_NEAR, rng))
    spread = space.canonical(sobol(space.n_parameters, N_SPREAD, rng))
    units = np.concatenate([favoured, near, spread])
    # A belief counts in the parameters that it names only.
    features = space.features(units)
    values = np.full(len(units), -np.inf)
    for row, configuration in enumerate(configurations):
        columns = space.feature_columns(configuration)
        wanted = space.features(space.canonical(favoured[row * N_COMPLETIONS][None]))
        distance = np.abs(features[:, columns] - wanted[:, columns]).sum(1)
        values = np.maximum(values, -distance)
    failed = np.zeros(len(units), dtype=np.bool_)
    task = Task("beliefs", space, units, values, failed)
    return MetaDataset.of([task], source="beliefs")
