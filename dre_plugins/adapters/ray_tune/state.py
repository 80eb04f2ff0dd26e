"""The state of a Ray Tune search on disk: written atomically, and the previous one kept.

Ray copies the folder of states to the storage file by file, and a driver that is killed meanwhile
leaves truncated files. So states alternate between two names, and the folder that Ray copies has
only the newest, once the previous one was copied, which is then in the storage, and whole.

The state may be older or newer than Ray's own record of its trials, which decides how the
experiment goes on. So a restored search learns from Ray's record about trials that it has missed,
and suggests again the configurations of trials that Ray has forgotten.
"""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from ray import cloudpickle
from ray.tune.search.repeater import TRIAL_INDEX

from dre_plugins.adapters.ray_tune.history import LearningSearcher, Running, keys_of_trials, logger
from dre_plugins.adapters.ray_tune.sources import ENDED, flat
from dre_plugins.engine.files import atomic_write, regular
from dre_plugins.recommend.ask_tell import AskTell
from dre_plugins.space.base import match_key

STATE_FORMAT = "dre_plugins.DRESearch"
STATE_VERSION = 1
N_TURNS = 2
TURN = re.compile(r"-[01]$")
# Files that Ray writes itself, and how it writes objects there.
TRIALS = "experiment_state-*.json"
OBJECT = {"_type": "CLOUDPICKLE_FALLBACK"}
# Of each trial they hold a text of JSON with this line while it runs; its parameters are indented.
RUNNING = json.dumps(json.dumps({"status": "RUNNING"}, indent=2)[1:-2])[1:-1].encode()
# All that reading these files may raise; of their objects, classes may be gone.
_DAMAGES = (
    *(AttributeError, EOFError, ImportError, LookupError, OSError, TypeError, ValueError),
    pickle.UnpicklingError,
)


S = TypeVar("S", bound="RestorableSearcher")
# Searches that Ray has restored in this process, by identity.
_RESTORED: WeakValueDictionary[str, Any] = WeakValueDictionary()


class KnownToRay(NamedTuple):
    """Hold what Ray has written about a trial."""

    trial_id: str
    status: str
    config: Mapping[str, Any]
    result: Mapping[str, Any]


