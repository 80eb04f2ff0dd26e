"""What tests break on purpose: the disk."""

import contextlib
from collections.abc import Iterator

import pytest


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """Let the operating system refuse every byte of a file after the first kilobyte."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
