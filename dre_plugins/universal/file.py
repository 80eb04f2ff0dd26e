"""The universal prior on disk: one safetensors file with a versioned JSON header."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes

from dre_plugins.engine.files import replacing
from dre_plugins.universal.network import UniversalPrior, UniversalSettings

FORMAT = "dre-plugins/universal-prior"
VERSION = 1
SHIPPED = Path(__file__).parent / "prior.safetensors"


class UniversalPriorError(ValueError):
    """Say why a file is not a universal prior that this version can read."""


def save(prior: UniversalPrior, path: str | os.PathLike[str], note: str = "") -> None:
    """Write a universal prior.

    Args:
        prior: What to write, in float32.
        path: Where; replaced if it exists, and left alone if writing fails.
        note: How it was trained.

    Raises:
        OSError: If it cannot be written.
    """
    header = {
        "format": FORMAT,
        "version": str(VERSION),
        "settings": json.dumps(prior.settings.to_dict()),
        "note": note,
    }
    tensors = {
        name: value.detach().cpu().float().contiguous()
        for name, value in prior.state_dict().items()
    }
    with replacing(path) as unfinished:
        unfinished.write_bytes(to_bytes(tensors, metadata=header))


def load(path: str | os.PathLike[str]) -> UniversalPrior:
    """Read a universal prior; nothing in the file can run code.

    Raises:
        UniversalPriorError: If the file is missing, damaged, foreign, or from a newer version.
    """
    name = os.fspath(path)
    try:
        with safe_open(name, framework="pt", device="cpu") as file, torch.device("cpu"):
            prior = UniversalPrior(_settings(name, file.metadata() or {}))
            shapes = {key: ("F32", [*value.shape]) for key, value in prior.state_dict().items()}
            slices = {key: file.get_slice(key) for key in file.keys()}
            found = {key: (part.get_dtype(), part.get_shape()) for key, part in slices.items()}
            if found != shapes:
                raise UniversalPriorError(f"{name}: the tensors do not fit the header's settings.")
            prior.load_state_dict({key: file.get_tensor(key) for key in shapes})
    except (SafetensorError, OSError) as error:
        raise UniversalPriorError(f"{name}: not a readable safetensors file ({error}).") from error
    if not all(bool(torch.isfinite(value).all()) for value in prior.state_dict().values()):
        raise UniversalPriorError(f"{name}: holds weights that are not finite.")
    return prior.requires_grad_(False)


@lru_cache(maxsize=4)
def ready(path: str | os.PathLike[str] = SHIPPED) -> UniversalPrior:
    """Return a universal prior for inference, in float64, read once per process."""
    return load(path).double()


def is_universal(path: str | os.PathLike[str]) -> bool:
    """Say whether a file is a universal prior, by its header."""
    try:
        with safe_open(os.fspath(path), framework="np") as file:
            return (file.metadata() or {}).get("format") == FORMAT
    except (SafetensorError, OSError):
        return False


def _settings(name: str, header: Mapping[str, str]) -> UniversalSettings:
    if header.get("format") != FORMAT:
        raise UniversalPriorError(
            f"{name}: format is {header.get('format')!r}, expected {FORMAT!r}; write it with "
            "dre meta-train --synthetic."
        )
    try:
        version = int(header["version"])
        settings = json.loads(header["settings"])
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise UniversalPriorError(f"{name}: damaged header ({error}).") from error
    if version < 1:
        raise UniversalPriorError(f"{name}: damaged header (version {version}).")
    if version > VERSION:
        raise UniversalPriorError(
            f"{name}: version {version} is newer than {VERSION}; upgrade dre-plugins."
        )
    try:
        return UniversalSettings(**settings)
    except (TypeError, ValueError) as error:
        raise UniversalPriorError(f"{name}: damaged header ({error}).") from error
