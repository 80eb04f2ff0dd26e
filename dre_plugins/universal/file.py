"""The universal prior on disk: one safetensors file with a versioned JSON header.

`dre_bench.universal.training` of the benchmarks writes such files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import torch
from safetensors import SafetensorError

from dre_plugins.engine.checkpoint import parsed
from dre_plugins.engine.files import regular
from dre_plugins.universal.network import UniversalPrior, UniversalSettings

FORMAT = "dre-plugins/universal-prior"
VERSION = 1
SHIPPED = Path(__file__).parent / "prior.safetensors"


class UniversalPriorError(ValueError):
    """Say why a file is not a universal prior that this version can read."""


def load(path: str | os.PathLike[str]) -> UniversalPrior:
    """Read a universal prior; nothing in the file can run code.

    Raises:
        UniversalPriorError: If the file is missing, damaged, foreign, or from a newer version.
    """
    try:
        return _parsed(os.fspath(path), regular(path).read_bytes())
    except OSError as error:
        raise _unreadable(path, error) from error


def _parsed(name: str, content: bytes) -> UniversalPrior:
    try:
        header, tensors = parsed(content)
    except SafetensorError as error:
        raise _unreadable(name, error) from error
    settings = _settings(name, header)
    # The smallest network of this width has more weights than its square.
    n_weights = sum(value.numel() for value in tensors.values())
    fits = n_weights > settings.width**2 * (1 + settings.n_refinements)
    if fits:
        with torch.device("cpu"):
            prior = UniversalPrior(settings)
        shapes = {key: (value.dtype, value.shape) for key, value in prior.state_dict().items()}
        fits = {key: (value.dtype, value.shape) for key, value in tensors.items()} == shapes
    if not fits:
        raise UniversalPriorError(f"{name}: the tensors do not fit the header's settings.")
    if not all(bool(torch.isfinite(value).all()) for value in tensors.values()):
        raise UniversalPriorError(f"{name}: holds weights that are not finite.")
    prior.load_state_dict(tensors)
    return prior.requires_grad_(False)


def _unreadable(path: str | os.PathLike[str], error: Exception) -> UniversalPriorError:
    return UniversalPriorError(f"{os.fspath(path)}: not a readable safetensors file ({error}).")


@lru_cache(maxsize=1)
def load_network() -> UniversalPrior:
    """Return the universal prior of the package for inference, in float64, read once."""
    return load(SHIPPED).double()


def network_in(path: str | os.PathLike[str]) -> UniversalPrior | None:
    """Return the universal prior in a file for inference, in float64; None if it is another file.

    Raises:
        UniversalPriorError: If its header is that of a universal prior, but it cannot be read.
    """
    try:
        content = regular(path).read_bytes()
        header, _ = parsed(content)
    except (SafetensorError, OSError):
        return None
    is_universal = header.get("format") == FORMAT
    return _parsed(os.fspath(path), content).double() if is_universal else None


def _settings(name: str, header: Mapping[str, str]) -> UniversalSettings:
    if header.get("format") != FORMAT:
        raise UniversalPriorError(
            f"{name}: format is {header.get('format')!r}, expected {FORMAT!r}; write it with "
            "dre-bench train-universal."
        )
    try:
        version, settings = int(header["version"]), json.loads(header["settings"])
        if version <= VERSION:
            return UniversalSettings(**settings)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise UniversalPriorError(f"{name}: damaged header ({error}).") from error
    raise UniversalPriorError(
        f"{name}: version {version} is newer than {VERSION}; upgrade dre-plugins."
    )
