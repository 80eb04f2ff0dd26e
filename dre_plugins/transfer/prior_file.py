"""Trained priors on disk: a safetensors file with the card and the search space in its header."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dre_plugins.engine import checkpoint
from dre_plugins.engine.checkpoint import CheckpointError
from dre_plugins.engine.files import regular
from dre_plugins.engine.scorers import Parameters
from dre_plugins.engine.settings import ScorerSettings
from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.recommend.prior import UNIVERSAL
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.archive import DAMAGES, listed, numbers
from dre_plugins.transfer.prior import Card, Prior, PriorError

# Version of the card. A file of a newer version is refused: its entries may mean something else.
SCHEMA = 1

CATALOGUE = Path(__file__).parent / "catalogue"


def save(path: str | os.PathLike[str], prior: Prior) -> None:
    """Write a prior, see `Prior.save`."""
    ensemble, contexts = prior.ensemble, prior.contexts
    header: dict[str, Any] = {
        "schema": SCHEMA,
        "card": prior.card.to_dict(),
        "space": prior.space.to_dict(),
        "favourites": prior.favourites,
        "portfolio": prior.portfolio,
        # Rounded to the precision of float32.
        "contexts": contexts
        if contexts is None
        else [[float(str(entry)) for entry in row] for row in contexts],
    }
    header = json.loads(json.dumps(header, default=listed))
    header["sha256"] = content_hash(ensemble.parameters, ensemble.settings, header)
    text = json.dumps(header)
    checkpoint.save(path, ensemble.parameters, ensemble.settings, ensemble.n_features, text)


def load(prior: str | os.PathLike[str]) -> Prior:
    """Return a prior that is named or given by its path, see `Prior.load`."""
    shipped, path = names(), Path(prior)
    if isinstance(prior, str) and prior in shipped:
        path = CATALOGUE / f"{prior}.safetensors"
    if not path.is_file():
        raise PriorError(
            f"prior must be one of {shipped} or the path of a file, got {os.fspath(prior)!r}; a "
            f"study also takes 'auto' (that of the learner which it tunes), {UNIVERSAL!r} (of "
            "functions on any space) and None (nothing)."
        )
    try:
        content = regular(path).read_bytes()
    except OSError as error:
        raise PriorError(f"{path}: cannot be read: {error}") from error
    return parsed(os.fspath(path), content)


# Cached, as Syne Tune constructs searchers at every suggestion. Priors are never changed in place.
@lru_cache(maxsize=8)
def parsed(path: str, content: bytes) -> Prior:
    """Return the prior that a file holds, see `Prior.load`."""
    try:
        parameters, settings, n_features, text = checkpoint.parse(path, content)
    except CheckpointError as error:
        raise PriorError(str(error)) from error
    try:
        header = json.loads(text)
        if int(header["schema"]) > SCHEMA:
            raise PriorError(
                f"{path}: schema {header['schema']} is newer than {SCHEMA}; upgrade dre-plugins."
            )
        if header["sha256"] != content_hash(parameters, settings, header):
            raise PriorError(f"{path}: damaged: the hash of its content is another one.")
        space = SearchSpace.from_dict(header["space"])
        prior = Prior(
            DeepRankingEnsemble(settings, n_features, parameters),
            space,
            Card.from_dict(header["card"]),
            numbers(header["favourites"]).reshape(-1, space.n_parameters),
            contexts=_contexts(header.get("contexts"), settings),
            portfolio=None
            if header.get("portfolio") is None
            else numbers(header["portfolio"]).reshape(-1, space.n_parameters),
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


def names() -> list[str]:
    """Return the names of the priors that ship with the package."""
    return sorted(path.stem for path in CATALOGUE.glob("*.safetensors"))


def content_hash(
    parameters: Parameters, settings: ScorerSettings, header: Mapping[str, Any]
) -> str:
    """Return a hash over weights, settings, card and search space."""
    digest = hashlib.sha256(json.dumps(settings.to_dict(), sort_keys=True).encode())
    content = {name: value for name, value in header.items() if name != "sha256"}
    digest.update(json.dumps(content, sort_keys=True).encode())
    for name in sorted(parameters):
        digest.update(name.encode())
        digest.update(parameters[name].detach().cpu().to(torch.float32).numpy().tobytes())
    return digest.hexdigest()


def _contexts(plain: Any, settings: ScorerSettings) -> NDArray[np.float32] | None:
    if plain is None:
        return None
    if settings.context is None:
        raise ValueError("contexts of scorers that have none")
    contexts = numbers(plain).astype(np.float32).reshape(-1, settings.context.size)
    if not (len(contexts) and np.isfinite(contexts).all()):
        raise ValueError("contexts that are not finite")
    return contexts
