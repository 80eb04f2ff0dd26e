"""Serve a searcher on JSON lines: `python serve.py with_ax.py`.

A line in, a line out:

    {"parameters": [...], "seed": 7, "trials": 60} -> {"versions": {"ax-platform": "1.3.1", ...}}
    {"ask": 2}                                     -> {"configurations": [{"x": 0.5, ...}, ...]}
    {"tell": [0.25, 0.5]}                          -> {}

An exception is answered by {"error": its traceback}. Needs nothing but Python itself.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import traceback
from importlib.metadata import version
from typing import Any


def main() -> None:
    """Answer requests until the input ends."""
    # Libraries print on the standard output, too; that goes where their errors go.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    server = Server(sys.argv[1])
    for line in sys.stdin:
        try:
            answer = server.answer(json.loads(line))
        except Exception:  # whatever the library raises ends one run of the benchmark, there
            answer = {"error": traceback.format_exc()}
        answers.write(json.dumps(answer, default=_plain) + "\n")


class Server:
    """Hold the searcher that requests are about.

    Args:
        path: A module with a class `Searcher` and `DISTRIBUTIONS`, whose versions are told.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._searcher: Any = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to one request; see the module."""
        if "ask" in request:
            return {"configurations": self._searcher.ask(request["ask"])}
        if "tell" in request:
            self._searcher.tell(request["tell"])
            return {}
        module = runpy.run_path(self._path)
        self._searcher = module["Searcher"](**request)
        return {"versions": {name: version(name) for name in module["DISTRIBUTIONS"]}}


def _plain(value: Any) -> Any:
    """Return a scalar of NumPy as Python's."""
    return value.item()


if __name__ == "__main__":
    main()
