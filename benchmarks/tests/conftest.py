"""What holds for all tests of the benchmarks."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest
from typer.testing import CliRunner

from dre_bench.cli import app


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
def bench() -> Callable[..., Any]:
    """Run `dre-bench` with arguments; any other exit code fails the test."""

    def run(*arguments: object, code: int = 0) -> Any:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == code, result.output
        if code == 1:  # one line that says what is wrong
            assert result.stderr.splitlines()[-1].startswith("dre-bench: ")
            assert "Traceback" not in result.output
        return result

    return run


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Return the file that a list of records was written to."""

    def write(records: list[dict[str, Any]], name: str = "runs.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("\n".join(map(json.dumps, records)))
        return path

    return write
