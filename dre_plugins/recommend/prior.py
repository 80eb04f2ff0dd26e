"""What a user gives as a prior, and what the recommender asks of it.

`dre_plugins.transfer` has the trained ones; it is imported, and torch with it, only for those who
give one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dre_plugins.engine.settings import Preset, get_preset, require
from dre_plugins.space.search_space import SearchSpace

if TYPE_CHECKING:
    from dre_plugins.engine.surrogate import DeepRankingEnsemble
    from dre_plugins.space import Domain

Encode = Callable[[NDArray[np.float64]], NDArray[np.float32]]

UNIVERSAL: Literal["universal"] = "universal"
"""Name of the prior that knows no parameters: of functions on any search space."""

AUTO: Literal["auto"] = "auto"
"""Name of whatever prior is that of the learner which a study turns out to tune."""


@dataclass(frozen=True, slots=True)
class UniversalFile:
    """Name a universal prior on disk, other than the one that ships.

    A study keeps to the prior that it began with though the file is trained anew meanwhile.
    """

    path: str  # where `dre-bench train-universal` wrote it
    digest: str = ""  # hash of the file's content; empty takes what the file holds


@dataclass(frozen=True, slots=True)
class AlignedPrior:
    """Hold a meta-trained ensemble that can score configurations of one search space."""

    ensemble: DeepRankingEnsemble  # meta-trained scorers of D features
    encode: Encode  # canonical coordinates of the search space `[C, P]` -> features `[C, D]`
    # what was best in past tasks `[F, P]`; NaN where it says nothing
    favourites: NDArray[np.float64]
    # contexts of past tasks `[T, Z]`; None: no context
    contexts: NDArray[np.float32] | None = None
    about: str = ""  # one line for people: its name, and which parameters it knows
    past_studies: tuple[str, ...] = ()  # names of the user's studies that it was made of


@runtime_checkable
class PriorLike(Protocol):
    """Describe where meta-trained ensembles come from."""

    def on(self, space: SearchSpace) -> AlignedPrior | None:
        """Return the prior for a search space, which need not be the one it was trained on.

        None says that it has nothing to say of such a space, and is no error. A ValueError says
        that the two spaces have no parameter in common.
        """

    def knows(self, name: str, domain: Domain, beside: Mapping[str, Domain] | None = None) -> bool:
        """Say whether a parameter of a study, beside others, is one of the prior's."""

    def completed(self, domains: Mapping[str, Domain]) -> SearchSpace:
        """Fill up the parameters known of a define-by-run study with the prior's own."""


@runtime_checkable
class FoundPrior(PriorLike, Protocol):
    """Describe a prior that a study finds by itself (for type checking; do not subclass).

    It has start-up trials alone, its favourites in their order in place of space-filling points:
    names tell less than past studies do, and what a model makes of the prior later on gains
    nothing (lab/2026-11-24-auto-first-suggestion.md, lab/2026-11-24-portfolio.md).
    """

    def favourite(self, domains: Mapping[str, Domain]) -> dict[str, Any]:
        """Return the values that the prior expects most of, of the parameters that it knows."""


Universal: TypeAlias = "Literal['universal'] | UniversalFile"
# A list has one for each objective, None where there is none.
Several: TypeAlias = "list[PriorLike | None] | tuple[PriorLike | None, ...]"
LoadedPrior: TypeAlias = "PriorLike | Several | Universal | None"
SinglePrior: TypeAlias = "PriorLike | str | os.PathLike[str] | None"
GivenPrior: TypeAlias = "SinglePrior | Sequence[SinglePrior] | UniversalFile"


def gives_way(prior: object) -> bool:
    """Say whether a prior gives way to what past studies teach, as nobody has chosen its tasks."""
    return isinstance(prior, FoundPrior) or prior in (UNIVERSAL, AUTO)


def prior_from(given: GivenPrior, preset: str | Preset = "default") -> LoadedPrior:
    """Return a prior that was given itself, by name, by path, or not at all.

    Args:
        given: The prior; "universal", which stays what it is; "auto", which recognises the
            learner; or a list with one prior for each objective, None where there is none.
        preset: That of the study. In one in which the universal prior takes no turns, "auto" is
            "universal": an untrained ensemble alone.

    Raises:
        ValueError: If there is no such prior, its file cannot be read, or a list has none at all.
    """
    if given == AUTO:
        if not get_preset(preset).universal_turns:
            return UNIVERSAL
        from dre_plugins.transfer.recognition import AutoPrior

        return AutoPrior()
    if given == UNIVERSAL:
        return UNIVERSAL
    if isinstance(given, UniversalFile):
        return given
    if not isinstance(given, (list, tuple)):
        return _universal(given) or _trained(given)
    is_any = any(part is not None for part in given)
    require(is_any, "prior", given, "a prior for one objective at least")
    return tuple(_trained(part) for part in given)


def _universal(given: object) -> UniversalFile | None:
    if not isinstance(given, (str, os.PathLike)) or not os.path.isfile(given):
        return None
    from dre_plugins.universal.file import digest_of  # imports torch

    digest = digest_of(given)  # raises at once if the network is damaged
    return None if digest is None else UniversalFile(os.fspath(given), digest)


def _trained(given: object) -> PriorLike | None:
    if given is None or isinstance(given, PriorLike):
        return given
    if not isinstance(given, (str, os.PathLike)):
        raise ValueError(
            "prior must be a Prior, a name, a path, None, or a list of these with one for each "
            f"objective, got {given!r}."
        )
    from dre_plugins.transfer.prior import Prior

    return Prior.load(given)


def aligned(
    prior: LoadedPrior,
    space: SearchSpace,
    n_objectives: int | None,
) -> tuple[AlignedPrior | None, ...]:
    """Return what a prior knows of a search space: of all objectives as one, or of each.

    The universal prior knows nothing of any search space, and one that was found nothing of
    several objectives. A ValueError says that the spaces have no parameter in common, the
    objectives are more or fewer than the priors, or all of these are None.
    """
    if isinstance(prior, str):
        require(prior == UNIVERSAL, "prior", prior, f"{UNIVERSAL!r}, None, or a loaded Prior")
    if isinstance(prior, (list, tuple)):
        is_any = any(part is not None for part in prior)
        require(is_any, "prior", prior, "a prior for one objective at least")
    if prior is None or isinstance(prior, (str, UniversalFile)) or not space.n_parameters:
        return ()
    if isinstance(prior, FoundPrior) and n_objectives not in (None, 1):
        return ()
    if not isinstance(prior, (list, tuple)):
        only = prior.on(space)
        return () if only is None else (only,)
    of_each = tuple(None if part is None else part.on(space) for part in prior)
    if n_objectives is not None and len(of_each) != n_objectives:
        raise ValueError(
            f"prior has {len(of_each)} entries for {n_objectives} objectives: give one prior, or "
            "one for each objective, None where there is none."
        )
    return of_each


def check_turns(prior: object, preset: str | Preset) -> None:
    """Raise a ValueError for the file of a universal prior if none takes turns."""
    if isinstance(prior, UniversalFile) and not get_preset(preset).universal_turns:
        named = f"preset={preset!r}" if isinstance(preset, str) else "a Preset"
        raise ValueError(
            f"prior must not be the file of a universal prior, got {prior.path!r}, with "
            f"{named}, in which none takes turns: leave one of them out, or give a Preset with "
            "universal_turns=True."
        )
