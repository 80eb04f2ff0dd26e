"""Tensors on disk: one safetensors file with a versioned header of texts; never a pickle."""

import json
import os
from collections.abc import Mapping, Sequence

import torch
from safetensors import SafetensorError
from safetensors.torch import load as from_bytes, save as to_bytes
from torch import Tensor

from dre_plugins.files import atomic_write


class PriorError(ValueError):
    """Say why a prior cannot be loaded."""


def save(
    path: str | os.PathLike[str], tensors: Mapping[str, Tensor], header: Mapping[str, str]
) -> None:
    """Write tensors and a header; an old file is replaced, and left as it was if writing fails."""
    plain = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    with atomic_write(path) as unfinished:
        unfinished.write_bytes(to_bytes(plain, metadata=dict(header)))


def read(
    name: str, content: bytes, format_name: str, version: int, *, writer: str
) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Return the header and the tensors, on the CPU, of a file in a format.

    `content` is what `save` wrote, with "format" and "version", at most `version`, in its header;
    `name` and `writer` are for messages. A PriorError says that the file is damaged, foreign, or
    from a newer version.
    """
    try:
        header, tensors = parsed(content)
    except SafetensorError as error:
        raise PriorError(f"{name}: {_cause(content, error)}.") from error
    if header.get("format") != format_name:
        raise PriorError(
            f"{name}: format is {header.get('format')!r}, expected {format_name!r}; "
            f"write it with {writer}."
        )
    try:
        is_newer = int(header["version"]) > version
    except (KeyError, ValueError) as error:
        raise PriorError(f"{name}: damaged header ({error}).") from error
    if is_newer:
        raise PriorError(
            f"{name}: version {header['version']} is newer than {version}; upgrade dre-plugins."
        )
    return header, tensors


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


def checked(
    name: str, tensors: Mapping[str, Tensor], shapes: Mapping[str, Sequence[int]]
) -> dict[str, Tensor]:
    """Return the tensors in the order of the shapes that they must have.

    A PriorError says that there are others, or one is of another shape or type, or not finite.
    """
    misfit = f"{name}: the tensors do not fit the header's settings"
    if set(tensors) != set(shapes):
        raise PriorError(f"{misfit}.")
    for key, shape in shapes.items():
        value = tensors[key]
        if tuple(value.shape) != tuple(shape) or value.dtype != torch.float32:
            raise PriorError(
                f"{misfit}: {key} is {value.dtype} {[*value.shape]}, "
                f"expected {torch.float32} {[*shape]}."
            )
        if not bool(torch.isfinite(value).all()):
            raise PriorError(f"{name}: holds weights that are not finite.")
    return {key: tensors[key] for key in shapes}


def _cause(content: bytes, error: Exception) -> str:
    if content[:2] in (b"PK", *(bytes([0x80, protocol]) for protocol in range(2, 6))):
        return (
            "this is a pickle or a torch archive, which could run code and is never loaded; "
            "ask for a safetensors file"
        )
    return f"not a readable safetensors file, damaged or cut off ({error})"
