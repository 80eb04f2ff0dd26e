"""What is made of a file's content, once per process while the content is the same."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

from dre_plugins.engine.files import regular

Made = TypeVar("Made")


class ByContent(Generic[Made]):
    """Make something of the content of files, and remember it by the content's hash.

    A file that was written anew is read anew, also if its path, its size and its time are the
    same. What is read and what is hashed are the same bytes, even if the file is written
    meanwhile.

    Args:
        make: From the name of a file, for messages, and its content.
        n_kept: How many are remembered.
    """

    def __init__(self, make: Callable[[str, bytes], Made], n_kept: int) -> None:
        self._make = make
        self._n_kept = n_kept
        self._made: OrderedDict[str, Made] = OrderedDict()
        self._lock = Lock()

    def of(self, path: str | os.PathLike[str]) -> tuple[str, Made]:
        """Return the hash of a file's content, and what is made of it.

        Raises:
            OSError: The file cannot be read.
        """
        content = regular(path).read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        made = self.get(digest)
        if made is None:
            made = self._make(os.fspath(path), content)
            self.keep(digest, made)
        return digest, made

    def keep(self, digest: str, made: Made) -> None:
        """Remember what stands for the content with this hash."""
        with self._lock:
            self._made[digest] = made
            while len(self._made) > self._n_kept:
                self._made.popitem(last=False)

    def get(self, digest: str) -> Made | None:
        """Return what was made of a content with this hash; None if it is not remembered."""
        with self._lock:
            if digest in self._made:
                self._made.move_to_end(digest)
            return self._made.get(digest)
