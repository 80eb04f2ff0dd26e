"""Checks before any work begins, so that a mistake is reported at once and not after minutes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

METADATA_FILES = (".json", ".npz")
PRIOR_FILES = (".safetensors",)
PICTURE_FILES = (".png", ".pdf", ".svg")


def check_writable(path: Path, suffixes: Sequence[str]) -> None:
    """Raise a ValueError unless a file of that name can be written."""
    if path.suffix not in suffixes:
        raise ValueError(
            f"Cannot write {str(path)!r}: the name must end in {' or '.join(suffixes)}."
        )
    check_folder(path)


def check_folder(path: Path) -> None:
    """Raise a ValueError unless the folder of a file exists."""
    if not path.parent.is_dir():
        raise ValueError(
            f"Cannot write {str(path)!r}: make the folder {str(path.parent)!r} first."
        )


@contextmanager
def needs(package: str, extra: str) -> Iterator[None]:
    """Say what to install where an import fails because a package is missing.

    Raises:
        ValueError: If the package is not installed.
    """
    try:
        yield
    except ImportError as error:
        if error.name is not None and error.name.split(".")[0] != package:
            raise
        raise ValueError(
            f"This needs {package}, which is not installed: pip install 'dre-plugins[{extra}]'"
        ) from error
