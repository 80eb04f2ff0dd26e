"""The logger of everything that a `DRESearch` says."""

from __future__ import annotations

import logging

logger = logging.getLogger("ray.tune.dre_plugins")
