"""Typed values from the columns of a table, whose cells may be text."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dre_plugins.checks import is_real
from dre_plugins.recommend.trials import number_of
from dre_plugins.space import Domain
from dre_plugins.space.numeric import Number
from dre_plugins.space.ranges import is_finite
from dre_plugins.transfer.spaces.inference import fits

# Smallest share of numbers for which a column counts as numeric with mistakes; not measured, but
# documented in `from_table`.
_NUMERIC_SHARE = 0.9
_BOOLEANS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}

EMPTY: Final = object()  # a cell without a value; None may be a choice


@dataclass(frozen=True, slots=True)
class Misfit:
    """Stand for a cell that is not what its column holds."""

    cell: object


def typed(column: Iterable[Any]) -> list[Any]:
    """Return a column with text converted to numbers or booleans where possible.

    Where at least 90 % of the cells are finite numbers, others become a `Misfit`; what is empty
    becomes `EMPTY`.
    """
    cells = [cell.item() if isinstance(cell, np.generic) else cell for cell in column]
    present = [cell for cell in cells if not is_missing(cell)]
    if all(isinstance(cell, str) and cell in _BOOLEANS for cell in present):
        return [EMPTY if is_missing(cell) else _BOOLEANS[cell] for cell in cells]
    numbers = [_parsed(cell) for cell in cells]
    is_number = [is_finite(number) for number in numbers]
    if not any(is_number) or sum(is_number) < _NUMERIC_SHARE * len(present):
        return [EMPTY if is_missing(cell) else cell for cell in cells]
    return [
        number if fits else EMPTY if is_missing(number) else Misfit(cell)
        for cell, number, fits in zip(cells, numbers, is_number, strict=True)
    ]


def fitted(column: Iterable[Any], domain: Domain) -> list[Any]:
    """Return a column in the types of a domain, `EMPTY` or a `Misfit` where it has no value."""
    listed = [] if isinstance(domain, Number) else domain.all_values()
    # In JSON, a space has lists where its table has tuples.
    choices = {_in_brackets(str(choice)): choice for choice in listed}
    choices.update((str(choice), choice) for choice in listed)
    cells: list[Any] = []
    for cell in column:
        value = cell
        if isinstance(cell, str):
            value = choices.get(cell, choices.get(_in_brackets(cell), _parsed(cell)))
        if is_missing(cell) or (not choices and is_missing(value)):
            cells.append(EMPTY)
        else:
            cells.append(value if fits(domain, value) else Misfit(cell))
    return cells


def configurations(
    columns: Mapping[str, Sequence[Any]],
    domains: Mapping[str, Domain],
    n: int,
    skipped: Counter[str],
) -> dict[int, dict[str, Any]]:
    """Return the configuration of each of `n` rows that has no misfit; others are counted.

    The types of parameters whose domain is not known are inferred from their cells.
    """
    cells = {
        name: fitted(column, domains[name]) if name in domains else typed(column)
        for name, column in columns.items()
    }
    rows = [*range(n)]
    for name, column in cells.items():
        misfits = [column[row].cell for row in rows if isinstance(column[row], Misfit)]
        if misfits:
            reason = f"rows without a fitting value in {name!r}, such as {misfits[0]!r}"
            skipped[reason] += len(misfits)
            rows = [row for row in rows if not isinstance(column[row], Misfit)]
    return {
        row: {name: column[row] for name, column in cells.items() if column[row] is not EMPTY}
        for row in rows
    }


def number(cell: object) -> float:
    """Return a metric, NaN where a cell is no number."""
    value = _parsed(cell)
    return number_of(value) if is_real(value) else math.nan


def is_missing(cell: object) -> bool:
    """Return whether a cell is empty: None or NaN."""
    return cell is None or (isinstance(cell, (float, np.floating)) and math.isnan(cell))


def _in_brackets(text: str) -> str:
    """Return the text of a tuple as that of a list."""
    return text.replace("(", "[").replace(",)", "]").replace(")", "]")


def _parsed(cell: Any) -> Any:
    """Return the number that a text spells, or else the cell."""
    if not isinstance(cell, str) or "_" in cell:  # 1_000 is a number in Python only
        return cell
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell
