"""The command line: `dre --help`."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    from dre_plugins.cli.app import app  # so that importing this needs neither rich nor typer

    app(prog_name="dre")