class RestorableSearcher(LearningSearcher):
    """A searcher all of whose attributes are its state."""

    _options: dict[str, Any]  # arguments of the study
    identity: str = ""  # the same in all copies of a search
    # Ids of trials that Ray has forgotten.
    _forgotten: tuple[str, ...] = ()
    _n_saved = 0
    _n_unsaved = 0
    _superseded: tuple[str, ...] = ()

    def get_state(self) -> dict[str, Any]:
        """Return a copy of everything that a search needs to go on in the same way."""
        state = copy.deepcopy(self.__dict__)
        return {"format": STATE_FORMAT, "version": STATE_VERSION, "state": state}

    def set_state(self, state: dict[str, Any]) -> None:
        """Become what `get_state` has returned, arguments included.

        Raises:
            ValueError: If it is no such state, or one of a newer version.
        """
        if not isinstance(state, dict) or state.get("format") != STATE_FORMAT:
            raise ValueError(f"This is no state of a DRESearch: {str(state)[:80]}.")
        if state["version"] > STATE_VERSION:
            raise ValueError(
                f"The state has version {state['version']}, and this is a DRESearch of version "
                f"{STATE_VERSION}; upgrade dre-plugins."
            )
        self.__dict__.update(copy.deepcopy(state["state"]))

    def save(self, checkpoint_path: str) -> None:
        """Write the state to a file atomically.

        It is a pickle, as all states of Ray Tune are: restore none that you do not trust.
        """
        _write(Path(checkpoint_path), self.get_state())

    def restore(self, checkpoint_path: str) -> None:
        """Read the state from a file that `save` wrote.

        Raises:
            ValueError: If it is the state of something else, of a newer version, or not whole.
        """
        self.set_state(_read(Path(checkpoint_path)))
        _RESTORED[self.identity] = self

    def save_to_dir(self, checkpoint_dir: str, session_str: str = "default") -> None:
        """Write the state into the folder of an experiment, and keep the previous one.

        If it cannot be written, the experiment goes on: one warning.
        """
        self._end_with_experiment(Path(checkpoint_dir))
        superseded, self._superseded = self._superseded, ()
        self._n_saved += 1
        names = [self.CKPT_FILE_TMPL.format(f"{session_str}-{turn}") for turn in range(N_TURNS)]
        current = names.pop(self._n_saved % N_TURNS)
        try:
            _write(Path(checkpoint_dir) / current, self.get_state())
        except OSError as error:  # for example a full disk: the experiment goes on
            self._n_saved -= 1
            self._superseded = superseded
            self._n_unsaved += 1
            if self._n_unsaved == 1:
                logger.warning(
                    "The state of the search could not be written (%s); the one before is kept, "
                    "to which Tuner.restore would go back. Further failures are only counted.",
                    error,
                )
            return
        # Files that are removed here are not copied again, so their copies stay whole. One that
        # nobody has read may be about to be copied, and its absence would end the copying of all.
        for path in [Path(checkpoint_dir) / name for name in {*names, *superseded}]:
            if path.exists() and path.stat().st_atime_ns > path.stat().st_mtime_ns:
                path.unlink()

    def restore_from_dir(self, checkpoint_dir: str) -> None:
        """Read the newest state in the folder of an experiment that is whole.

        Trials that ended later are learnt from Ray's own record.

        Raises:
            RuntimeError: If there is none.
        """
        state, names = _newest(Path(checkpoint_dir), self.CKPT_FILE_TMPL)
        self.set_state(state)
        _RESTORED[self.identity] = self
        self._superseded = names
        trials = _known_to_ray(Path(checkpoint_dir))
        # The searcher of a `Repeater` knows the first of several trials, which end together.
        if trials and not any(TRIAL_INDEX in trial.config for trial in trials):
            self._catch_up(trials)

    def _catch_up(self, trials: Sequence[KnownToRay]) -> None:
        """Learn from trials that began or ended after the state, and that Ray will not continue.

        A trial whose end was missed counts as stopped at its last result, or as failed if Ray says
        so. Of trials with the configuration of another one, as a `Repeater` runs them, the one
        that is known counts.
        """
        stored, twins = {trial.trial_id for trial in trials}, self._by_configuration()
        for trial in trials:
            twin = None if trial.trial_id in self._numbers else twins.get(self._key(trial.config))
            if twin in stored:
                self._numbers[trial.trial_id] = self._numbers[twin]
            elif self._study is not None and twin in self._running:
                self._hand_over(self._study, twin, trial.trial_id)
            has_ended = trial.trial_id in self._numbers and trial.trial_id not in self._running
            has_recovered = trial.trial_id in self._failed and trial.status == "TERMINATED"
            if has_ended and not has_recovered:
                continue
            self._end_as_stored(trial)
        going_on = {trial.trial_id for trial in trials if trial.status not in ENDED}
        self._forgotten = tuple(known for known in self._running if known not in going_on)

    def _end_as_stored(self, trial: KnownToRay) -> None:
        """End a trial as Ray has stored it, except one that was stopped before it reported."""
        running = self._resumed(trial.trial_id, trial.config)
        has_failed, result = trial.status == "ERROR", flat(trial.result)
        if running is None or trial.status not in ENDED or not (result or has_failed):
            return
        if not result.get("done"):
            running.delivered = None  # it has not ended by itself, but with the experiment
        self.on_trial_complete(trial.trial_id, result or None, error=has_failed)

    def _end_with_experiment(self, folder: Path) -> None:
        """End the trials that Ray has stopped at the end of an experiment, without saying so."""
        trials = _known_to_ray(folder, is_over=True) if self._running else []
        if any(trial.status not in ENDED or TRIAL_INDEX in trial.config for trial in trials):
            return
        for trial in trials:
            # Of what has ended by itself, a wrapper of this search may tell later.
            if trial.trial_id in self._running and not trial.result.get("done"):
                self._end_as_stored(trial)

    def _by_configuration(self) -> dict[Hashable, str]:
        """Return the trials that have not failed, by configuration, if none of these repeats."""
        if self._study is None or self._options["allow_duplicates"]:
            return {}
        keys = keys_of_trials(self._study)
        return {
            keys[number]: trial_id
            for trial_id, number in self._numbers.items()
            if number is not None and trial_id not in self._failed
        }

    def _key(self, config: Mapping[str, Any]) -> Hashable:
        """Return the key of a configuration of Ray, None if it is not of the space."""
        if self._param_space is None or not config:
            return None
        try:
            return match_key(self._param_space.to_configuration(config))
        except ValueError:  # `_adopt` says so
            return None

    def _hand_over(self, study: AskTell, trial_id: str, successor: str) -> None:
        """Give the configuration of a running trial that Ray has forgotten to another trial."""
        number = self._running.pop(trial_id).number
        del self._numbers[trial_id]
        self._numbers[successor], self._running[successor] = number, Running(number)
        study.restart(number)

    def _take_over(self, trial_id: str) -> None:
        """Give the configuration of a trial that Ray has forgotten to a new trial."""
        self._forgotten = tuple(known for known in self._forgotten if known in self._running)
        if self._study is None or not self._forgotten or trial_id in self._running:
            return
        forgotten, self._forgotten = self._forgotten[0], self._forgotten[1:]
        self._hand_over(self._study, forgotten, trial_id)


