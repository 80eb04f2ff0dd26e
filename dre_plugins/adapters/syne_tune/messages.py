"""The logger of everything that our schedulers and searchers say."""

from __future__ import annotations

import logging

logger = logging.getLogger("syne_tune.dre_plugins")
