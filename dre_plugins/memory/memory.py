"""The memory: a folder with what was ever tuned, and what was learnt from it."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from dre_plugins.engine.settings import require
from dre_plugins.memory.index import Entry, Index, read_index

VARIABLE = "DRE_MEMORY"
# Priors that are kept, those that were used last; a prior has some 150 KB.
MAX_PRIORS = 200
# Suffix of a file with the studies that a prior was trained on ahead, see `ahead`.
STUDIES = ".studies"
_BYTES_PER_MEGABYTE = 10**6


@dataclass(frozen=True, slots=True)
class Memory:
    """Name the folder that studies write to and learn from.

    Nothing leaves the machine but by the folder itself: a team shares one on a network drive.

    Args:
        path: The folder; it need not exist.
        max_megabytes: The most that records may take; None: no limit. Before a study begins, those
            studies are forgotten that were written and used longest ago.

    Raises:
        ValueError: If the limit is not above 0.
    """

    path: Path
    max_megabytes: float | None = None

    def __post_init__(self) -> None:
        limit = self.max_megabytes
        require(limit is None or limit > 0, "max_megabytes", limit, "above 0, or None")
        object.__setattr__(self, "path", Path(self.path).expanduser().absolute())

    @classmethod
    def of(cls, given: bool | str | os.PathLike[str] | Memory | None) -> Memory | None:
        """Return the memory that an argument means, None if that is none.

        Args:
            given: A memory or the path of its folder; True: the folder that the environment
                variable DRE_MEMORY names, or that of the user's data; None: the folder of
                DRE_MEMORY, or none without it; False: none.

        Raises:
            ValueError: If it is none of these.
        """
        if isinstance(given, Memory):
            return given
        if given is None or given is True:
            if path := os.environ.get(VARIABLE):
                return cls(Path(path))
            folder = platformdirs.user_data_path("dre-plugins", appauthor=False)
            return cls(folder / "memory") if given else None
        if given is False:
            return None
        is_path = isinstance(given, (str, os.PathLike)) and bool(os.fspath(given))
        require(is_path, "memory", given, "True, False, None, or the path of a folder")
        return cls(Path(given))

    @property
    def records(self) -> Path:
        """Return the folder of the records of studies."""
        return self.path / "studies"

    @property
    def priors(self) -> Path:
        """Return the folder of the priors."""
        return self.path / "priors"

    @property
    def choices(self) -> Path:
        """Return the folder of what each study has learnt from."""
        return self.path / "choices"

    def index(self) -> Index:
        """Return which studies there are.

        Raises:
            OSError: The folder cannot be read.
        """
        return read_index(self.records, self.path / "index.json")

    def forget(self, entries: Collection[Entry]) -> None:
        """Delete studies, and all priors: any may have learnt from them.

        Raises:
            OSError: A file cannot be deleted.
        """
        for entry in entries:
            self._delete(entry)
        if entries:
            _keep_newest(self.priors, 0)

    def shrink(self) -> None:
        """Forget what was written and used longest ago: studies beyond the limit, and old priors.

        Raises:
            OSError: The memory cannot be read, or a file not deleted.
        """
        _keep_newest(self.priors, MAX_PRIORS)
        if self.max_megabytes is None:
            return
        entries = self.index().entries
        excess = sum(entry.n_bytes for entry in entries) - self.max_megabytes * _BYTES_PER_MEGABYTE
        if excess <= 0:
            return
        last = {entry.header.study: entry.last for entry in entries}
        for path, studies in self._chosen():
            for study in studies:
                last[study] = max(last.get(study, 0.0), path.stat().st_mtime)
        for entry in sorted(entries, key=lambda entry: last[entry.header.study]):
            if excess <= 0:
                break
            self._delete(entry)
            excess -= entry.n_bytes

    def _delete(self, entry: Entry) -> None:
        for path in (*entry.files, *self.choices.glob(f"{entry.header.study}-*.json")):
            path.unlink(missing_ok=True)

    def teachers(self) -> dict[str, list[str]]:
        """Return the studies that a study has learnt from, by identity.

        Raises:
            OSError: The memory cannot be read.
            ValueError: A file is damaged.
        """
        found: dict[str, dict[str, None]] = {}
        for path, teachers in self._chosen():
            found.setdefault(path.name.rsplit("-", 1)[0], {}).update(dict.fromkeys(teachers))
        return {study: [*teachers] for study, teachers in found.items()}

    def _chosen(self) -> Iterator[tuple[Path, list[str]]]:
        """Yield the files of what was chosen, and the studies that each names."""
        for path in sorted(self.choices.glob("*.json")):
            yield path, json.loads(path.read_bytes())["studies"]


def _keep_newest(folder: Path, count: int) -> None:
    """Delete all priors of a folder but those that were used last, and what belongs to them."""
    files = [path for path in folder.glob("*") if path.suffix in (".safetensors", ".rejected")]
    files.sort(key=lambda path: path.stat().st_mtime)
    for path in files[: max(len(files) - count, 0)]:
        path.unlink(missing_ok=True)
        for suffix in (".lock", STUDIES):
            path.with_suffix(suffix).unlink(missing_ok=True)
