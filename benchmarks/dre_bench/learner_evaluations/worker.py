"""A process that evaluates, and is ended when an evaluation takes too much processor time.

The limit is on processor time, which the kernel counts and enforces: a machine that has other work
to do evaluates later, not otherwise.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from threadpoolctl import threadpool_limits

OK, FAILED, TIMED_OUT, CRASHED = "ok", "failed", "timed out", "crashed"
# An evaluation that gets no processor time at all is given up after so many times its limit.
PATIENCE = 100


class Worker:
    """A child process for one evaluation after the other; a new one follows one that ended."""

    def __init__(self, work: Callable[..., dict[str, Any]]) -> None:
        self._work = work
        self._context = multiprocessing.get_context("fork")
        self._process: Any = None
        self._pipe: Any = None

    def run(self, arguments: tuple[Any, ...], limit: float) -> dict[str, Any]:
        """Run the work.

        Args:
            arguments: what it is called with.
            limit: seconds of processor time that it may take.

        Returns:
            its result with `status`: `ok`; else `failed` with an `error`, `timed out` or
            `crashed`.
        """
        if self._process is None:
            self._pipe, far_end = self._context.Pipe()
            self._process = self._context.Process(
                target=_serve, args=(far_end, self._work), daemon=True
            )
            self._process.start()
            far_end.close()
        self._pipe.send((arguments, limit))
        try:
            if self._pipe.poll(limit * PATIENCE):
                return dict(self._pipe.recv())
        except (EOFError, ConnectionResetError):
            pass
        return self._ended()

    def close(self) -> None:
        """End the child process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = None

    def _ended(self) -> dict[str, Any]:
        self._process.join(timeout=1)
        code = self._process.exitcode
        self.close()
        if code is None or code == -signal.SIGPROF:
            return {"status": TIMED_OUT}
        return {"status": CRASHED, "error": f"exit code {code}"}


def _serve(pipe: Connection, work: Callable[..., dict[str, Any]]) -> None:
    """Answer requests until the pipe is closed."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    threadpool_limits(limits=1)
    while True:
        try:
            arguments, limit = pipe.recv()
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_PROF, limit)
        try:
            answer = {"status": OK, **work(*arguments)}
        except Exception as error:  # a learner may fail in any way; the record says how
            answer = {"status": FAILED, "error": f"{type(error).__name__}: {error}"[:200]}
        signal.setitimer(signal.ITIMER_PROF, 0)
        pipe.send(answer)
