"""Metadata from tables: a CSV file, a data frame or columns; one row is one evaluation."""

import csv
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from dre_plugins.checks import require
from dre_plugins.files import regular
from dre_plugins.recommend.directions import SIGNS
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space.search_space import SearchSpace
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.sources.cells import configurations, is_missing, number
from dre_plugins.transfer.spaces.inference import infer_space

Columns: TypeAlias = dict[str, list[Any]]
Direction: TypeAlias = Literal["minimize", "maximize"]

_DELIMITERS = ",;\t"
_UNNAMED = "table"


class DataFrame(Protocol):
    """The part of pandas' data frame that is needed; pandas itself is never imported."""

    @property
    def columns(self) -> Any: ...

    def notna(self) -> Any: ...

    def astype(self, dtype: Any) -> Any: ...


def from_table(
    source: str | PathLike[str] | DataFrame | Mapping[str, Sequence[Any]],
    *,
    value: str,
    task: str | None = None,
    parameters: Sequence[str] | None = None,
    direction: Direction = "minimize",
    space: SearchSpace | None = None,
    log: str | Collection[str] = (),
) -> MetaDataset:
    """Return the metadata in a table of evaluations.

    An empty cell is a parameter that is inactive or unknown. A value that is empty, NaN or no
    number is a failed evaluation. All tasks share one search space. Rows with text in a column
    of numbers (at least 90 % are), rows that do not fit `space`, and columns of a file without a
    name, such as the row numbers that pandas writes, are counted in `skipped`.

    Args:
        source: A CSV file, a pandas data frame or columns by name.
        value: Column of the metric.
        task: Column that tells tasks apart; None: one task, named after the file.
        parameters: Columns of the hyper-parameters; None: those of `space`, or all others.
        direction: Whether small or large values are good.
        space: The search space; None: inferred from the columns, see `infer_domain`.
        log: Parameters that were searched on the log scale, or one; only without `space`.

    Raises:
        ValueError: A column is missing, the file is no CSV file, no value is a number, or an
            argument is wrong.
    """
    require(direction in SIGNS, "direction", direction, f"one of {list(SIGNS)}")
    skipped: Counter[str] = Counter()
    table, columns = _read(source, skipped)
    if parameters is None:
        names = [*columns] if space is None else space.names
        parameters = [name for name in names if name not in (value, task)]
    _check_columns(table, columns, [value, *parameters, *([] if task is None else [task])])
    log = [log] if isinstance(log, str) else log
    _check_log(log, parameters, space)
    _check_values(value, columns[value])

    domains = {} if space is None else space.domains
    cells = {name: columns[name] for name in parameters}
    rows = configurations(cells, domains, len(columns[value]), skipped)
    if task is not None:
        nameless = [row for row in rows if is_missing(columns[task][row])]
        skipped[f"rows without a name in {task!r}"] += len(nameless)
        for row in nameless:
            del rows[row]
    if space is None:
        space = infer_space([*rows.values()], parameters, log=log)
    trials: dict[str, list[Trial]] = {table: []} if task is None else {}
    for row, configuration in rows.items():
        key = table if task is None else str(columns[task][row])
        result = SIGNS[direction] * number(columns[value][row])
        trials.setdefault(key, []).append(Trial(configuration, TrialState.COMPLETE, result))
    return MetaDataset.of(
        [Task.from_trials(key, space, task_trials) for key, task_trials in trials.items()],
        source=table,
        skipped=+skipped,
    )


def _check_columns(table: str, columns: Columns, needed: Sequence[str]) -> None:
    for column, count in Counter(needed).items():
        if column not in columns:
            raise ValueError(f"{table!r} has no column {column!r}; its columns are {[*columns]}.")
        if count > 1:
            raise ValueError(f"Column {column!r} is named twice; give it one meaning.")


def _check_log(log: Collection[str], parameters: Sequence[str], space: SearchSpace | None) -> None:
    if log and space is not None:
        raise ValueError(f"log={[*log]} is stated by space already; leave one of them out.")
    unknown = sorted(set(log) - set(parameters))
    if unknown:
        raise ValueError(f"log names {unknown}, which are none of {[*parameters]}.")


def _check_values(name: str, cells: Sequence[Any]) -> None:
    """Refuse a column of values that are all text, such as numbers with a decimal comma."""
    texts = [cell for cell in cells if isinstance(cell, str) and cell.casefold() != "nan"]
    if texts and all(math.isnan(number(cell)) for cell in cells):
        raise ValueError(
            f"Column {name!r} has no number, but text such as {texts[0]!r}; write values like 0.5."
        )


# ---- reading


def _read(source: Any, skipped: Counter[str]) -> tuple[str, Columns]:
    """Return the name of a table and its columns; missing cells are None or NaN."""
    if isinstance(source, (str, PathLike)) and str(source):
        path = Path(source)
        return path.stem, read_csv(path, skipped)
    if isinstance(source, Mapping):
        columns = {str(key): [*column] for key, column in source.items()}
        lengths = {key: len(column) for key, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"The columns have different lengths: {lengths}.")
        return _UNNAMED, columns
    if not (hasattr(source, "columns") and hasattr(source, "notna")):
        raise ValueError(
            f"source must be a CSV file, a data frame or columns by name, got {source!r}."
        )
    names = _check_unique(_UNNAMED, [str(name) for name in source.columns])
    # pandas has several kinds of missing cells, which become None here.
    objects = source.astype(object).where(source.notna(), None)
    return _UNNAMED, {name: objects.iloc[:, i].tolist() for i, name in enumerate(names)}


def read_csv(path: Path, skipped: Counter[str]) -> Columns:
    """Return the columns of a CSV file with a header, as text; empty cells are None.

    It is separated by comma, semicolon or tab.
    """
    try:
        with regular(path).open(newline="", encoding="utf-8-sig") as file:
            header = file.readline()
            file.seek(0)
            delimiter = max(_DELIMITERS, key=header.count)
            rows = [row for row in csv.reader(file, delimiter=delimiter) if row]
    except (csv.Error, ValueError) as error:  # text that is not UTF-8
        raise ValueError(f"{str(path)!r} is no CSV file with a header ({error}).") from error
    if not rows:
        raise ValueError(f"{str(path)!r} is no CSV file with a header: it is empty.")
    names = [name.strip() for name in rows.pop(0)]
    _check_unique(str(path), [name for name in names if name])
    skipped["columns without a name"] += names.count("")
    whole = [row for row in rows if len(row) == len(names)]
    skipped["rows with another number of cells than the header"] += len(rows) - len(whole)
    return {
        name: [row[column].strip() or None for row in whole]
        for column, name in enumerate(names)
        if name
    }


def _check_unique(table: str, names: list[str]) -> list[str]:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"{table!r} has the column {twice[0]!r} more than once; rename one.")
    return names
