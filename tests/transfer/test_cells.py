"""Cells of tables: numbers that are written in any way, and what is none."""

import math

import numpy as np
import pytest

from dre_plugins.transfer.sources.cells import EMPTY, Misfit, number, typed


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (3, 3.0),
        ("3", 3.0),
        (" 1e-3 ", 0.001),
        (np.float32(0.5), 0.5),
        ("inf", math.inf),
        (-(10**400), -math.inf),
        ("1" + "0" * 400, math.inf),
        ("1_000", math.nan),
        ("", math.nan),
        ("diverged", math.nan),
        (None, math.nan),
        (True, math.nan),
        ([1.0], math.nan),
    ],
)
def test_a_metric_is_a_number_or_nan(cell: object, expected: float) -> None:
    np.testing.assert_equal(number(cell), expected)


def test_columns_take_the_type_of_most_cells() -> None:
    assert typed(["1", "2", None]) == [1, 2, EMPTY]
    assert typed([np.int64(1), 2.5, math.nan]) == [1, 2.5, EMPTY]
    assert typed(["true", "FALSE", None]) == [True, False, EMPTY]
    assert typed(["1", "two"]) == ["1", "two"]
    assert typed([None, None]) == [EMPTY, EMPTY]
    assert typed([True, 1, "1"]) == [True, 1, "1"]
    *numbers, last = typed([*range(10), 10**400])
    assert numbers == [*range(10)]
    assert isinstance(last, Misfit) and last.cell == 10**400
