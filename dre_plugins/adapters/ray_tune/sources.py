"""Metadata from the results of Ray Tune, in memory or in the folder of an experiment."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from os.path import expanduser
from pathlib import Path
from typing import Any, TypeAlias

from ray.air.constants import TRAINING_ITERATION
from ray.tune import ExperimentAnalysis, ResultGrid
from ray.tune.result import AUTO_RESULT_KEYS
from ray.tune.search.repeater import TRIAL_INDEX
from ray.tune.utils import flatten_dict

from dre_plugins.adapters.common import past_tasks
from dre_plugins.adapters.common.limits import Limits
from dre_plugins.adapters.common.past_tasks import SIGNS, Mode, TaskDefinition
from dre_plugins.adapters.common.past_trials import PastTrial, trials_of
from dre_plugins.adapters.ray_tune.conversion import ParamSpace
from dre_plugins.checks import shortened
from dre_plugins.files import regular
from dre_plugins.recommend.trials import Trial
from dre_plugins.space.base import match_key
from dre_plugins.space.conditions import Condition
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer import archive
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.sources.cells import is_missing, number
from dre_plugins.transfer.spaces.inference import fits, flat_configuration, infer_space

Source: TypeAlias = ResultGrid | ExperimentAnalysis | str | PathLike[str]

# Records of the trials of an experiment, which Ray writes.
RECORDS = "experiment_state-*.json"
# How Ray writes objects into params.json, and into its records.
_OBJECT = re.compile(r"<.+>", re.DOTALL)
PICKLED = {"_type": "CLOUDPICKLE_FALLBACK"}
ENDED = ("TERMINATED", "ERROR")
_DAMAGES = (OSError, *archive.DAMAGES)
_NO_METRICS = {*AUTO_RESULT_KEYS, "done", "trial_id", "experiment_tag"}


def metadata_from_results(
    results: Source | Sequence[Source],
    *,
    metric: str | None = None,
    mode: Mode | None = None,
    space: Mapping[str, Any] | SearchSpace | None = None,
    constraints: Mapping[str, Any] | None = None,
) -> MetaDataset:
    """Return experiments of Ray Tune as metadata; the rungs are its training iterations.

    Of a folder only text is read (`params.json` and `result.json` of the trials, and their states
    in `experiment_state-*.json`, which also has the last reports of trials without such files),
    which cannot run code. `Tuner.restore` and `ExperimentAnalysis`, by which the other kinds of
    `results` may have been made, do unpickle: use them for folders that you trust.

    Ray does not say why a trial ended. One that was told to stop, and earlier than the longest
    trial of its experiment, counts as pruned. So does one that has not ended, such as those that
    HyperBand leaves paused; without a value of the metric it is counted in `skipped`.

    Args:
        results: What `Tuner.fit` has returned, an `ExperimentAnalysis`, the folder of an
            experiment, a folder of such folders, or several of these. Each experiment counts
            once, also if a copy of its folder is given, too.
        metric: The metric, with "/" between nested keys; None: that of an `ExperimentAnalysis`.
        mode: Whether small or large values are good; None: that of an `ExperimentAnalysis`.
        space: What was searched; None: inferred from the configurations, without objects.
        constraints: Limits on other metrics, see `DRESearch`; trials that break one have failed.

    Raises:
        ValueError: A folder is missing, nothing has reported the metric or has a parameter of the
            space, or an argument is wrong.
    """
    definition = definition_of(metric, mode, space, Limits.of(constraints))
    return past_tasks.read_in(definition, partial(read_results, results))


def definition_of(
    metric: str | None,
    mode: Mode | None,
    space: Mapping[str, Any] | SearchSpace | None,
    limits: Limits,
) -> TaskDefinition:
    """Return the task that experiments are to be read as, by the arguments of a user."""
    if space is None or isinstance(space, SearchSpace):
        return TaskDefinition(metric, mode, limits, space)
    param_space = ParamSpace.of_results(space)
    return TaskDefinition(metric, mode, limits, param_space.space, paths=param_space.paths)


def read_results(results: Source | Sequence[Source], definition: TaskDefinition) -> MetaDataset:
    """Return experiments as metadata, see `metadata_from_results`."""
    check_sources(results)
    metric, mode = definition.metric, definition.mode
    skipped: Counter[str] = Counter()
    tasks: list[Task] = []
    reported: set[str] = set()
    for source in past_tasks.listed(results):
        key = metric or getattr(source, "default_metric", None)
        sign = SIGNS.get(mode or getattr(source, "default_mode", None) or "")
        for folder, past_trials in _experiments(source, skipped):
            columns = {name for past in past_trials for report in past.reports for name in report}
            reported |= columns
            if key is None or sign is None:
                raise ValueError(
                    f"Experiment {folder.name!r} needs metric and mode, got {key!r} and "
                    f"{mode!r}; its trials report {sorted(metrics_in(columns))}."
                )
            if columns and key not in columns:
                skipped[f"experiment {folder.name!r} without the metric {key!r}"] += 1
                continue
            definition.limits.count_unreported(columns, skipped)
            searched, trials = trials_in(past_trials, key, sign, definition, skipped)
            tasks.append(Task.from_trials(folder.name, searched, [*trials.values()]))
    if metric is not None and reported and metric not in reported:
        names = sorted(metrics_in(reported))
        raise ValueError(f"No trial reports the metric {metric!r}; there are {names}.")
    tasks = past_tasks.without_copies(tasks, skipped)
    return MetaDataset.of(tasks, source="Ray Tune", skipped=+skipped)


def metrics_in(names: Iterable[object]) -> set[str]:
    """Return which of the names in reports are the trials' own: no parameters, none of Ray's."""
    return {name for name in map(str, names) if not name.startswith("config/")} - _NO_METRICS


def trials_in(
    past_trials: Sequence[PastTrial],
    metric: str,
    sign: float,
    definition: TaskDefinition,
    skipped: Counter[str],
) -> tuple[SearchSpace, dict[int, Trial]]:
    """Return the search space, and by their places the trials that have ended and fit it."""
    space, likely = definition.space, definition.likely
    ended: dict[int, PastTrial] = {}
    for place, past in enumerate(past_trials):
        if past.has_ended or not all(math.isnan(number(r.get(metric))) for r in past.reports):
            configuration = _named(past.configuration, space or likely, definition.paths)
            # If the last report is that of the end, Ray has stopped the trial.
            is_over = past.has_ended and not (past.reports and past.reports[-1].get("done"))
            ended[place] = replace(past, configuration=configuration, has_ended=is_over)
    skipped["unfinished trial"] += len(past_trials) - len(ended)
    trials = trials_of(ended, metric, sign, TRAINING_ITERATION, definition.limits)
    if space is None:
        configurations = [trial.configuration for trial in trials.values()]
        return infer_space(configurations, likely=likely.domains), trials
    for place, trial in [*trials.items()]:
        values = {name: v for name, v in trial.configuration.items() if name in space.names}
        wrong = [name for name, value in values.items() if not fits(space.domains[name], value)]
        if wrong:
            reason = f"trials without a fitting {wrong[0]!r}, such as {values[wrong[0]]!r}"
            skipped[reason] += 1
            del trials[place]
    return space, trials


def _named(
    config: Mapping[str, Any], space: SearchSpace, paths: Mapping[str, str]
) -> dict[str, Any]:
    """Return the values of a configuration by the names in a space; others have their paths."""
    known = [paths.get(name, name) for name in space.names]
    named = flat_configuration(config, known)
    named.pop(TRIAL_INDEX, None)  # the number of a repetition
    for condition in space.conditions:  # those of parents come first
        path = paths.get(condition.child)
        if path in named and isinstance(condition, Condition):
            decides = match_key(named.get(condition.parent))
            if decides in map(match_key, condition.values):
                named[condition.child] = named.pop(path)
    return {name: _placed(space, name, value) for name, value in named.items()}


def _placed(space: SearchSpace, name: str, value: Any) -> Any:
    """Return a value in the space's type: text files turn tuples into lists."""
    if name in space.domains and isinstance(value, list) and not fits(space.domains[name], value):
        return tuple(value)
    return value


