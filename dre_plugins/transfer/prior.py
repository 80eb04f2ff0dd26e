"""Priors: meta-trained ensembles with the search space that they know and a card."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dre_plugins.engine import checkpoint
from dre_plugins.engine.checkpoint import CheckpointError
from dre_plugins.engine.contents import ByContent
from dre_plugins.engine.scorers import Parameters
from dre_plugins.engine.settings import ScorerSettings, require
from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.recommend.prior import UNIVERSAL, AlignedPrior
from dre_plugins.space.base import Domain
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.archive import DAMAGES, numbers
from dre_plugins.transfer.metadata import MetaDataset
from dre_plugins.transfer.spaces.alignment import Alignment, align
from dre_plugins.transfer.spaces.plain import space_from_plain, space_to_plain

__all__ = ["Card", "Prior", "PriorError"]

# Version of the card. A file of a newer one is refused: what it says may mean something else.
SCHEMA = 1

CATALOGUE = Path(__file__).parent / "catalogue"


class PriorError(ValueError):
    """Say why a prior cannot be loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """Say where a prior comes from.

    Args:
        name: Short name.
        description: One sentence.
        tasks: Names of the tasks that it was meta-trained on.
        n_evaluations: Evaluations of these tasks.
        source: Where they come from.
        licence: What one may do with them, and hence with the prior.
        created: Date, ISO 8601.
        rebuild: Command that makes the prior anew; empty if there is none.
        defaults: Values of parameters that a study does not tune, by name in the prior's space.
        training: Settings of the meta-training, JSON-ready.
        validation: Figures, by name.
    """

    name: str
    description: str = ""
    tasks: tuple[str, ...] = ()
    n_evaluations: int = 0
    source: str = ""
    licence: str = ""
    created: str = ""
    rebuild: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    validation: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("defaults", "training", "validation"):
            value = getattr(self, name)
            is_mapping = isinstance(value, Mapping) and all(isinstance(key, str) for key in value)
            require(is_mapping, name, value, "a mapping of names")

    def to_dict(self) -> dict[str, Any]:
        """Return the card as JSON-ready values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Card:
        """Rebuild a card from `to_dict`; entries that this version does not know are left out."""
        known = {entry.name for entry in fields(cls)}
        values = {name: value for name, value in state.items() if name in known}
        return cls(**{**values, "tasks": tuple(values.get("tasks", ()))})


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """Hold what past tasks taught: scorers, the search space that they know, and a card.

    Args:
        ensemble: Meta-trained scorers of the features of `space`.
        space: The search space of the past tasks.
        card: Where they come from.
        favourites: Canonical coordinates of what was best in past tasks `[F, P]`.
        mapping: Name in a study's space to name in this one, where names do not tell.
        contexts: Contexts of past tasks `[T, Z]`; None if the ensemble has no context.
        remark: What is said beside which parameters it knows, such as why it was chosen.

    Examples:
        >>> prior = Prior.load("xgboost")  # ships with the package
        >>> prior.card.licence
        'Apache-2.0'
    """

    ensemble: DeepRankingEnsemble
    space: SearchSpace
    card: Card
    favourites: NDArray[np.float64]
    mapping: Mapping[str, str] = field(default_factory=dict)
    contexts: NDArray[np.float32] | None = None
    remark: str = ""

    def __post_init__(self) -> None:
        known = list(self.space.domains)
        for name, own in self.mapping.items():
            require(own in known, f"mapping[{name!r}]", own, f"one of the prior's {known}")
        twice = [own for own in self.mapping.values() if [*self.mapping.values()].count(own) > 1]
        require(not twice, "mapping", twice, "one of your parameters for each of the prior's")

    @classmethod
    def train(cls, metadata: MetaDataset, **options: Any) -> Prior:
        """Meta-train a prior on past tasks (Algorithm 1 of the paper).

        Args:
            metadata: Past tasks; their search spaces may differ.
            **options: As of `transfer.training.train_prior`: `name`, `description`, `validation`
                (other tasks, which decide which weights are kept; every fifth task by default,
                if there are 10), `space` (default: the union), `defaults`, `scorer`, `settings`
                (`MetaTrainingSettings`), `seed`, `device`, `n_threads`, `checkpoint` and `resume`,
                `share` (which of several processes this is, see `transfer.data_parallel`),
                `progress` (show a bar).

        Raises:
            ValueError: If there is nothing to learn from, or an option is invalid.
        """
        from dre_plugins.transfer.training import train_prior

        return train_prior(metadata, **options)

    @classmethod
    def of_few(cls, metadata: MetaDataset) -> Prior:
        """Meta-train a prior on a handful of past tasks, in seconds.

        Raises:
            ValueError: If there is nothing to learn from.
        """
        from dre_plugins.transfer.training import prior_of_few

        return prior_of_few(metadata)

    @classmethod
    def of_beliefs(
        cls,
        space: SearchSpace | Mapping[str, Domain],
        configurations: Sequence[Mapping[str, Any]],
    ) -> Prior:
        """Make a prior of where good values are expected, in seconds.

        It is used like any other: the first trials are near what is favoured, and the more is
        observed, the less it counts, if it is wrong.

        Args:
            space: The search space, or a domain by parameter name.
            configurations: What is expected to be good; leave out parameters of which nothing is
                expected.

        Raises:
            ValueError: If there are no configurations, or they are not in the space.
        """
        from dre_plugins.transfer.beliefs import metadata_of_beliefs

        if not isinstance(space, SearchSpace):
            space = SearchSpace(space)
        return cls.of_few(metadata_of_beliefs(space, configurations))

    @classmethod
    def load(
        cls,
        prior: str | os.PathLike[str],
        *,
        mapping: Mapping[str, str] | None = None,
    ) -> Prior:
        """Load a prior that ships with the package, by name, or one that `save` wrote, by path.

        Nothing in the file can run code.

        Args:
            prior: A name, see `dre priors list`, or the path of a ".safetensors" file.
            mapping: Name in your search space to name in the prior's, where names do not tell.

        Raises:
            PriorError: If there is no such prior, or the file is damaged, foreign, or from a
                newer version.
            ValueError: If the mapping names a parameter that the prior does not have.
        """
        path = _path_of(prior)
        try:
            _, loaded = _PRIORS.of(path)
        except OSError as error:
            raise PriorError(f"{path}: cannot be read: {error}") from error
        return loaded.with_mapping(mapping)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file: weights, and the card as JSON in its header.

        Raises:
            ValueError: If the space has categories that JSON cannot hold.
        """
        card: dict[str, Any] = {
            "schema": SCHEMA,
            "card": self.card.to_dict(),
            "space": space_to_plain(self.space),
            "favourites": [
                [None if math.isnan(unit) else unit for unit in row]
                for row in self.favourites.tolist()
            ],
            "contexts": None if self.contexts is None else _rounded(self.contexts),
        }
        card = json.loads(json.dumps(card))
        card["sha256"] = _digest(self.ensemble.parameters, self.ensemble.settings, card)
        checkpoint.save(
            path,
            self.ensemble.parameters,
            self.ensemble.settings,
            self.ensemble.n_features,
            json.dumps(card),
        )

    def align(self, space: SearchSpace) -> Alignment:
        """Return how configurations of `space` are expressed in the prior's space.

        Raises:
            ValueError: If the two have no parameter in common; names both.
        """
        alignment = align(
            space, self.space, mapping=self._mapping_for(space), defaults=self.card.defaults
        )
        if alignment is None:  # only on_incompatible="ignore" returns None
            raise AssertionError
        return alignment

    def on(self, space: SearchSpace) -> AlignedPrior:
        """Return the prior for a search space, which need not be its own.

        Parameters that the prior does not know are features whose weights are 0: they change no
        score until fine-tuning learns them.

        Raises:
            ValueError: If the two have no parameter in common; names both.
        """
        alignment = self.align(space)
        encoder = _Encoder(alignment)
        return AlignedPrior(
            self.ensemble.with_extra_features(len(encoder.extra)),
            encoder,
            self._favourites_in(space),
            self.contexts,
            f"prior {self.card.name!r} {alignment.summary()}{self.remark}",
        )

    def _favourites_in(self, space: SearchSpace) -> NDArray[np.float64]:
        """Return the favourites as coordinates of a study's space; none if they have no place."""
        mapping = {own: name for name, own in self._mapping_for(space).items()}
        try:
            alignment = align(self.space, space, mapping=mapping)
        except ValueError:  # values that the prior has a place for need not have one here
            return np.empty((0, space.n_parameters))
        assert alignment is not None  # only on_incompatible="ignore" returns None
        return np.clip(alignment.convert(self.favourites), 0.0, 1.0)

    def knows(self, name: str, domain: Domain, beside: Mapping[str, Domain] | None = None) -> bool:
        """Say whether a parameter of a study is one of the prior's, by name, alias or mapping.

        Args:
            name: The parameter.
            domain: Its domain.
            beside: Other parameters of the study, which tell what learner it belongs to.
        """
        space = SearchSpace({**(beside or {}), name: domain})
        mapping = self._mapping_for(space)
        alignment = align(space, self.space, mapping=mapping, on_incompatible="ignore")
        return alignment is not None and name in {link.source for link in alignment.links}

    def completed(self, domains: Mapping[str, Domain]) -> SearchSpace:
        """Fill up the parameters known of a study with the prior's own.

        A define-by-run study reveals its parameters one after the other; until it does, the
        prior's stand in for those to come, so that each is chosen to go with the others.

        Args:
            domains: The study's parameters so far, by name.
        """
        known = SearchSpace(domains)
        alignment = align(
            known,
            self.space,
            mapping=self._mapping_for(known),
            defaults=self.card.defaults,
            on_incompatible="ignore",
        )
        linked = {link.target for link in alignment.links} if alignment is not None else set()
        # Without the prior's conditions: `Alignment.convert` heeds them anyway.
        to_come = {
            name: domain
            for name, domain in self.space.domains.items()
            if name not in linked and name not in domains
        }
        return SearchSpace({**domains, **to_come})

    def _mapping_for(self, space: SearchSpace) -> dict[str, str]:
        """Return the mapping of parameters that the space has.

        In a define-by-run study it may get the others later.
        """
        return {name: own for name, own in self.mapping.items() if name in space.domains}

    def with_mapping(self, mapping: Mapping[str, str] | None) -> Prior:
        """Return the prior with a mapping of names, see `load`."""
        return replace(self, mapping=dict(mapping or {}))

    def with_remark(self, remark: str) -> Prior:
        """Return the prior with something to say beside which parameters it knows."""
        return replace(self, remark=remark)


class _Encoder:
    """Encode coordinates of a study's space as features that the prior knows, then extra ones."""

    def __init__(self, alignment: Alignment) -> None:
        self._alignment = alignment
        # Also of parameters whose domains differ: values that the prior's cannot tell apart, such
        # as categories that it does not have, must not look alike for ever.
        changed = {link.source for link in alignment.links if link.note}
        self.extra = alignment.source.feature_columns(changed | set(alignment.ignored))

    def __call__(self, units: NDArray[np.float64]) -> NDArray[np.float32]:
        known = self._alignment.target.features(self._alignment.convert(units))
        if not self.extra:
            return known
        return np.hstack([known, self._alignment.source.features(units)[:, self.extra]])


def _parsed(path: str, content: bytes) -> Prior:
    """Return the prior that a file holds."""
    try:
        parameters, settings, n_features, text = checkpoint.parse(path, content)
    except CheckpointError as error:
        raise PriorError(str(error)) from error
    if not text:
        raise PriorError(f"{path}: holds an ensemble without a card; write it by Prior.save.")
    try:
        card = json.loads(text)
        if int(card["schema"]) > SCHEMA:
            raise PriorError(
                f"{path}: schema {card['schema']} is newer than {SCHEMA}; upgrade dre-plugins."
            )
        if card["sha256"] != _digest(parameters, settings, card):
            raise PriorError(f"{path}: damaged: the hash of its content is another one.")
        space = space_from_plain(card["space"])
        prior = Prior(
            DeepRankingEnsemble(settings, n_features, parameters),
            space,
            Card.from_dict(card["card"]),
            numbers(card["favourites"]).reshape(-1, space.n_parameters),
            contexts=_contexts(card.get("contexts"), settings),
        )
    except PriorError:
        raise
    except DAMAGES as error:
        raise PriorError(f"{path}: damaged card ({type(error).__name__}).") from error
    if space.n_features != n_features:
        raise PriorError(
            f"{path}: damaged: its space has {space.n_features} features, its scorers "
            f"{n_features}."
        )
    return prior


