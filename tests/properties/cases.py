"""How many cases of each property are tried: in CI the same each time, others in a long run."""

import os

from hypothesis import HealthCheck, Phase, settings

# How many times the cases of CI are tried; `make properties` sets it.
FACTOR = float(os.environ.get("DRE_PROPERTY_FACTOR", "1"))
IS_LONG = FACTOR > 1
# Reported as they are found: shrinking a study of many trials would take longer than a timeout.
_phases = (Phase.explicit, Phase.generate, Phase.shrink) if not IS_LONG else (Phase.generate,)


def cases(n: int) -> settings:
    """Try a property on n cases in CI, and on FACTOR times as many in a long run."""
    return settings(
        max_examples=max(1, round(n * FACTOR)),
        deadline=None,
        database=None,
        derandomize=not IS_LONG,
        phases=_phases,
        suppress_health_check=[*HealthCheck],
    )
