"""Where tests fork processes: from a server that has imported what takes seconds."""

from multiprocessing import get_context
from multiprocessing.context import ForkServerContext


def fork_server() -> ForkServerContext:
    """Return where processes are forked; Python 3.11 imports only installed packages there."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["optuna", "syne_tune", "dre_plugins.recommend.surrogates"])
    return context
