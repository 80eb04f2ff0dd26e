"""The universal prior on disk: one safetensors file with a versioned JSON header.

`dre_bench.universal.training` of the benchmarks writes such files.
"""

import json
import os
from functools import lru_cache
from pathlib import Path

import torch
from safetensors import SafetensorError

from dre_plugins.engine import checkpoint
from dre_plugins.engine.checkpoint import PriorError
from dre_plugins.files import regular
from dre_plugins.universal.network import UniversalPrior, UniversalSettings

FORMAT = "dre-plugins/universal-prior"
VERSION = 2
SHIPPED = Path(__file__).parent / "prior.safetensors"


def load(path: str | os.PathLike[str]) -> UniversalPrior:
    """Read a universal prior; nothing in the file can run code.

    Raises:
        PriorError: If the file is missing, damaged, foreign, or from another version.
    """
    try:
        return _parsed(os.fspath(path), regular(path).read_bytes())
    except OSError as error:
        raise PriorError(f"{path}: not a readable safetensors file ({error}).") from error


def _parsed(name: str, content: bytes) -> UniversalPrior:
    writer = "dre-bench train-universal"
    header, tensors = checkpoint.read(name, content, FORMAT, VERSION, writer=writer)
    if (version := int(header["version"])) < VERSION:  # of another network
        raise PriorError(
            f"{name}: version {version} is older than {VERSION}; train it again with {writer}."
        )
    try:
        settings = UniversalSettings(**json.loads(header["settings"]))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise PriorError(f"{name}: damaged header ({error}).") from error
    with torch.device("cpu"):
        prior = UniversalPrior(settings)
    shapes = {key: value.shape for key, value in prior.state_dict().items()}
    prior.load_state_dict(checkpoint.checked(name, tensors, shapes))
    return prior.requires_grad_(False)


@lru_cache(maxsize=1)
def load_network() -> UniversalPrior:
    """Return the universal prior of the package for inference, in float64, read once."""
    return load(SHIPPED).double()


def network_in(path: str | os.PathLike[str]) -> UniversalPrior | None:
    """Return the universal prior in a file for inference, in float64; None if it is another file.

    A PriorError says that its header is that of a universal prior, but that it cannot be read.
    """
    try:
        content = regular(path).read_bytes()
        header, _ = checkpoint.parsed(content)
    except (SafetensorError, OSError):
        return None
    is_universal = header.get("format") == FORMAT
    return _parsed(os.fspath(path), content).double() if is_universal else None
