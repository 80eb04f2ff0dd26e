"""Ensembles on disk: one safetensors file with a versioned JSON header; never a pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from dre_plugins.engine.files import replacing
from dre_plugins.engine.scorers import Parameters, layer_shapes
from dre_plugins.engine.settings import ScorerSettings

FORMAT = "dre-plugins/ensemble"
VERSION = 1


class CheckpointError(ValueError):
    """Say why a file is not an ensemble that this version can read."""


def save(
    path: str | os.PathLike[str],
    parameters: Mapping[str, Tensor],
    settings: ScorerSettings,
    n_features: int,
    card: str = "",
) -> None:
    """Write an ensemble.

    Args:
        path: Where to write; replaced if it exists, and left alone if writing fails.
        parameters: Stacked parameters, see `engine.scorers`.
        settings: The ensemble's shape.
        n_features: Number of features D.
        card: Text that goes with it, such as where it comes from.

    Raises:
        OSError: If it cannot be written.
    """
    header = {
        "format": FORMAT,
        "version": str(VERSION),
        "settings": json.dumps(settings.to_dict()),
        "n_features": str(n_features),
        "card": card,
    }
    tensors = {name: value.detach().cpu().contiguous() for name, value in parameters.items()}
    with replacing(path) as unfinished:
        unfinished.write_bytes(to_bytes(tensors, metadata=header))


def load(
    path: str | os.PathLike[str], device: str | torch.device = "cpu"
) -> tuple[Parameters, ScorerSettings, int, str]:
    """Read an ensemble and check every tensor against the header.

    Args:
        path: A file that `save` wrote.
        device: Where the parameters go.

    Returns:
        Parameters, settings, number of features D, and the card, empty if there is none.

    Raises:
        CheckpointError: If the file is missing, damaged, foreign, or from a newer version.
    """
    name = os.fspath(path)
    try:
        with safe_open(name, framework="pt", device="cpu") as file:
            header = file.metadata() or {}
            settings, n_features = _read_header(name, header)
            expected = _expected_shapes(settings, n_features)
            if set(file.keys()) != set(expected):
                raise CheckpointError(f"{name}: the tensors do not fit the header's settings.")
            for key, shape in expected.items():
                part = file.get_slice(key)
                if tuple(part.get_shape()) != shape or part.get_dtype() != "F32":
                    raise CheckpointError(
                        f"{name}: {key} is {part.get_dtype()} {part.get_shape()}, "
                        f"expected F32 {list(shape)}."
                    )
            with torch.device("cpu"):  # with torch 2.4 they land on the user's default device
                parameters = {key: file.get_tensor(key).to(device) for key in expected}
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{name}: {_cause(name, error)}.") from error
    if not all(bool(torch.isfinite(value).all()) for value in parameters.values()):
        raise CheckpointError(f"{name}: holds weights that are not finite.")
    return parameters, settings, n_features, header.get("card", "")


def _cause(name: str, error: Exception) -> str:
    if not os.path.isfile(name):
        return "there is no such file"
    with open(name, "rb") as file:
        start = file.read(2)
    if start in (b"PK", *(bytes([0x80, protocol]) for protocol in range(2, 6))):
        return (
            "this is a pickle or a torch archive, which could run code and is never loaded; "
            "ask for a safetensors file"
        )
    return f"not a readable safetensors file, damaged or cut off ({error})"


def _read_header(name: str, header: Mapping[str, str]) -> tuple[ScorerSettings, int]:
    if header.get("format") != FORMAT:
        raise CheckpointError(
            f"{name}: format is {header.get('format')!r}, expected {FORMAT!r}; "
            "write it with DeepRankingEnsemble.save."
        )
    try:
        version = int(header["version"])
        if version > VERSION:
            raise CheckpointError(
                f"{name}: version {version} is newer than {VERSION}; upgrade dre-plugins."
            )
        return ScorerSettings.from_dict(json.loads(header["settings"])), int(header["n_features"])
    except CheckpointError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise CheckpointError(f"{name}: damaged header ({error}).") from error


def _expected_shapes(settings: ScorerSettings, n_features: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for layer, (n_members, n_in, n_out) in layer_shapes(settings, n_features).items():
        shapes[f"{layer}.weight"] = (n_members, n_in, n_out)
        shapes[f"{layer}.bias"] = (n_members, 1, n_out)
    return shapes
