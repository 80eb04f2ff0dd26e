"""Trees of plain values and arrays as one file, JSON or NumPy archive, that cannot run code.

A tree is made of dictionaries, lists, strings, numbers, booleans and arrays. JSON has no NaN and
no infinity: in arrays they are written as null, "inf" and "-inf".
"""

import json
import lzma
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dre_plugins.files import atomic_write, regular
from dre_plugins.space.base import Array

_HEADER = "header"
_ARRAY = "array"  # {"array": "0"} in the header of an archive stands for its entry "0"

# Largest unpacked size in bytes: a small file of zeros, packed a thousandfold, could fill memory.
MAX_UNPACKED = 2**32

# All that the readers raise on a damaged file.
DAMAGES = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,  # a header that claims a giant array
    RuntimeError,  # encrypted, of an unknown method, nested too deep
    SyntaxError,
    TypeError,
    ValueError,
    lzma.LZMAError,
    struct.error,
    tokenize.TokenError,  # NumPy reads the header of an array as Python
    zipfile.BadZipFile,
    zlib.error,
)


class MetadataError(ValueError):
    """Metadata that cannot be read: the message names the file and the remedy."""


def write(path: Path, tree: Mapping[str, Any]) -> None:
    """Write a tree to a ".json" or ".npz" file; an older file stays whole until the new one is."""
    if path.suffix not in (".json", ".npz"):
        raise ValueError(f"Cannot write {str(path)!r}: the name must end in '.json' or '.npz'.")
    with atomic_write(path) as unfinished, unfinished.open("wb") as file:
        if path.suffix == ".npz":
            _write_npz(file, tree)
        else:
            text = json.dumps(tree, default=listed, allow_nan=False, separators=(",", ":"))
            file.write(text.encode())


def read(path: Path) -> dict[str, Any]:
    """Read the tree that `write` has written; arrays of a JSON file stay lists, see `numbers`."""
    if path.suffix not in (".json", ".npz"):
        raise MetadataError(f"Cannot read {str(path)!r}: the name must end in '.json' or '.npz'.")
    try:
        is_npz = path.suffix == ".npz"
        tree = _read_npz(path) if is_npz else json.loads(regular(path).read_bytes())
    except OSError as error:
        raise MetadataError(
            f"Cannot open {str(path)!r}: {error.strerror or error}; check the path."
        ) from error
    except DAMAGES as error:
        raise damaged(path, error) from error
    if not isinstance(tree, dict):
        raise damaged(path, "it holds no object")
    return tree


def damaged(path: Path, reason: object) -> MetadataError:
    """Return the error that says that a file is damaged."""
    what = f"{type(reason).__name__}: {reason}" if isinstance(reason, Exception) else str(reason)
    return MetadataError(f"{str(path)!r} is damaged ({what[:300]}); copy or export it again.")


def numbers(node: Any) -> Array:
    """Return an array of a tree as float64, whichever file it is from."""
    return np.array(node, dtype=np.float64)  # null is NaN, and "inf" is infinite


def listed(array: NDArray[Any]) -> Any:
    """Return an array as JSON has it: lists, with null for NaN and "inf" for infinity."""
    entries = array.astype(object)
    for special, spelt in ((np.isnan, None), (np.isposinf, "inf"), (np.isneginf, "-inf")):
        entries[special(array)] = spelt
    return entries.tolist()


def _write_npz(file: IO[bytes], tree: Mapping[str, Any]) -> None:
    entries: dict[str, Any] = {}

    def stored(array: NDArray[Any]) -> dict[str, str]:
        key = str(len(entries))
        entries[key] = array
        return {_ARRAY: key}

    header = json.dumps(tree, default=stored, allow_nan=False).encode()
    entries[_HEADER] = np.frombuffer(header, dtype=np.uint8)
    np.savez_compressed(file, **entries)


def check_unpacked(archive: zipfile.ZipFile) -> None:
    """Refuse an archive that unpacks to more than `MAX_UNPACKED`, by the sizes that it states."""
    n_bytes = sum(entry.file_size for entry in archive.infolist())
    if n_bytes > MAX_UNPACKED:
        raise ValueError(f"it unpacks to {n_bytes} bytes, more than {MAX_UNPACKED}")


def _read_npz(path: Path) -> Any:
    """Read a NumPy archive, of which nothing can run code or fill the memory."""
    # NumPy leaves a damaged file open if it has opened it.
    with regular(path).open("rb") as file:
        if zipfile.is_zipfile(file):
            check_unpacked(zipfile.ZipFile(file))
        file.seek(0)
        with np.load(file, allow_pickle=False) as archive:

            def restored(item: dict[str, Any]) -> Any:
                key = item.get(_ARRAY)  # a parameter may have this name, but is no string
                return archive[key] if len(item) == 1 and isinstance(key, str) else item

            return json.loads(archive[_HEADER].tobytes(), object_hook=restored)