def restored(search: S) -> S:
    """Return the search that Ray has restored if this is a copy of it, otherwise itself.

    Ray pickles a stopper with a copy of its search, which learns nothing once it is restored.
    """
    found: S = _RESTORED.get(search.identity, search)
    return found


def _write(path: Path, state: dict[str, Any]) -> None:
    """Write a state to a file atomically."""
    content = cloudpickle.dumps(state)  # type: ignore[no-untyped-call]
    with atomic_write(path) as unfinished:
        unfinished.write_bytes(content)


def _read(path: Path) -> Any:
    """Read what `_write` wrote; a ValueError says that the file ends in the middle."""
    try:
        return cloudpickle.loads(regular(path).read_bytes())
    except (EOFError, pickle.UnpicklingError) as error:
        raise ValueError(f"The state in {path} cannot be read: {error}") from error


def _newest(folder: Path, template: str) -> tuple[Any, tuple[str, ...]]:
    """Return the newest state of a folder that is whole, and the names of its session's files.

    A RuntimeError says that there is none, as with other searchers of Ray Tune.
    """
    sessions: defaultdict[str, list[Path]] = defaultdict(list)
    for path in folder.glob(template.format("*")):
        sessions[TURN.sub("", path.stem)].append(path)
    torn = []
    for session in sorted(sessions, reverse=True):  # Ray names them by the time
        states = []
        for path in sessions[session]:
            try:
                states.append(_read(path))
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
    return int(attributes.get("_n_saved", 0)) if isinstance(attributes, dict) else 0


def _known_to_ray(folder: Path, *, is_over: bool = False) -> list[KnownToRay]:
    """Return Ray's last record of its trials; empty if it is damaged.

    With `is_over` it is also empty if a trial runs, which is seen without parsing the record.
    """
    newest = sorted(folder.glob(TRIALS))[-1:]
    try:
        if is_over and any(RUNNING in regular(file).read_bytes() for file in newest):
            return []
        return [
            KnownToRay(
                str(trial["trial_id"]),
                str(trial["status"]),
                _with_objects(trial["config"]),
                _with_objects(results.get("last_result") or {}),
            )
            for file in newest
            for texts in json.loads(regular(file).read_bytes())["trial_data"]
            for trial, results in [map(json.loads, texts)]
        ]
    except _DAMAGES as error:
        logger.debug("What Ray has written about its trials cannot be read: %s", error)
        return []


def _with_objects(item: Any) -> Any:
    """Return JSON data with the objects that Ray has pickled into it."""
    if isinstance(item, list):
        return [_with_objects(part) for part in item]
    if not isinstance(item, dict):
        return item
    if item.items() >= OBJECT.items():
        return cloudpickle.loads(bytes.fromhex(item["value"]))
    return {key: _with_objects(value) for key, value in item.items()}
