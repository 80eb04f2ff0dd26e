"""Priors: meta-trained ensembles with the search space that they know and a card."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from dre_plugins.engine.checkpoint import PriorError
from dre_plugins.recommend.prior import AlignedPrior
from dre_plugins.space import Domain, SearchSpace
from dre_plugins.space.base import Array, Features
from dre_plugins.transfer import prior_file
from dre_plugins.transfer.metadata import MetaDataset
from dre_plugins.transfer.prior_file import Card, PriorContent
from dre_plugins.transfer.spaces.alignment import Alignment, align
from dre_plugins.transfer.spaces.completion import KnownSpace
from dre_plugins.transfer.training import OF_BELIEFS, SCORER, metadata_of_beliefs, train_prior

__all__ = ["Card", "Prior", "PriorError"]


@dataclass(frozen=True, slots=True, eq=False)
class Prior(PriorContent, KnownSpace):
    """Hold scorers that were meta-trained on past tasks, their search space and a card.

    Use `Prior.load`, `Prior.train` or `Prior.of_beliefs` to make one.

    Args:
        ensemble: Meta-trained scorers of the features of `space`.
        space: Search space of the past tasks.
        card: Description of the past tasks.
        favourites: Canonical coordinates of the best configurations of past tasks `[F, P]`.
        portfolio: Canonical coordinates of the first trials of a study whose learner is
            recognised, in order, `[F, P]`; they complement each other. None: the favourites.
        mapping: Name in a study's space to name in this one, where they do not match.
        remark: Text for the log, such as why the prior was chosen.

    Examples:
        >>> prior = Prior.load("xgboost")  # ships with the package
        >>> prior.card.licence
        'Apache-2.0'
    """

    mapping: Mapping[str, str] = field(default_factory=dict)
    remark: str = ""

    @classmethod
    def of(cls, content: PriorContent) -> Prior:
        """Return the prior that meta-training or a file yields, without a mapping of names."""
        return cls(**{part.name: getattr(content, part.name) for part in fields(PriorContent)})

    @staticmethod
    def train(metadata: MetaDataset, **options: Any) -> Prior:
        """Meta-train a prior on past tasks (Algorithm 1 of the paper).

        Args:
            metadata: Past tasks; their search spaces may differ.
            **options: Options of `transfer.training.train_prior`: `name`, `description`,
                `validation` (other tasks, which decide which weights are kept; by default every
                fifth task if there are 10), `space` (default: the union), `defaults` and `rebuild`
                (see `Card`), `scorer`, `settings` (`MetaTrainingSettings`), `seed`, `device`,
                `n_threads`, `checkpoint`, `resume`, `progress` (show a bar).

        Raises:
            ValueError: If there is nothing to learn from, or an option is invalid.
        """
        return Prior.of(train_prior(metadata, **options))

    @staticmethod
    def of_beliefs(
        space: SearchSpace | Mapping[str, Domain], configurations: Sequence[Mapping[str, Any]]
    ) -> Prior:
        """Make a prior from configurations that are expected to be good, in seconds.

        It is used like any other trained prior: the first trials are near these configurations.
        If trials contradict it, its weight falls.

        Args:
            space: The search space, or a domain by parameter name.
            configurations: Configurations that are expected to be good; leave out parameters
                without an expectation.

        Raises:
            ValueError: If there are none, or one is not in the space or names nothing searched.
        """
        if not isinstance(space, SearchSpace):
            space = SearchSpace(space)
        metadata = metadata_of_beliefs(space, configurations)
        scorer = replace(SCORER, context=None)
        return Prior.train(metadata, name="beliefs", scorer=scorer, settings=OF_BELIEFS)

    @staticmethod
    def load(prior: str | os.PathLike[str], *, mapping: Mapping[str, str] | None = None) -> Prior:
        """Load a prior that ships with the package, by name, or one that `save` wrote, by path.

        Nothing in the file can run code.

        Args:
            prior: A name, see `dre priors list`, or the path of a ".safetensors" file.
            mapping: Name in your search space to name in the prior's, where they do not match.

        Raises:
            PriorError: If there is no such prior, or its file is damaged, foreign, or newer.
            ValueError: If the mapping names a parameter that the prior does not have.
        """
        return Prior.of(prior_file.load(prior)).with_mapping(mapping)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file: weights, and the card as JSON in its header.

        Raises:
            ValueError: If the space has categories that JSON cannot hold.
        """
        prior_file.save(path, self)

    def align(self, space: SearchSpace) -> Alignment:
        """Return how configurations of `space` are expressed in the prior's space.

        Raises:
            ValueError: If the two have no parameter in common; names both.
        """
        return align(space, self.space, mapping=self.mapping, defaults=self.card.defaults)

    def on(self, space: SearchSpace) -> AlignedPrior:
        """Return the prior for a search space, which need not be its own.

        Parameters that the prior does not know become features with weights of 0: they do not
        affect scores until fine-tuning changes the weights.

        Raises:
            ValueError: If the two have no parameter in common; names both.
        """
        alignment = self.align(space)
        # Parameters whose domains differ also have features of the study's domain. So values that
        # the prior cannot tell apart, such as categories that it lacks, can be learnt.
        changed = {link.source for link in alignment.links if link.note()}
        extra = space.feature_columns(changed | set(alignment.ignored))
        return AlignedPrior(
            self.ensemble.with_extra_features(len(extra)),
            partial(_encoded, alignment, extra),
            self._placed(space, self.favourites),
            f"prior {self.card.name!r} {alignment.summary()}{self.remark}",
        )

    def scores(self, space: SearchSpace, units: Array) -> Array:
        """Return the mean score of configurations over members `[N]`, larger is better.

        Args:
            units: Canonical coordinates of the configurations `[N, P]`.

        Raises:
            ValueError: If the two spaces have no parameter in common.
        """
        aligned = self.on(space)
        scores = aligned.ensemble.scores(torch.from_numpy(aligned.encode(units)))
        return scores.double().mean(0).numpy()

    def first_trials(self, space: SearchSpace) -> Array:
        """Return the portfolio as coordinates of a study's space `[F, P]`, see `portfolio`."""
        return self._placed(space, self.favourites if self.portfolio is None else self.portfolio)

    def _placed(self, space: SearchSpace, units: Array) -> Array:
        """Return configurations as coordinates of a study's space, none if it lacks them."""
        mapping = {theirs: name for name, theirs in self.mapping.items()}
        try:
            alignment = align(self.space, space, mapping=mapping)
        except ValueError:  # the study's space may lack values of the prior's
            return np.empty((0, space.n_parameters))
        return np.clip(alignment.convert(units), 0.0, 1.0)

    def with_mapping(self, mapping: Mapping[str, str] | None) -> Prior:
        """Return the prior with a mapping of names, see `load`."""
        return replace(self, mapping=dict(mapping or {}))


def _encoded(alignment: Alignment, extra: Sequence[int], units: Array) -> Features:
    """Return features of the prior's space, and extra ones of the study's space behind them."""
    features = alignment.target.features(alignment.convert(units))
    return np.hstack([features, alignment.source.features(units)[:, extra]]) if extra else features
