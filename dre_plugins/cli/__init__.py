"""The command line: `dre --help`."""


def main() -> None:
    """Run the command line."""
    from dre_plugins.cli.app import app  # so that importing this needs neither rich nor typer

    app(prog_name="dre")
