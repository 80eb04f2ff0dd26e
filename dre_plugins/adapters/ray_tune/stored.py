"""What Ray has stored about its trials, and what a search learns from it.

The state of a search may be older or newer than Ray's own record of its trials, which decides how
the experiment goes on. So a restored search learns from that record about trials that it has
missed, and suggests again the configurations of trials that Ray has forgotten.
"""

import json
import pickle
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ray import cloudpickle
from ray.tune.search import SearchGenerator

from dre_plugins.adapters.ray_tune.history import RayTrials, logger
from dre_plugins.adapters.ray_tune.sources import ENDED, PICKLED, RECORDS, flat, recorded_in
from dre_plugins.files import regular
from dre_plugins.space.base import match_key
from dre_plugins.transfer import archive

# Of each trial they hold a text of JSON with this line while it runs; its parameters are indented.
RUNNING = json.dumps(json.dumps({"status": "RUNNING"}, indent=2)[1:-2])[1:-1].encode()
# What Ray stores about the wrappers of a search contains this attribute of a `Repeater`.
REPEATER = b"_trial_id_to_group"
# All that reading these files may raise; of their objects, classes may be gone.
_DAMAGES = (ImportError, OSError, pickle.UnpicklingError, *archive.DAMAGES)


class StoredTrial(NamedTuple):
    """Hold what Ray has stored about a trial."""

    trial_id: str
    status: str
    config: Mapping[str, Any]
    result: Mapping[str, Any]


def catch_up(trials: RayTrials, folder: Path, *, allow_duplicates: bool) -> None:
    """Learn from trials that began, reported or ended after the state, as far as Ray knows.

    A trial whose end was missed counts as stopped at its last result, or as failed if Ray says
    so. Of trials with the same configuration, as where one had to be suggested again, the one that
    is known counts, unless it is a point to evaluate that was given once more.
    """
    stored = {trial.trial_id: trial for trial in _stored_trials(folder)}
    if not stored:
        return
    known = {name: n for name, n in trials.numbers.items() if name not in trials.failed}
    twins = {} if allow_duplicates else trials.by_configuration(known)
    for trial_id, trial in stored.items():
        configuration: dict[str, Any] = {}
        if trial_id not in trials.numbers:
            with suppress(ValueError):  # a warning follows when the trial is adopted
                configuration = trials.param_space.to_configuration(trial.config)
        twin = twins.get(match_key(configuration)) if configuration else None
        if twin in stored:
            if not trials.study.is_enqueued(configuration):
                trials.numbers[trial_id] = trials.numbers[twin]
        elif twin in trials.running:
            trials.hand_over(twin, trial_id)
        has_ended = trial_id in trials.numbers and trial_id not in trials.running
        has_recovered = trial_id in trials.failed and trial.status == "TERMINATED"
        if not has_ended or has_recovered:
            _learn_as_stored(trials, trial)
        elif trial.status == "ERROR":
            trials.keep_for_restart(trial_id)
    going_on = {trial_id for trial_id, trial in stored.items() if trial.status not in ENDED}
    trials.forgotten = [trial_id for trial_id in trials.running if trial_id not in going_on]


def end_with_experiment(trials: RayTrials, folder: Path) -> None:
    """End the trials that Ray has ended without saying so.

    They were stopped with the experiment, or crashed and were restarted under a
    `ConcurrencyLimiter`, which does not know them any more.
    """
    stored = _stored_trials(folder, is_over=True) if trials.running else []
    if any(trial.status not in ENDED for trial in stored):
        return
    for trial in stored:
        if trial.trial_id in trials.running:
            _learn_as_stored(trials, trial)


def _learn_as_stored(trials: RayTrials, trial: StoredTrial) -> None:
    """Learn what Ray has stored about a trial; nothing if it was stopped before it reported."""
    running = trials.resumed(trial.trial_id, trial.config)
    has_failed, result = trial.status == "ERROR", flat(trial.result)
    if running is None or not (result or has_failed):
        return
    if trial.status not in ENDED:
        trials.report(trial.trial_id, result)  # Ray goes on from here, perhaps to the end at once
        return
    if not result.get("done"):
        running.delivered = None  # it has not ended by itself, but with the experiment
    trials.end(trial.trial_id, result or None, error=has_failed)


def _stored_trials(folder: Path, *, is_over: bool = False) -> list[StoredTrial]:
    """Return Ray's last record of its trials; empty if it is damaged, or if they are repeats.

    Of the trials of a `Repeater` with the same configuration, the search knows the first only, and
    is told their mean when all have ended. With `is_over` the record is also empty if a trial
    runs, which is seen without parsing it.
    """
    newest = sorted(folder.glob(RECORDS))[-1:]
    wrappers = sorted(folder.glob(SearchGenerator.CKPT_FILE_TMPL.format("*")))[-1:]
    try:
        if is_over and any(RUNNING in regular(file).read_bytes() for file in newest):
            return []
        if any(REPEATER in regular(file).read_bytes() for file in wrappers):
            return []
        return [
            StoredTrial(
                str(trial["trial_id"]),
                str(trial["status"]),
                _with_objects(trial["config"]),
                _with_objects(results.get("last_result") or {}),
            )
            for file in newest
            for trial, results in recorded_in(file)
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
    if item.items() >= PICKLED.items():
        return cloudpickle.loads(bytes.fromhex(item["value"]))
    return {key: _with_objects(value) for key, value in item.items()}
