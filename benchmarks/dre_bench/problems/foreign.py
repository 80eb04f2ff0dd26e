"""Rivals of other libraries, each in a process of an environment of its own; see `foreign`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any

from dre_bench import foreign
from dre_bench.problems.maximise import asked_and_told
from dre_bench.runs import Record, Run, Sources
from dre_bench.scenarios import scenario_of
from dre_bench.tasks import Configuration, Parameter, active_part

FOLDER = Path(foreign.__file__).parent
# Name -> module of the library, which a `foreign/with_NAME.py` imports.
MODULES = {"ax": "ax", "hebo": "hebo", "smac": "smac", "cqr": "syne_tune"}
# The end of what a process wrote to its error stream, if it died without an answer.
SHOWN = 2000


def python_of(name: str, environments: Path | None) -> str | None:
    """Return the interpreter that has a rival's library, or None.

    Args:
        name: One of `MODULES`.
        environments: Folder that may hold an environment `NAME/bin/python`; else this one counts.
    """
    python = environments and environments / name / "bin" / "python"
    if python and python.is_file():
        return str(python)
    return sys.executable if find_spec(MODULES[name]) else None


def maximise(sources: Sources, run: Run, *, batch: int = 1) -> Record:
    """Maximise a task's value.

    Args:
        batch: Configurations that are asked for at once.

    Returns:
        What `problems.maximise` returns, and `library`: the versions in the environment.

    Raises:
        ModuleNotFoundError: The library is installed nowhere.
        RuntimeError: The library raised, or its process died.
    """
    scenario = scenario_of(sources, run.scenario)
    python = python_of(run.sampler, sources.environments)
    if python is None:
        raise ModuleNotFoundError(f"{run.sampler} needs the library {MODULES[run.sampler]}.")
    # -E: variables such as PYTHONPATH are about this environment, not about the other.
    command = [python, "-E", str(FOLDER / "serve.py"), str(FOLDER / f"with_{run.sampler}.py")]
    with ForeignSampler(
        command, scenario.parameters, seed=run.sampler_seed, trials=run.trials
    ) as sampler:
        record = asked_and_told(scenario, run, sampler.ask, sampler.tell, batch=batch)
    return {"library": sampler.versions, **record}


class ForeignSampler:
    """Ask and tell a searcher in another process; values are maximised.

    Args:
        command: Starts the process that serves; see `foreign/serve.py`.
        parameters: The search space, parents before children.
        seed: Seed of the searcher.
        trials: How long the study will be.
        transfer: What else a searcher takes: past studies; see `foreign/with_botl.py`.
    """

    def __init__(
        self,
        command: Sequence[str],
        parameters: Sequence[Parameter],
        *,
        seed: int,
        trials: int,
        transfer: Mapping[str, Any] | None = None,
    ) -> None:
        self._parameters = parameters
        self._log = TemporaryFile()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
        )
        space = [asdict(parameter) for parameter in parameters]
        request = {"parameters": space, "seed": seed, "trials": trials, **(transfer or {})}
        try:
            started = self._answer(request)
        except BaseException:
            self.close()
            raise
        self.versions: dict[str, str] = started["versions"]

    def ask(self, n: int) -> list[Configuration]:
        """Return the next configurations, without parameters that are inactive in them."""
        chosen = self._answer({"ask": n})["configurations"]
        return [active_part(self._parameters, configuration) for configuration in chosen]

    def tell(self, values: Sequence[float]) -> None:
        """Give the values of the last configurations."""
        self._answer({"tell": list(values)})

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
        self._log.close()

    def __enter__(self) -> ForeignSampler:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the process."""
        self.close()

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._process.wait()
            self._log.seek(0)
            end = self._log.read()[-SHOWN:].decode(errors="replace")
            raise RuntimeError(f"the rival's process ended ({self._process.returncode}): {end}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"the rival raised:\n{answer['error']}")
        return answer
