"""Where tests fork processes: from a server that has imported what takes seconds."""

from multiprocessing import get_context
from multiprocessing.context import ForkServerContext

# Installed packages only: Python 3.11 does not tell the server where the modules of tests are.
IMPORTED = [
    "optuna",
    "syne_tune",
    "dre_plugins.recommend.surrogates",
    "dre_plugins.adapters.optuna",
]


def fork_server() -> ForkServerContext:
    """Return where processes are forked."""
    context = get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    return context
