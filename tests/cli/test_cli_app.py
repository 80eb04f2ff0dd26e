"""What holds for all commands: help, versions, missing packages, errors, texts of strangers."""

import csv
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from readers import make_prior
from small_priors import task

from dre_plugins import __version__
from dre_plugins.space import Categorical, Float, SearchSpace
from dre_plugins.transfer.metadata import MetaDataset

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


# ---- what strangers have written into files is printed, and not obeyed by the terminal

ATTACKS = {
    "clipboard": "\x1b]52;c;Y3VybCBldmlsfHNo\x07",
    "clear the screen": "\x1b[2J\x1b[1;1H",
    "eight-bit": "\x9b2J\x9d0;title\x9c",
    "backwards": "evil\u202etxt.exe",
    "overwritten": "good\r\x08\x08evil",
    "half a character": "a\ud800b",
    "lines": "a\u2028b\x85c",
}


@pytest.fixture(params=ATTACKS)
def name(request: pytest.FixtureRequest) -> str:
    return f"n{ATTACKS[request.param]}m"


def assert_harmless(result: Any) -> None:
    shown = set(result.output) | set(result.stderr)
    assert all(character.isprintable() or character == "\n" for character in shown), shown


def space_of(name: str) -> SearchSpace:
    return SearchSpace({"x": Float(0.0, 1.0), name: Categorical(["a", f"b{name}"])})


def write_tasks(path: Path, name: str) -> None:
    tasks = [task(f"{name}{n}", n, space_of(name), 14) for n in range(2)]
    MetaDataset.of(tasks, source=name, licence=name, skipped={name: 3}).save(path)


def test_a_prior_of_a_stranger(dre, tmp_path, name):
    path = tmp_path / "p.safetensors"
    card = {**dict.fromkeys(("name", "description", "source", "licence"), name), "tasks": (name,)}
    make_prior(path, space=space_of(name), **card)
    shown = dre("priors", "show", path)
    assert_harmless(shown)
    assert "n" + ascii(name[1:-1])[1:-1] in shown.output.replace("\n", "")


def test_tasks_of_a_stranger(dre, tmp_path, name):
    path, output = tmp_path / "tasks.json", tmp_path / "p.safetensors"
    write_tasks(path, name)
    assert_harmless(dre("meta-train", path, "-o", output, "--steps", 2))


def test_a_table_of_a_stranger(dre, tmp_path, name):
    if "\ud800" in name:
        pytest.skip("no text file can hold it")
    path, output = tmp_path / "runs.csv", tmp_path / "tasks.json"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["data", "x", "y"])
        writer.writerows([[name, n / 7, n] for n in range(5)])
    assert_harmless(dre("import", "csv", path, "--value", "y", "--task", "data", "-o", output))
    assert_harmless(dre("import", "csv", path, "--value", "z", "-o", output, code=1))


def test_the_question_whether_to_forget_studies_of_a_stranger(dre, tmp_path, name):
    testing = pytest.importorskip("typer.testing")
    from dre_plugins.cli.app import app

    write_tasks(tmp_path / "tasks.json", name)
    dre("memory", "import", tmp_path / "tasks.json", "--memory", tmp_path)
    command = ["memory", "forget", f"{name}0", "--memory", str(tmp_path)]
    assert_harmless(testing.CliRunner().invoke(app, command, input="n\n"))


def test_what_an_encoding_lacks_is_escaped(tmp_path):
    from dre_plugins.cli.console import SafeConsole

    with (tmp_path / "out").open("w", encoding="cp1252") as file:
        SafeConsole(file=file).print("\u7814 …")
        assert SafeConsole(file=file).escaped("\u7814 …") == "\\u7814 …"  # asked, not printed
    assert (tmp_path / "out").read_text(encoding="cp1252") == "\\u7814 …\n"


@given(st.text())
def test_any_text_is_printed_as_it_is_or_escaped(text):
    pytest.importorskip("rich")
    from dre_plugins.cli.console import printable

    shown = printable(text)
    assert all(
        character.isprintable() or character in "\n\t" or character in text for character in shown
    )
    assert not set(shown) & set("\x1b\x07\x08\r\x7f\x9b\x9d\u2028\u202e\u2066\ud800")
    assert printable(shown) == shown
    if text.isprintable():
        assert shown == text
