"""What holds for all commands: help, versions, missing packages, errors."""

import subprocess
import sys
from pathlib import Path

import pytest

from dre_plugins import __version__

COMMANDS = [
    ("import", "optuna"),
    ("import", "csv"),
    ("import", "ray"),
    ("import", "syne-tune"),
    ("meta-train",),
    ("priors", "list"),
    ("priors", "show"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_has_an_example(dre, command):
    text = dre(*command, "--help").output
    assert "Example" in text and f"dre {' '.join(command)}" in text


def test_the_program_names_all_commands(dre):
    text = dre("--help").output
    assert all(command[0] in text for command in COMMANDS)
    assert dre("--version").output == f"dre-plugins {__version__}\n"


@pytest.mark.parametrize(
    "arguments", [["nothing"], ["meta-train"], ["import", "csv", "x.csv"], ["priors", "-x"]]
)
def test_wrong_usage_is_code_2(dre, arguments):
    dre(*arguments, code=2)


def test_debug_shows_the_traceback(dre):
    with pytest.raises(AssertionError):  # the exception itself comes through
        dre("--debug", "priors", "show", "nothing")


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )


OPTIONS_OF_RAY = ["--metric", "a", "--mode", "min"]


@pytest.mark.parametrize(
    ("arguments", "missing", "extra"),
    [
        (["import", "optuna", "sqlite:///x.db"], "optuna", "optuna"),
        (["import", "ray", ".", *OPTIONS_OF_RAY], "ray", "ray"),
        (["import", "syne-tune", "."], "syne_tune", "syne-tune"),
    ],
)
def test_a_missing_framework_is_named(arguments, missing, extra):
    arguments = [*arguments, "-o", "t.json"]
    done = run(
        f"import sys; sys.modules[{missing!r}] = None; sys.argv[1:] = {arguments!r}\n"
        "from dre_plugins.cli import main; main()"
    )
    assert done.returncode == 1
    assert done.stderr.startswith("dre: DRES") and done.stderr.count("\n") == 1
    assert done.stderr.endswith(f"pip install 'dre-plugins[{extra}]'\n")


def test_the_module_is_the_program_and_its_help_loads_no_torch(tmp_path: Path):
    code = (
        "import runpy, sys; sys.argv[1:] = ['--help']\n"
        "try: runpy.run_module('dre_plugins.cli', run_name='__main__')\n"
        "finally: print('torch' in sys.modules)"
    )
    done = run(code)
    assert done.returncode == 0 and "Usage: dre " in done.stdout
    assert done.stdout.splitlines()[-1] == "False"
    closed = run(code.replace("['--help']", "['priors', 'list']; sys.stdout = None"))
    assert (closed.returncode, closed.stderr) == (0, "")
