"""The state of a Ray Tune search on disk: written atomically, and the previous one kept.

Ray copies the folder of states to the storage file by file, and a driver that is killed meanwhile
leaves truncated files. So states alternate between two names, and the folder that Ray copies has
only the newest, once the previous one was copied, which is then in the storage, and whole.
"""

import copy
import pickle
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from ray import cloudpickle
from ray.tune.search import Searcher

from dre_plugins.adapters.ray_tune.history import logger
from dre_plugins.files import atomic_write, regular
from dre_plugins.transfer import archive

STATE_FORMAT = "dre_plugins.DRESearch"
STATE_VERSION = 2
FILE_NAME = Searcher.CKPT_FILE_TMPL
N_TURNS = 2
TURN = re.compile(r"-[01]$")
# Searches that Ray has restored in this process, by identity. Ray pickles a stopper with a copy of
# its search, which learns nothing once it is restored.
RESTORED: WeakValueDictionary[str, Any] = WeakValueDictionary()


class StateFiles:
    """Write states of one search in turn to two files of a folder."""

    def __init__(self) -> None:
        self.n_saved = 0
        self.n_unsaved = 0
        # Names of files with states that the next one makes superfluous.
        self.superseded: tuple[str, ...] = ()

    def write(self, search: Searcher, folder: Path, session: str) -> None:
        """Write the state of a search that has these files, and remove those it supersedes.

        If it cannot be written, the experiment goes on: one warning.
        """
        self.n_saved += 1
        names = [FILE_NAME.format(f"{session}-{turn}") for turn in range(N_TURNS)]
        current = names.pop(self.n_saved % N_TURNS)
        try:
            write(folder / current, search.get_state())
        except OSError as error:  # for example a full disk: the experiment goes on
            self.n_saved -= 1
            self.n_unsaved += 1
            if self.n_unsaved == 1:
                logger.warning(
                    "The state of the search could not be written (%s); the one before is kept, "
                    "to which Tuner.restore would go back. Further failures are only counted.",
                    error,
                )
            return
        superseded, self.superseded = {*names, *self.superseded}, ()
        # Files that are removed here are not copied again, so their copies stay whole. One that
        # nobody has read may be about to be copied, and its absence would end the copying of all.
        for path in [folder / name for name in superseded]:
            if path.exists() and path.stat().st_atime_ns > path.stat().st_mtime_ns:
                path.unlink()


def state_of(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of a search with these attributes, which are copied."""
    attributes = copy.deepcopy(dict(attributes))
    return {"format": STATE_FORMAT, "version": STATE_VERSION, "state": attributes}


def attributes_in(state: Any) -> dict[str, Any]:
    """Return a copy of the attributes in what `state_of` has returned."""
    if not isinstance(state, dict) or state.get("format") != STATE_FORMAT:
        raise ValueError(f"This is no state of a DRESearch: {str(state)[:80]}.")
    if state.get("version") != STATE_VERSION:
        raise ValueError(
            f"The state has version {state.get('version')}, and this is a DRESearch of version "
            f"{STATE_VERSION}; upgrade dre-plugins, or use the one that wrote it."
        )
    return copy.deepcopy(dict(state["state"]))


def write(path: Path, state: dict[str, Any]) -> None:
    """Write a state to a file atomically."""
    content = cloudpickle.dumps(state)  # type: ignore[no-untyped-call]
    with atomic_write(path) as unfinished:
        unfinished.write_bytes(content)


def read(path: Path) -> Any:
    """Read what `write` wrote; a ValueError says that the file is damaged or something else."""
    try:
        return cloudpickle.loads(regular(path).read_bytes())
    except (ImportError, pickle.UnpicklingError, *archive.DAMAGES) as error:
        raise ValueError(f"The state in {path} cannot be read: {error}") from error


def newest(folder: Path) -> tuple[Any, tuple[str, ...]]:
    """Return the newest state of a folder that is whole, and the names of its session's files.

    A RuntimeError says that there is none, as with other searchers of Ray Tune.
    """
    sessions: defaultdict[str, list[Path]] = defaultdict(list)
    for path in folder.glob(FILE_NAME.format("*")):
        sessions[TURN.sub("", path.stem)].append(path)
    torn = []
    for session in sorted(sessions, reverse=True):  # Ray names them by the time
        states = []
        for path in sessions[session]:
            try:
                states.append(read(path))
            except ValueError as error:
                torn.append(str(error))
        if states:
            if torn:
                logger.warning(
                    "%s The state before it is used. Trials that began or ended in between are "
                    "known as far as Ray has stored them.",
                    " ".join(torn),
                )
            return max(states, key=_turn_of), tuple(path.name for path in sessions[session])
    raise RuntimeError(f"There is no state of a search in {folder}. {' '.join(torn)}".strip())


def _turn_of(state: Any) -> int:
    attributes = state.get("state") if isinstance(state, dict) else None
    files = attributes.get("_files") if isinstance(attributes, dict) else None
    return files.n_saved if isinstance(files, StateFiles) else 0
