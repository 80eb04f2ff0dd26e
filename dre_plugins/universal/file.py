"""The universal prior on disk: one safetensors file with a versioned JSON header.

`dre_bench.universal.training` of the benchmarks writes such files.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import torch
from safetensors import SafetensorError

from dre_plugins.engine.checkpoint import parsed
from dre_plugins.engine.files import ContentCache, regular
from dre_plugins.universal.network import UniversalPrior, UniversalSettings

logger = logging.getLogger("dre_plugins")

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


_READY = ContentCache(lambda name, content: _parsed(name, content).double(), n_kept=4)


@lru_cache(maxsize=1)
def _shipped() -> UniversalPrior:
    """Return the universal prior of the package for inference, in float64."""
    return load(SHIPPED).double()


def load_network(path: str | os.PathLike[str] = SHIPPED, digest: str = "") -> UniversalPrior:
    """Return a universal prior for inference, in float64, read once per process and content.

    Args:
        path: Path of its file. The file of the package is read once per process.
        digest: Hash of the content when the study began. If the file has changed, this process
            still returns the prior of that content as long as it is cached; another process uses
            the new content, with a warning.

    Raises:
        UniversalPriorError: If there is no such file, or it is no universal prior.
    """
    if path == SHIPPED:
        return _shipped()
    remembered = _READY.get(digest)
    if remembered is not None:
        return remembered
    try:
        actual, prior = _READY.of(path)
    except OSError as error:
        raise _unreadable(path, error) from error
    if digest not in ("", actual):
        logger.warning(
            "%s holds another universal prior than when the study began; it is used from now on.",
            os.fspath(path),
        )
        _READY.keep(digest, prior)
    return prior


def digest_of(path: str | os.PathLike[str]) -> str | None:
    """Return the hash of a file's content if it is a universal prior, None if it is no such file.

    Raises:
        UniversalPriorError: If its header is that of a universal prior, but it cannot be read.
    """
    try:
        header, _ = parsed(regular(path).read_bytes())
        return _READY.of(path)[0] if header.get("format") == FORMAT else None
    except (SafetensorError, OSError):
        return None


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
