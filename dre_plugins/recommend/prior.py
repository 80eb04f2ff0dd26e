"""The argument `prior`, and the interface of priors and past studies that the recommender uses.

`transfer` has the classes that fulfil it, and imports from here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable

from dre_plugins.checks import require
from dre_plugins.engine.settings import Preset, get_preset
from dre_plugins.space.base import Array, Features, Mask, Units
from dre_plugins.space.search_space import SearchSpace

if TYPE_CHECKING:
    from dre_plugins.engine.surrogate import DeepRankingEnsemble
    from dre_plugins.space import Domain
    from dre_plugins.universal.network import UniversalPrior

Encode = Callable[[Units], Features]

UNIVERSAL: Literal["universal"] = "universal"
"""Name of the prior that was meta-trained on synthetic functions and suits any search space."""

AUTO: Literal["auto"] = "auto"
"""Name that stands for the prior of the learner that is recognised by its parameters."""


@dataclass(frozen=True, slots=True, eq=False)
class UniversalFile:
    """Hold a universal prior that was read from a file, instead of the one that ships."""

    path: str  # where `dre-bench train-universal` wrote it
    network: UniversalPrior


@dataclass(frozen=True, slots=True)
class AlignedPrior:
    """Hold a meta-trained ensemble that can score configurations of one search space."""

    ensemble: DeepRankingEnsemble  # meta-trained scorers of D features
    encode: Encode  # canonical coordinates of the search space `[C, P]` -> features `[C, D]`
    # best configurations of past tasks `[F, P]`; NaN where they leave a parameter open
    favourites: Units
    summary: str = ""  # one line for the log: its name, and which parameters it knows


@dataclass(frozen=True, slots=True)
class Portfolio:
    """Hold configurations of a learner that complement each other, for the first trials."""

    learner: str  # what the learner is called
    units: Units  # coordinates in order `[F, P]`; NaN where they leave a parameter open
    summary: str  # one line for the log: the prior it is from, and which parameters that knows


@dataclass(frozen=True, slots=True, eq=False)
class PastTask:
    """Hold the trials of a past task, by the parameters that it shares with a study."""

    name: str
    columns: Sequence[int]  # of these parameters among the features of the study's space
    features: Features  # of the trials, those of the columns, sketched `[N, D]`
    values: Array  # of the trials `[N]`; larger is better
    ranks: Array  # of the trials `[N]`, dense; larger is better
    # coordinates of the best trials in the study's space `[F, P]`, NaN for other parameters
    best: Units
    # features of trials that have ended, sketched `[M, D]`, and which of them have failed `[M]`;
    # empty if no trial of the task has failed
    ended: Features
    failed: Mask


@runtime_checkable
class KnowsParameters(Protocol):
    """Describe what knows parameters that a define-by-run study may ask for later."""

    def knows(self, name: str, domains: Mapping[str, Domain]) -> bool:
        """Return whether it has the parameter of a name.

        The other parameters of the study, which are in `domains`, may tell which learner is tuned.
        """

    def completed(self, domains: Mapping[str, Domain]) -> SearchSpace:
        """Return the parameters that a define-by-run study has shown, and those to come."""


@runtime_checkable
class PastTasksLike(KnowsParameters, Protocol):
    """Describe the past studies that a study learns from without training (do not subclass)."""

    def tasks_on(self, space: SearchSpace) -> Sequence[PastTask]:
        """Return the tasks that share a parameter with a search space.

        A ValueError says that there are none.
        """

    def summary(self, space: SearchSpace) -> str:
        """Say in one line which parameters of a space they know."""


@runtime_checkable
class PriorLike(KnowsParameters, Protocol):
    """Describe where meta-trained ensembles come from."""

    def on(self, space: SearchSpace) -> AlignedPrior | None:
        """Return the prior for a search space, which need not be the one it was trained on.

        None means that the prior does not apply to the space, which is no error. A ValueError says
        that the two spaces have no parameter in common.
        """


@runtime_checkable
class RecognisedPrior(KnowsParameters, Protocol):
    """Describe the prior of a recognised learner (for type checking; do not subclass).

    Its portfolio replaces start-up points; the models do not use it. Names of parameters tell less
    than past studies do, and to start the ensemble from such a prior gained nothing
    (lab/2026-11-24-auto-first-suggestion.md, lab/2026-11-24-portfolio.md).
    """

    def portfolio_on(self, space: SearchSpace) -> Portfolio | None:
        """Return the portfolio of the learner that a search space tunes.

        None means that no learner is recognised, or that no value of its prior is in the space.
        """


Universal: TypeAlias = "Literal['universal'] | UniversalFile"
# A list has an entry for each objective, None without a prior.
Several: TypeAlias = "list[PriorLike | None] | tuple[PriorLike | None, ...]"
Untrained: TypeAlias = "RecognisedPrior | PastTasksLike"
LoadedPrior: TypeAlias = "PriorLike | Several | Untrained | Universal | None"
SinglePrior: TypeAlias = "PriorLike | str | os.PathLike[str] | None"
GivenPrior: TypeAlias = "SinglePrior | Sequence[SinglePrior] | UniversalFile | Untrained"


def yields_to_memory(prior: object) -> bool:
    """Say whether past studies replace a prior: so if the user has not chosen a trained one."""
    return isinstance(prior, RecognisedPrior) or prior in (UNIVERSAL, AUTO)


def checked(prior: LoadedPrior, n_objectives: int | None) -> LoadedPrior:
    """Return the prior of a study with a number of objectives; None: it is not known yet.

    The portfolio of a recognised learner is good by a single objective, so with several there is
    no recognised prior. A ValueError says that there is no prior of that name, that all priors of
    a list are None, or that past studies or a list do not suit that number.
    """
    if isinstance(prior, str):
        require(prior == UNIVERSAL, "prior", prior, f"{UNIVERSAL!r}, None, or a loaded Prior")
    if isinstance(prior, (list, tuple)):
        is_any = any(part is not None for part in prior)
        require(is_any, "prior", prior, "a prior for one objective at least")
    if n_objectives is None:
        return prior
    if isinstance(prior, PastTasksLike) and n_objectives > 1:
        raise ValueError(
            f"Past studies of one objective cannot be used with {n_objectives}: train a prior on "
            "them (Prior.train), and give a list with it for its objective."
        )
    if isinstance(prior, (list, tuple)) and len(prior) != n_objectives:
        raise ValueError(
            f"prior has {len(prior)} entries for {n_objectives} objectives: give one prior, or "
            "one for each objective, None where there is none."
        )
    return UNIVERSAL if isinstance(prior, RecognisedPrior) and n_objectives > 1 else prior


def aligned(prior: LoadedPrior, space: SearchSpace) -> tuple[AlignedPrior | None, ...]:
    """Return the trained priors aligned to a search space: one for all objectives, or one each.

    There are none for the universal prior, for past studies and for a recognised learner, nor if
    no prior applies to the space. A ValueError says that the spaces have no parameter in common.
    """
    if prior is None or isinstance(prior, (str, UniversalFile, PastTasksLike, RecognisedPrior)):
        return ()
    if not space.n_parameters:
        return ()
    parts = prior if isinstance(prior, (list, tuple)) else (prior,)
    on_space = tuple(None if part is None else part.on(space) for part in parts)
    return on_space if any(part is not None for part in on_space) else ()


def fits(prior: PriorLike, space: SearchSpace) -> bool:
    """Say whether a trained prior has a parameter, and a value of it, in common with a space."""
    try:
        prior.on(space)
    except ValueError:
        return False
    return True


def check_turns(prior: object, preset: str | Preset) -> None:
    """Raise a ValueError for the file of a universal prior if none takes turns."""
    if isinstance(prior, UniversalFile) and not get_preset(preset).universal_turns:
        text = f"preset={preset!r}" if isinstance(preset, str) else "a Preset"
        raise ValueError(
            f"prior must not be the file of a universal prior, got {prior.path!r}, with "
            f"{text}, in which none takes turns: leave one of them out, or give a Preset with "
            "universal_turns=True."
        )