# Syne Tune makes searchers anew at every suggestion. Nothing changes a prior in place.
_PRIORS = ByContent(_parsed, n_kept=8)


def _rounded(contexts: NDArray[np.float32]) -> list[list[float]]:
    """Return rows with the digits that float32 has."""
    return [[float(str(entry)) for entry in row] for row in contexts]


def _contexts(plain: Any, settings: ScorerSettings) -> NDArray[np.float32] | None:
    if plain is None:
        return None
    if settings.context is None:
        raise ValueError("contexts of scorers that have none")
    contexts = numbers(plain).astype(np.float32).reshape(-1, settings.context.size)
    if not (len(contexts) and np.isfinite(contexts).all()):
        raise ValueError("contexts that are not finite")
    return contexts


def _path_of(prior: str | os.PathLike[str]) -> Path:
    shipped = names()
    if isinstance(prior, str) and prior in shipped:
        return CATALOGUE / f"{prior}.safetensors"
    path = Path(prior)
    if not path.is_file():
        raise PriorError(
            f"prior must be one of {shipped} or the path of a file, got {os.fspath(prior)!r}; a "
            f"study also takes 'auto' (that of the learner which it tunes), {UNIVERSAL!r} (of "
            "functions on any space) and None (nothing)."
        )
    return path


def names() -> list[str]:
    """Return the names of the priors that ship with the package."""
    return sorted(path.stem for path in CATALOGUE.glob("*.safetensors"))


def _digest(parameters: Parameters, settings: ScorerSettings, card: Mapping[str, Any]) -> str:
    """Return a hash over weights, settings, card and search space."""
    digest = hashlib.sha256(json.dumps(settings.to_dict(), sort_keys=True).encode())
    content = {name: value for name, value in card.items() if name != "sha256"}
    digest.update(json.dumps(content, sort_keys=True).encode())
    for name in sorted(parameters):
        digest.update(name.encode())
        digest.update(parameters[name].detach().cpu().to(torch.float32).numpy().tobytes())
    return digest.hexdigest()
