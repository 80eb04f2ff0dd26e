"""The last steps towards a maximum of the acquisition, along its gradient.

Mutations find the basin of a maximum and seldom its bottom: on a bowl of seven parameters the best
value after 20 trials is half as far from the optimum with these steps
(docs/decisions/refinement.md).

Notation: see docs/architecture.md.
"""

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from dre_plugins.engine.runtime import one_blas_thread
from dre_plugins.space.base import Array, Units
from dre_plugins.space.search_space import SearchSpace

# Candidates that are refined together, the best ones of a pool, and steps of L-BFGS-B for all.
N_REFINED = 2
N_STEPS = 8


def refined(
    space: SearchSpace,
    units: Units,
    fixed: Units,
    acquisition: Callable[[Array], tuple[Array, Array]],
) -> Units:
    """Return candidates moved to where an acquisition is larger `[C, P]`.

    Only continuous parameters that are active and not among the fixed coordinates `[P]` move,
    within their bounds. Of features `[C, D]` the acquisition returns its values `[C]` and their
    derivatives `[C, D]`.
    """
    place_of = {
        column: place for column, place in space.continuous.items() if np.isnan(fixed[column])
    }
    if not place_of or not len(units):
        return units
    columns, places = [*place_of], [*place_of.values()]
    canonical = space.canonical(units)
    is_active = ~np.isnan(canonical[:, columns])
    features = space.features(canonical).astype(np.float64)
    # The features of the bounds, which are 0 and 1 but in a space with wider spans.
    corners = np.array([[0.0], [1.0]]).repeat(space.n_parameters, axis=1)
    low, high = space.features(corners)[:, places].astype(np.float64)
    start = np.where(is_active, low + canonical[:, columns] * (high - low), 0.5)

    def loss(flat: Array) -> tuple[float, Array]:
        features[:, places] = np.where(is_active, flat.reshape(start.shape), features[:, places])
        values, derivatives = acquisition(features)
        return -values.sum(), -np.where(is_active, derivatives[:, places], 0.0).ravel()

    with one_blas_thread():
        maximum = minimize(
            loss,
            start.ravel(),
            jac=True,
            method="L-BFGS-B",
            bounds=[*zip(low, high, strict=True)] * len(start),
            options={"maxiter": N_STEPS},
        )
    moved = units.copy()
    found = (maximum.x.reshape(start.shape) - low) / (high - low)
    moved[:, columns] = np.where(is_active, found, units[:, columns])
    return moved
