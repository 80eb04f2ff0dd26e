"""What holds for all properties: what frameworks find odd is not warned of."""

import warnings
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _odd_things_are_not_warned_of() -> Iterator[None]:
    with warnings.catch_warnings():
        # The frameworks warn of unhashable choices, steps that do not fit, and the like.
        warnings.filterwarnings("ignore", module="(optuna|ray|syne_tune)")
        yield