# ---- reading


def check_sources(results: object) -> None:
    """Refuse what can be no experiment of Ray, or several, by a ValueError."""
    for source in past_tasks.listed(results):
        is_path = isinstance(source, (str, PathLike)) and str(source)  # "" is no folder
        if not is_path and not isinstance(source, (ResultGrid, ExperimentAnalysis)):
            raise ValueError(
                f"results has {shortened(source)}; give a ResultGrid, an ExperimentAnalysis or "
                "the folder of an experiment."
            )


def _experiments(source: Any, skipped: Counter[str]) -> Iterator[tuple[Path, list[PastTrial]]]:
    """Yield the folder and the trials of every experiment that a source means."""
    if isinstance(source, (str, PathLike)):
        for folder in _folders(Path(expanduser(source))):
            yield folder, [*_past_trials_in(folder, skipped)]
    else:
        grid: Any = source if isinstance(source, ResultGrid) else ResultGrid(source)
        yield Path(grid.experiment_path), [past_trial_of(result) for result in grid]


def past_trial_of(result: Any) -> PastTrial:
    """Return the trial of a result of Ray in memory."""
    metrics, table = dict(result.metrics or {}), result.metrics_dataframe
    last = flat(metrics)
    reports: list[Mapping[str, Any]] = [last] if TRAINING_ITERATION in last else []
    if table is not None and len(table):
        # An empty cell is NaN: nothing was reported there, if not even the last report has it.
        reports = [
            {key: cell for key, cell in row.items() if key in last or not is_missing(cell)}
            for row in table.to_dict("records")
        ]
    return PastTrial(
        configuration=result.config or {},
        reports=reports,
        has_ended=bool(metrics.get("done")) or result.error is not None,
        has_failed=result.error is not None,
    )


