"""How many cases of each property are tried, and a count of them.

The numbers beside `@cases` are those of CI, where the cases are the same each time. `run.py` sets
FACTOR for a long run and a seed by which its cases differ.
"""

import functools
import os
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, settings

FACTOR = "DRE_PROPERTY_FACTOR"
TRIED: Counter[str] = Counter()

_factor = float(os.environ.get(FACTOR, "1"))
IS_LONG = _factor > 1
# Reported as they are found: shrinking a study of many trials would take longer than a timeout.
_phases = (Phase.explicit, Phase.generate, Phase.shrink) if not IS_LONG else (Phase.generate,)


def cases(n: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Try a property on n cases in CI, and on FACTOR times as many in a long run."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        # Below `given`, so that what is called is one case.
        inner = test.hypothesis.inner_test  # type: ignore[attr-defined]

        @functools.wraps(inner)
        def counted(*arguments: Any, **keywords: Any) -> None:
            TRIED[test.__name__] += 1
            inner(*arguments, **keywords)

        test.hypothesis.inner_test = counted  # type: ignore[attr-defined]
        return settings(
            max_examples=max(1, round(n * _factor)),
            deadline=None,
            database=None,
            derandomize=not IS_LONG,
            phases=_phases,
            suppress_health_check=[*HealthCheck],
        )(test)

    return decorate
