"""The command line: `dre --help`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say what to install for it."""
    try:
        from dre_plugins.cli.app import app
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package not in ("rich", "typer"):
            raise
        sys.exit(f"dre needs {package}: pip install 'dre-plugins[cli]'")
    app(prog_name="dre")
