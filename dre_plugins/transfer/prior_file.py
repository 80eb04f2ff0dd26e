"""What a trained prior is made of, and its file: safetensors with a header of JSON."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from dre_plugins.checks import require, shortened
from dre_plugins.engine import checkpoint
from dre_plugins.engine.checkpoint import PriorError
from dre_plugins.engine.scorers import Parameters, layer_shapes
from dre_plugins.engine.settings import ScorerSettings
from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.files import regular
from dre_plugins.recommend.prior import UNIVERSAL
from dre_plugins.space import SearchSpace
from dre_plugins.space.base import Array
from dre_plugins.transfer.archive import DAMAGES, listed, numbers

FORMAT = "dre-plugins/ensemble"
VERSION = 1

# At least ten times the sizes of the largest ensembles that were reported to help.
MAX_MEMBERS = 256
MAX_LAYERS = 32
MAX_FEATURES = 4096

CATALOGUE = Path(__file__).parent / "catalogue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """Say where a prior comes from.

    Args:
        name: Short name.
        description: One sentence.
        tasks: Names of the tasks that it was meta-trained on.
        n_evaluations: Evaluations of these tasks.
        source: Where they come from.
        licence: Licence of the tasks, and hence of the prior.
        created: Date, ISO 8601.
        rebuild: Command that makes the prior anew; empty if there is none.
        defaults: Values of the prior's parameters that a study does not tune, by name.
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

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Card:
        """Rebuild a card from its dictionary, without entries that this version does not know."""
        values = {entry.name: state[entry.name] for entry in fields(cls) if entry.name in state}
        return cls(**{**values, "tasks": tuple(values.get("tasks", ()))})


@dataclass(frozen=True, slots=True, eq=False)
class PriorContent:
    """Hold what meta-training yields and the file of a prior contains; see `Prior` for each."""

    ensemble: DeepRankingEnsemble = field(repr=False)  # thousands of weights
    space: SearchSpace
    card: Card
    favourites: Array = field(repr=False)
    portfolio: Array | None = field(default=None, repr=False)


# ---- the file


def save(path: str | os.PathLike[str], prior: PriorContent) -> None:
    """Write a prior, see `Prior.save`."""
    ensemble = prior.ensemble
    check_size(ensemble.settings, ensemble.n_features)
    header: dict[str, Any] = {
        "card": asdict(prior.card),
        "space": prior.space.to_dict(),
        "favourites": prior.favourites,
        "portfolio": prior.portfolio,
    }
    header = json.loads(json.dumps(header, default=listed))
    header["sha256"] = content_hash(ensemble.parameters, ensemble.settings, header)
    texts = {
        "format": FORMAT,
        "version": str(VERSION),
        "settings": json.dumps(asdict(ensemble.settings)),
        "n_features": str(ensemble.n_features),
        "card": json.dumps(header),
    }
    checkpoint.save(path, ensemble.parameters, texts)


def load(prior: str | os.PathLike[str]) -> PriorContent:
    """Return a prior that is named or given by its path, see `Prior.load`."""
    given = os.fspath(prior) if isinstance(prior, os.PathLike) else prior
    shipped, path = names(), Path(given if isinstance(given, str) else "")
    if isinstance(prior, str) and prior in shipped:
        path = CATALOGUE / f"{prior}.safetensors"
    if not path.is_file():
        raise PriorError(
            f"prior must be one of {shipped} or the path of a file, got {shortened(given)}; a "
            f"study also takes 'auto' (that of the learner which it tunes), {UNIVERSAL!r} (of "
            "functions on any space), None (nothing), PastTasks, a Prior, and a list with one for "
            "each objective."
        )
    try:
        content = regular(path).read_bytes()
    except OSError as error:
        raise PriorError(f"{path}: cannot be read: {error}") from error
    return parsed(os.fspath(path), content)


# Cached, as Syne Tune constructs searchers at every suggestion. Priors are never changed in place.
@lru_cache(maxsize=8)
def parsed(path: str, content: bytes) -> PriorContent:
    """Return the prior that a file holds, see `Prior.load`."""
    texts, tensors = checkpoint.read(path, content, FORMAT, VERSION, writer="Prior.save")
    try:
        settings = ScorerSettings.from_dict(json.loads(texts["settings"]))
        n_features = int(texts["n_features"])
        check_size(settings, n_features)
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise PriorError(f"{path}: damaged header ({error}).") from error
    shapes: dict[str, tuple[int, ...]] = {}
    for layer, (n_members, n_in, n_out) in layer_shapes(settings, n_features).items():
        shapes[f"{layer}.weight"] = n_members, n_in, n_out
        shapes[f"{layer}.bias"] = n_members, 1, n_out
    parameters = checkpoint.checked(path, tensors, shapes)
    try:
        header = json.loads(texts.get("card", ""))
        if header["sha256"] != content_hash(parameters, settings, header):
            raise PriorError(f"{path}: damaged: the hash of its content is another one.")
        space = SearchSpace.from_dict(header["space"])
        # Older files also hold "contexts", of past tasks, which are not used.
        prior = PriorContent(
            DeepRankingEnsemble(settings, n_features, parameters),
            space,
            Card.from_dict(header["card"]),
            numbers(header["favourites"]).reshape(-1, space.n_parameters),
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


def check_size(settings: ScorerSettings, n_features: int) -> None:
    """Raise a ValueError for scorers that are larger than a file may hold.

    A few kilobytes can hold the weights of thousands of scorers or layers, each of which costs
    time and memory at every suggestion.
    """
    for name, value, limit in (
        ("n_members", settings.n_members, MAX_MEMBERS),
        ("number of hidden layers", len(settings.hidden), MAX_LAYERS),
        ("n_features", n_features, MAX_FEATURES),
    ):
        require(value <= limit, name, value, f"at most {limit} in a file")


def content_hash(
    parameters: Parameters, settings: ScorerSettings, header: Mapping[str, Any]
) -> str:
    """Return a hash over weights, settings, card and search space."""
    digest = hashlib.sha256(json.dumps(asdict(settings), sort_keys=True).encode())
    content = {name: value for name, value in header.items() if name != "sha256"}
    digest.update(json.dumps(content, sort_keys=True).encode())
    for name in sorted(parameters):
        digest.update(name.encode())
        digest.update(parameters[name].detach().cpu().to(torch.float32).numpy().tobytes())
    return digest.hexdigest()
