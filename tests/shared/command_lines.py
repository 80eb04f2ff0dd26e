"""Programs of the command line, run in this process."""

from collections.abc import Callable
from typing import Any

Run = Callable[..., Any]


def running(app: Any, name: str) -> Run:
    """Return what runs a program with arguments; any other exit code fails the test."""
    from typer.testing import CliRunner

    def run(*arguments: object, code: int = 0) -> Any:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == code, result.output
        if code == 1:  # one line that says what is wrong
            assert result.stderr.splitlines()[-1].startswith(f"{name}: ")
            assert "Traceback" not in result.output
        return result

    return run