def _folders(root: Path) -> list[Path]:
    if not root.is_dir():
        raise ValueError(
            f"There is no folder {str(root)!r} on this machine; give the folder of an experiment, "
            "or Tuner.restore(…).get_results() of one on another storage."
        )
    if any(root.glob(RECORDS)) or any(root.glob("*/params.json")):
        return [root]
    folders = sorted({file.parent for file in root.glob(f"**/{RECORDS}")})
    if not folders:
        raise ValueError(f"There is no experiment of Ray Tune in {str(root)!r}; check the path.")
    return folders


def _past_trials_in(folder: Path, skipped: Counter[str]) -> Iterator[PastTrial]:
    recorded = _recorded_trials(folder)
    for file in sorted(folder.glob("*/params.json")):
        has_error = file.with_name("error.txt").exists()
        unknown = PastTrial({}, [], has_ended=True, has_failed=has_error)
        record = recorded.pop(file.parent.name, unknown)
        if record is None:
            continue
        try:
            configuration = _without_objects(json.loads(regular(file).read_bytes()))
            flat_configuration(configuration)
            reports = [*_reports_in(file.with_name("result.json"))]
        except _DAMAGES as error:
            skipped[f"trial that cannot be read: {str(file.parent)!r} ({error})"] += 1
            continue
        yield replace(record, configuration=configuration, reports=reports)
    # Without Ray's loggers, trials have no files, and only their last reports are known.
    yield from (past for past in recorded.values() if past and (past.reports or past.has_failed))


def _recorded_trials(folder: Path) -> dict[str, PastTrial | None]:
    """Return what records say of trials by folder: each run of a name wrote one, the last counts.

    Of reports they have the last. Objects that Ray has pickled into them are left out unread. A
    failed trial that `Tuner.restore(restart_errored=True)` has replaced by a new one is None.
    """
    found: dict[str, PastTrial | None] = {}
    for file in sorted(folder.glob(RECORDS)):
        earlier = dict(found)
        try:
            for trial, results in recorded_in(file):
                status, last = str(trial["status"]), results.get("last_result", {"done": True})
                # One that was stopped while it was paused or running has not ended by itself.
                is_paused = status == "TERMINATED" and not (last or {}).get("done")
                reports = [flat(_without_objects(last))] if results.get("last_result") else []
                found[str(trial["relative_logdir"])] = PastTrial(
                    configuration=_without_objects(trial.get("config", {})),
                    reports=reports,
                    has_ended=status in ENDED and not is_paused,
                    has_failed=status == "ERROR",
                )
        except _DAMAGES:
            continue
        new = [past.configuration for name, past in found.items() if past and name not in earlier]
        for name, past in earlier.items():
            if past is found[name] and past and past.has_failed and past.configuration in new:
                found[name] = None
    return found


def recorded_in(file: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield what a record says about each trial, and about its results, as data of JSON."""
    for trial, results in json.loads(regular(file).read_bytes())["trial_data"]:
        yield json.loads(trial), json.loads(results)


def _reports_in(file: Path) -> Iterator[Mapping[str, Any]]:
    lines = regular(file).read_bytes().splitlines() if file.exists() else []
    for place, line in enumerate(lines):
        try:
            yield flat(json.loads(line))
        except ValueError:
            if place < len(lines) - 1:  # Ray may have been killed while writing the last line
                raise


def flat(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report with "/" between nested keys, as Ray hands it to searchers."""
    return {str(key): value for key, value in flatten_dict(dict(report)).items()}


def _without_objects(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    kept = {}
    for key, value in item.items():
        if not any(map(_is_object, value if isinstance(value, list) else [value])):
            kept[key] = _without_objects(value)
    return kept


def _is_object(part: Any) -> bool:
    """Say whether Ray has written this in place of an object."""
    if isinstance(part, dict):
        return part.items() >= PICKLED.items()
    return isinstance(part, str) and _OBJECT.fullmatch(part) is not None
