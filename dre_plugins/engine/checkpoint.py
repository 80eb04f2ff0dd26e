"""Ensembles on disk: one safetensors file with a versioned JSON header; never a pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

import torch
from safetensors import SafetensorError
from safetensors.torch import load as from_bytes, save as to_bytes
from torch import Tensor

from dre_plugins.engine.files import atomic_write
from dre_plugins.engine.scorers import Parameters, layer_shapes
from dre_plugins.engine.settings import ScorerSettings, require

FORMAT = "dre-plugins/ensemble"
VERSION = 1

# At least ten times the sizes of the largest ensembles that were reported to help.
MAX_MEMBERS = 256
MAX_LAYERS = 32
MAX_FEATURES = 4096


class CheckpointError(ValueError):
    """Say why a file is not an ensemble that this version can read."""


def save(
    path: str | os.PathLike[str],
    parameters: Mapping[str, Tensor],
    settings: ScorerSettings,
    n_features: int,
    card: str,
) -> None:
    """Write an ensemble; an old file is replaced, and left as it was if writing fails.

    `card` is a text that goes with it, such as where it comes from.

    Raises:
        ValueError: If it is larger than a file may be, see `check_size`.
        OSError: If it cannot be written.
    """
    check_size(settings, n_features)
    header = {
        "format": FORMAT,
        "version": str(VERSION),
        "settings": json.dumps(settings.to_dict()),
        "n_features": str(n_features),
        "card": card,
    }
    tensors = {name: value.detach().cpu().contiguous() for name, value in parameters.items()}
    with atomic_write(path) as unfinished:
        unfinished.write_bytes(to_bytes(tensors, metadata=header))


def parse(name: str, content: bytes) -> tuple[Parameters, ScorerSettings, int, str]:
    """Return the parameters, settings, number of features D and card of what `save` wrote.

    Every tensor is checked against the header. `name` is that of the file, for messages.

    Raises:
        CheckpointError: If the content is damaged, foreign, from a newer version, or asks for more
            than `check_size` allows.
    """
    try:
        header, tensors = parsed(content)
    except SafetensorError as error:
        raise CheckpointError(f"{name}: {_cause(content, error)}.") from error
    settings, n_features = _read_header(name, header)
    expected: dict[str, tuple[int, ...]] = {}
    for layer, (n_members, n_in, n_out) in layer_shapes(settings, n_features).items():
        expected[f"{layer}.weight"] = (n_members, n_in, n_out)
        expected[f"{layer}.bias"] = (n_members, 1, n_out)
    if set(tensors) != set(expected):
        raise CheckpointError(f"{name}: the tensors do not fit the header's settings.")
    for key, shape in expected.items():
        value = tensors[key]
        if tuple(value.shape) != shape or value.dtype != torch.float32:
            raise CheckpointError(
                f"{name}: {key} is {value.dtype} {[*value.shape]}, "
                f"expected {torch.float32} {list(shape)}."
            )
        if not bool(torch.isfinite(value).all()):
            raise CheckpointError(f"{name}: holds weights that are not finite.")
    return {key: tensors[key] for key in expected}, settings, n_features, header.get("card", "")


def parsed(content: bytes) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Return the texts of the header and the tensors, on the CPU; a SafetensorError: damaged.

    Tensors take no more memory than the content.
    """
    try:
        tensors = from_bytes(content)
        length = int.from_bytes(content[:8], "little")
        texts = json.loads(content[8 : 8 + length]).get("__metadata__")
    except (KeyError, TypeError, ValueError, RuntimeError, RecursionError) as error:
        # Errors that safetensors does not catch, such as a dtype that torch lacks.
        raise SafetensorError(f"{type(error).__name__}: {error}") from error
    return texts or {}, tensors


def check_size(settings: ScorerSettings, n_features: int = 1) -> None:
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


def _cause(content: bytes, error: Exception) -> str:
    if content[:2] in (b"PK", *(bytes([0x80, protocol]) for protocol in range(2, 6))):
        return (
            "this is a pickle or a torch archive, which could run code and is never loaded; "
            "ask for a safetensors file"
        )
    return f"not a readable safetensors file, damaged or cut off ({error})"


def _read_header(name: str, header: Mapping[str, str]) -> tuple[ScorerSettings, int]:
    if header.get("format") != FORMAT:
        raise CheckpointError(
            f"{name}: format is {header.get('format')!r}, expected {FORMAT!r}; "
            "write it with Prior.save."
        )
    try:
        version = int(header["version"])
        if version > VERSION:
            raise CheckpointError(
                f"{name}: version {version} is newer than {VERSION}; upgrade dre-plugins."
            )
        settings = ScorerSettings.from_dict(json.loads(header["settings"]))
        n_features = int(header["n_features"])
        check_size(settings, n_features)
        return settings, n_features
    except CheckpointError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise CheckpointError(f"{name}: damaged header ({error}).") from error
