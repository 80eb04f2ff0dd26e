"""What holds for all tests of the benchmarks."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest
from command_lines import Run, running

from dre_bench.cli import app
from dre_plugins.engine.runtime import isolated


@pytest.fixture(autouse=True)
def _restored_loggers() -> Iterator[None]:
    """Keep frameworks quiet, and let later tests hear what the tuners silence."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(level)
    for name in ("ray", "syne_tune"):
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.fixture(scope="session")
def bench() -> Run:
    """Run `dre-bench` with arguments; any other exit code fails the test."""
    return running(app, "dre-bench")


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Compute with one thread: tasks are small, and training is reproducible with no more."""
    with isolated():
        yield


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Return the file that a list of records was written to."""

    def write(records: list[dict[str, Any]], name: str = "runs.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("\n".join(map(json.dumps, records)))
        return path

    return write
