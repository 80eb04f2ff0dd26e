"""Metadata from Syne Tune's experiments and offline evaluations."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from syne_tune.backend.trial_status import Status
from syne_tune.config_space import config_space_from_json_dict
from syne_tune.constants import (
    ST_DECISION,
    ST_METADATA_FILENAME,
    ST_RESULTS_DATAFRAME_FILENAME,
    ST_STATUS,
    ST_TRIAL_ID,
)
from syne_tune.optimizer.scheduler import SchedulerDecision
from syne_tune.util import experiment_path

from dre_plugins.adapters.common import past_tasks
from dre_plugins.adapters.common.limits import Limits
from dre_plugins.adapters.common.past_tasks import Mode, TaskDefinition
from dre_plugins.adapters.common.past_trials import PastTrial, trials_of
from dre_plugins.adapters.syne_tune.conversion import domain_of, space_of
from dre_plugins.adapters.syne_tune.history import logger
from dre_plugins.checks import is_integer, shortened
from dre_plugins.files import regular
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space import Domain, SearchSpace
from dre_plugins.space.base import Array
from dre_plugins.transfer import archive
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.sources.cells import configurations, typed
from dre_plugins.transfer.spaces.inference import infer_space

if TYPE_CHECKING:
    from syne_tune.experiments import ExperimentResult
    from syne_tune.optimizer.schedulers.transfer_learning import (
        transfer_learning_task_evaluation as offline,
    )


Evaluations: TypeAlias = "Mapping[str, offline.TransferLearningTaskEvaluations]"
Source: TypeAlias = "str | PathLike[str] | ExperimentResult | Evaluations"

_CONFIG = "config_"  # begins the columns of hyper-parameters in a table of results
_NO_METRIC = "without the metric"

# Errors of reading a damaged file, and of Syne Tune for domains that it cannot rebuild.
_DAMAGES = (*archive.DAMAGES, AssertionError, OSError, csv.Error)

# Syne Tune would call any function that a file names, and construct all values of a finite range.
# So only these domains are rebuilt; others are inferred from the table.
_DOMAINS = ("Categorical", "FiniteRange", "Float", "Integer", "Ordinal", "OrdinalNearestNeighbor")
_SAMPLERS = (None, "Grid", "LogUniform", "Normal", "ReverseLogUniform", "Uniform")
_MAX_SIZE = 100_000


def metadata_from_experiments(
    source: Source | Sequence[Source],
    *,
    metric: str | None = None,
    mode: Mode | None = None,
    space: Mapping[str, Any] | SearchSpace | None = None,
    constraints: Mapping[str, Any] | None = None,
) -> MetaDataset:
    """Return experiments of Syne Tune, or offline evaluations for its schedulers, as metadata.

    Of an experiment only `metadata.json` and the table of results are read, which cannot run
    code. The table does not say which trials crashed. A trial counts as pruned if its last report
    neither reached the highest resource nor is marked as completed. Experiments and trials that
    cannot be read are counted in `skipped`.

    Args:
        source: The folder or the name of an experiment, a folder of such folders, a loaded
            experiment, evaluations by name of the task, or several of these. Each experiment
            counts once, also if a copy of its folder is given, too.
        metric: The metric; None: the first one of the experiment or evaluations.
        mode: Whether small or large values are good; None: what the experiment says, or "min".
        space: What was searched; None: what the experiment says, else inferred from its table.
        constraints: Limits on other metrics, see `DRE`; trials that break one have failed.

    Raises:
        ValueError: A folder is missing, nothing has the metric or space, or an argument is wrong.
    """
    if space is not None and not isinstance(space, SearchSpace):
        space = space_of(space)
    wanted = TaskDefinition(metric, mode, Limits.of(constraints), space)
    return past_tasks.read_in(wanted, partial(tasks_in, source))


def tasks_in(source: Source | Sequence[Source], wanted: TaskDefinition) -> MetaDataset:
    """Return experiments and offline evaluations as metadata."""
    skipped: Counter[str] = Counter()
    experiments: list[Task] = []
    tables: list[Task] = []
    for part in past_tasks.listed(source):
        if isinstance(part, Mapping):
            for name, table in part.items():
                tables += _offline_task(name, table, wanted, skipped)
        else:
            for folder in _folders(part):
                experiments += _task_in(folder, wanted, skipped)
    tasks = [*past_tasks.without_copies(experiments, skipped), *tables]
    unknown = [reason for reason in skipped if _NO_METRIC in reason]
    if unknown and not tasks:
        raise ValueError(f"There is only an {unknown[0]}; name one of these.")
    return MetaDataset.of(tasks, source="Syne Tune", skipped=+skipped)


def _task_in(folder: Path, wanted: TaskDefinition, skipped: Counter[str]) -> Iterator[Task]:
    """Yield an experiment as a task; nothing, with the reason counted, if that fails."""
    experiment = read_experiment(folder, wanted, skipped)
    if experiment is not None:
        trials = [*experiment.trials.values()]
        yield Task.from_trials(folder.name, experiment.space, trials)


def _sign_of(mode: str | None, task: str, metric: object) -> float:
    """Return 1 if large values are good, -1 if small ones are, as is assumed without a mode."""
    if mode is None:
        logger.warning(
            "Nothing says whether small or large values of %r in %r are good; it is assumed that "
            "small ones are. State mode='min' or mode='max'.",
            metric,
            task,
        )
    return past_tasks.SIGNS[mode or "min"]


# ---- experiments


def _folders(source: Any) -> list[Path]:
    """Return the folders of experiments that a source means."""
    place = getattr(source, "path", source)
    if not isinstance(place, (str, PathLike)) or not str(place):  # "" is no folder
        raise ValueError(
            f"source has {shortened(source)}; give folders or names of experiments, loaded "
            "experiments, or TransferLearningTaskEvaluations by name."
        )
    root = folder = Path(place)
    with suppress(RuntimeError):  # of Syne Tune where there is no home directory
        root = folder if folder.is_dir() else Path(experiment_path(str(place)))
    if not root.is_dir():
        places = ", nor ".join(dict.fromkeys(repr(str(path)) for path in (folder, root)))
        raise ValueError(f"There is no folder {places}; check the path.")
    if any((root / name).exists() for name in (ST_RESULTS_DATAFRAME_FILENAME, "results.csv")):
        return [root]
    folders = sorted(file.parent for file in root.glob(f"**/{ST_METADATA_FILENAME}"))
    if not folders:
        raise ValueError(f"There is no experiment of Syne Tune in {str(root)!r}; check the path.")
    return folders


@dataclass(frozen=True)
class Experiment:
    """Hold the trials of an experiment for one metric; larger values are better."""

    space: SearchSpace
    trials: Mapping[str, Trial]  # by their ids, as the table of results has them
    sign: float  # 1 if the metric is maximised, -1 if it is minimised


def read_experiment(
    folder: Path, wanted: TaskDefinition, skipped: Counter[str]
) -> Experiment | None:
    """Return the trials of an experiment; None, with the reason counted, if that fails."""
    try:
        metadata, columns = _read_metadata(folder), _read_results(folder)
    except _DAMAGES as error:
        skipped[f"experiment that cannot be read: {folder.name!r} ({error})"] += 1
        return None
    names = [name for name in _as_list(metadata.get("metric_names")) if isinstance(name, str)]
    metric = wanted.metric or next(iter(names), None)
    if metric not in columns:
        metrics = [c for c in columns if not c.startswith((_CONFIG, "st_")) and c != ST_TRIAL_ID]
        skipped[f"experiment {folder.name!r} {_NO_METRIC} {metric!r}, but with {metrics}"] += 1
        return None
    modes = dict(zip(names, _as_list(metadata.get("metric_mode")) * len(names), strict=False))
    stated_mode = str(modes.get(metric))
    mode = wanted.mode or (stated_mode if stated_mode in past_tasks.SIGNS else wanted.otherwise)
    sign = _sign_of(mode, folder.name, metric)

    wanted.limits.count_unreported(columns, skipped)
    domains = _domains_in(metadata) if wanted.space is None else wanted.space.domains
    keys = [key for key in columns if key.startswith(_CONFIG) and key not in (metric, *names)]
    cells = {key.removeprefix(_CONFIG): columns[key] for key in keys}
    rows = configurations(cells, domains, len(columns[metric]), skipped)
    space = wanted.space or infer_space([*rows.values()], [*domains, *cells], likely=domains)
    reported = {name: columns[name] for name in columns if name not in keys}
    for name in wanted.limits.ranges.keys() & columns:
        reported[name] = [typed([cell])[0] for cell in columns[name]]
    past_trials = _past_trials(reported, rows)
    resource = _resource_in(metadata)
    return Experiment(space, trials_of(past_trials, metric, sign, resource, wanted.limits), sign)


def _read_metadata(folder: Path) -> dict[str, Any]:
    file = folder / ST_METADATA_FILENAME
    metadata = json.loads(regular(file).read_bytes()) if file.exists() else {}
    if not isinstance(metadata, dict):
        raise ValueError(f"{ST_METADATA_FILENAME} holds no object")
    return metadata


def _read_results(folder: Path) -> dict[str, list[str | None]]:
    """Return the columns of the table of results; an empty cell is None."""
    file = folder / ST_RESULTS_DATAFRAME_FILENAME
    if file.exists():
        with zipfile.ZipFile(regular(file)) as packed:
            archive.check_unpacked(packed)
            text = packed.read(packed.namelist()[0]).decode()
    else:
        text = regular(folder / "results.csv").read_text(encoding="utf-8")
    names, *rows = [*csv.reader(io.StringIO(text, newline=""))] or [[]]
    if ST_TRIAL_ID not in names:
        raise ValueError(f"the results have no column {ST_TRIAL_ID!r}")
    whole = [row for row in rows if len(row) == len(names)]
    return {name: [row[place] or None for row in whole] for place, name in enumerate(names)}


def _domains_in(metadata: Mapping[str, Any]) -> dict[str, Domain]:
    """Return the domains that an experiment states, without those that are not kept in full."""
    try:
        items = json.loads(metadata.get("config_space", "{}")).items()
    except (AttributeError, RecursionError, TypeError, ValueError):
        return {}
    domains: dict[str, Domain] = {}
    for name, state in items:
        if isinstance(state, dict) and not _is_harmless(state):
            continue
        try:
            domains[name] = domain_of(name, config_space_from_json_dict({name: state})[name])
        except _DAMAGES:  # quantised domains, for one, cannot be rebuilt
            continue
    return domains


def _is_harmless(state: Mapping[str, Any]) -> bool:
    """Say whether a domain of a file may be made by Syne Tune."""
    arguments = state.get("domain_kwargs")
    size = arguments.get("size", 1) if isinstance(arguments, dict) else 1
    return (
        state.get("domain_cls") in _DOMAINS
        and state.get("sampler_cls") in _SAMPLERS
        and is_integer(size)
        and size <= _MAX_SIZE
    )


def _resource_in(metadata: Mapping[str, Any]) -> str | None:
    scheduler = metadata.get("scheduler_kwargs")
    name = scheduler.get("time_attr") if isinstance(scheduler, Mapping) else None
    return name if isinstance(name, str) else None


def _past_trials(
    columns: Mapping[str, Sequence[Any]], configurations: Mapping[int, Mapping[str, Any]]
) -> dict[str, PastTrial]:
    """Return the trials by their ids, in the order of first reports; rows are their reports."""
    rows: dict[str, list[int]] = {}
    for row in configurations:
        rows.setdefault(columns[ST_TRIAL_ID][row], []).append(row)
    past_trials = {}
    for trial_id, places in rows.items():
        reports = [
            {name: column[row] for name, column in columns.items() if column[row] is not None}
            for row in places
        ]
        status = reports[-1].get(ST_STATUS)
        # One that was stopped may have ended before it heard of that.
        was_stopped = reports[-1].get(ST_DECISION) == SchedulerDecision.STOP
        past_trials[trial_id] = PastTrial(
            configuration=configurations[places[-1]],
            reports=reports,
            has_ended=status == Status.completed and not was_stopped,
            has_failed=status == Status.failed,
        )
    return past_trials


def _as_list(item: Any) -> list[Any]:
    return item if isinstance(item, list) else [] if item is None else [item]


# ---- offline evaluations


def _offline_task(
    name: str,
    evaluations: offline.TransferLearningTaskEvaluations,
    wanted: TaskDefinition,
    skipped: Counter[str],
) -> Iterator[Task]:
    """Yield offline evaluations as a task; nothing, with the reason counted, if that fails."""
    names = [*evaluations.objectives_names]
    metric = wanted.metric or next(iter(names), None)
    if metric not in names:
        skipped[f"task {name!r} {_NO_METRIC} {metric!r}, but with {names}"] += 1
        return
    try:
        space = wanted.space or space_of(evaluations.configuration_space)
    except ValueError as error:
        skipped[f"task that cannot be used: {name!r} ({error})"] += 1
        return
    reports = _mean_over_seeds(evaluations.objectives_evaluations)
    sign = _sign_of(wanted.mode or wanted.otherwise, name, metric)
    values = sign * reports[..., names.index(metric)]
    table = evaluations.hyperparameters
    cells = {key: table[key].tolist() for key in space.names if key in table}
    rows = configurations(cells, space.domains, len(reports), skipped)
    wanted.limits.count_unreported(names, skipped)
    trials = []
    for row, configuration in rows.items():
        n_lacking = np.isnan(values[row, ::-1]).argmin()  # fidelities after the last report
        report = dict(zip(names, reports[row, -1 - n_lacking].tolist(), strict=True))
        trial = _offline_trial(configuration, values[row])
        trials.append(replace(trial, constraints=wanted.limits.violations(report)))
    yield Task.from_trials(name, space, trials)


def _mean_over_seeds(evaluations: Any) -> Array:
    """Return means of what is not NaN, `[N, seeds, fidelities, …]` -> `[N, fidelities, …]`."""
    values = np.asarray(evaluations, dtype=np.float64)
    is_number = ~np.isnan(values)
    with np.errstate(invalid="ignore"):  # inf - inf, and no seed at all
        return np.asarray(np.where(is_number, values, 0.0).sum(axis=1) / is_number.sum(axis=1))


def _offline_trial(configuration: Mapping[str, Any], reported: Array) -> Trial:
    """Return a trial; the last of `reported` `[fidelities]` is its final value."""
    *values, final = reported.tolist()
    # NaN is what was not evaluated, no report of a trial that diverged.
    rungs = {float(step): v for step, v in enumerate(values, start=1) if not np.isnan(v)}
    if np.isnan(final) and rungs:
        return Trial(configuration, TrialState.PRUNED, None, rungs)
    return Trial(configuration, TrialState.COMPLETE, final, rungs)
