"""The last steps towards a maximum of the acquisition, along its gradient.

Mutations find the basin of a maximum and seldom its bottom: on a bowl of seven parameters the best
value after 20 trials is half as far from the optimum with these steps
(docs/decisions/refinement.md).

Notation: see docs/architecture.md; `K` candidates, `A` continuous parameters.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
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
    acquisition: Callable[[torch.Tensor], torch.Tensor],
) -> Units:
    """Return candidates moved to where a differentiable acquisition is larger `[K, P]`.

    Only continuous parameters that are active and not among the fixed coordinates `[P]` move,
    within their bounds. The acquisition is of features: `[K, D]` -> `[K]`.
    """
    place_of = {
        column: place for column, place in space.continuous.items() if np.isnan(fixed[column])
    }
    if not place_of or not len(units):
        return units
    columns, places = [*place_of], [*place_of.values()]
    canonical = space.canonical(units)
    is_active = ~np.isnan(canonical[:, columns])
    features = torch.from_numpy(space.features(canonical)).double()
    # The features of the bounds, which are 0 and 1 but in a space with wider spans.
    corners = np.array([[0.0], [1.0]]).repeat(space.n_parameters, axis=1)
    low, high = space.features(corners)[:, places].astype(np.float64)
    start = np.where(is_active, low + canonical[:, columns] * (high - low), 0.5)
    moves = torch.from_numpy(is_active)

    def loss(flat: Array) -> tuple[float, Array]:
        with torch.enable_grad():
            coordinates = torch.from_numpy(flat.reshape(start.shape)).requires_grad_()
            candidates = features.clone()
            candidates[:, places] = torch.where(moves, coordinates, features[:, places])
            total = -acquisition(candidates).sum()
            (gradient,) = torch.autograd.grad(total, coordinates)
        return total.item(), gradient.numpy().ravel()

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
