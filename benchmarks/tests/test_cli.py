"""`dre-bench`: run, interrupt, resume, report."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("optuna")
pytest.importorskip("typer")

from dre_bench.runs import read_records
from dre_plugins.transfer.metadata import MetaDataset

SMALL = ("--scenarios", "branches,mixed", "--samplers", "random,tpe", "--trials", "4")


def rows(path: Path) -> dict[tuple[Any, ...], Any]:
    """Return what each run came to, apart from its time."""
    records = read_records(path)
    keys = [(r["sampler"], r["scenario"], r["task"], r["seed"]) for r in records]
    assert len(set(keys)) == len(keys)  # nothing is counted twice
    return {
        key: (r["configurations"], r["values"], r["reference"])
        for key, r in zip(keys, records, strict=True)
    }


def test_suites_are_listed(bench) -> None:
    output = bench("suites").stdout
    assert "quick" in output and "--data" in output and "ablation-losses" in output


@pytest.mark.slow
@pytest.mark.long
def test_what_is_there_is_not_run_again(bench, tmp_path) -> None:
    out = tmp_path / "runs.jsonl"
    assert "8 runs to do" in bench("run", *SMALL, "-o", out).stdout
    whole = rows(out)
    configurations, values, _ = whole["tpe", "branches", 0, 1]
    assert len(configurations) == len(values) == 4 and "branch" in configurations[0]
    # As a kill leaves it: a line that was cut off.
    lines = out.read_text().splitlines(keepends=True)
    out.write_text("".join(lines[:5]) + lines[5][:40])
    with pytest.warns(UserWarning, match="damaged line"):
        assert "3 runs to do, 5 done" in bench("run", *SMALL, "-o", out).stdout
    with pytest.warns(UserWarning, match="damaged line"):
        assert rows(out) == whole
    with pytest.warns(UserWarning, match="damaged line"):
        assert "0 runs to do" in bench("run", *SMALL, "-o", out).stdout


@pytest.mark.parametrize(
    "content", ["[" * 100_000, '{"a":' * 100_000, "[]", "1", "\udce9", "9" * 9_000]
)
def test_lines_that_are_no_records_are_left_out(bench, tmp_path, content) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(3 * f"{content}\n", errors="surrogateescape")
    with pytest.warns(UserWarning, match=r"damaged lines \(3\)") as warned:
        assert read_records(path) == []
    with pytest.warns(UserWarning, match="damaged line"):
        result = bench("report", path, code=1)
    assert "no (scenario, task, seed)" in result.stderr
    assert f"there are no runs in {path}" in result.stderr and len(warned) == 1


def test_one_crash_fails_that_run_only(bench, tmp_path) -> None:
    out = tmp_path / "runs.jsonl"
    samplers = "random,optuna.samplers.NoSuchSampler"
    arguments = ("--scenarios", "mixed", "--samplers", samplers, "--trials", "3", "--seeds", "1")
    result = bench("run", *arguments, "-o", out, code=1)
    assert "1 runs failed" in result.stderr
    assert "FAILED, ValueError: sampler 'optuna.samplers.NoSuchSampler' cannot" in result.stdout
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert sorted("error" in record for record in records) == [False, True]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--suite", "no"), "known: quick"),
        (("--suite", "transfer"), "--data"),
        (("--scenarios", "unheard"), "unknown scenario"),
        (("--scenarios", "mixed", "--samplers", "tpe,unheard:n=1"), "known: random, tpe"),
        (("--jobs", "0"), "--jobs"),
        (("--trials", "0"), "--trials"),
        (("-o", "no/such/folder/runs.jsonl"), "make the folder"),
    ],
)
def test_bad_input_is_one_line(bench, tmp_path, monkeypatch, arguments, message) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in bench("run", *arguments, code=1).stderr
    assert not [*tmp_path.iterdir()]  # nothing was run


@pytest.mark.slow
def test_a_report_is_text_and_a_page(bench, tmp_path) -> None:
    out, page = tmp_path / "runs.jsonl", tmp_path / "report.html"
    bench("run", *SMALL, "-o", out)
    result = bench("report", out, "--html", page, "--against", "tpe", "--checkpoints", "2,4")
    assert "| tpe |" in result.stdout and str(page.name) in result.stdout
    content = page.read_text()
    assert content.startswith("<!DOCTYPE html>")
    assert content.count("<img") == 2 and "http" not in content  # regret and rank
    assert "--against tpe" in content  # the command that made it


def test_calibration_is_measured(bench) -> None:
    output = bench("calibration", "--scenarios", "mixed", "--trials", "10", "--tasks", "1")
    last = next(line for line in output.stdout.splitlines() if " all " in line)
    assert 0.1 < float(last.split()[-2]) < 10.0
    assert "--split" in bench("calibration", "--split", "x", code=1).stderr
    assert "--trials" in bench("calibration", "--trials", "", code=1).stderr


@pytest.mark.filterwarnings("ignore")  # as an error, one of BoTorch's ends its fit
def test_speed_is_measured(bench) -> None:
    samplers = "dre,dre with a prior,tpe,gp"
    if find_spec("syne_tune") is not None and find_spec("botorch") is not None:
        samplers += ",syne-tune-botorch"
    options = ("--trials", "12", "--dimensions", "2", "--repeats", "1", "--samplers", samplers)
    output = bench("speed", *options).stdout
    rows = [line.split() for line in output.splitlines() if "12" in line]
    assert len(rows) == len(samplers.split(",")) and all(float(row[-2]) > 0.0 for row in rows), (
        output
    )
    assert "--trials must be numbers" in bench("speed", "--trials", "x", code=1).stderr


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore:.*damaged line")
def test_a_killed_run_is_resumed(bench, tmp_path) -> None:
    whole, killed = tmp_path / "whole.jsonl", tmp_path / "killed.jsonl"
    # Some seconds, so that the kill comes before the end on a quick machine, too.
    arguments = ("--scenarios", "mixed", "--samplers", "tpe", "--trials", "150", "--seeds", "4")
    bench("run", *arguments, "-o", whole)
    command = [sys.executable, "-m", "dre_bench.cli", "run", *arguments, "-o", killed]
    process = subprocess.Popen([*map(str, command)], start_new_session=True)
    while not killed.exists() or killed.read_text().count("\n") < 2:
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    n_runs = whole.read_text().count("\n")
    assert killed.read_text().count("\n") < n_runs
    bench("run", *arguments, "-o", killed)
    assert rows(killed) == rows(whole)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(300)
def test_an_interruption_does_not_wait_for_what_has_not_begun(tmp_path) -> None:
    out = tmp_path / "runs.jsonl"
    long = ("--scenarios", "mixed", "--samplers", "tpe", "--trials", "150", "--seeds", "200")
    command = [sys.executable, "-m", "dre_bench.cli", "run", *long, "-o", str(out)]
    # As in a terminal: a shell's background jobs, CI's for one, are born deaf to SIGINT.
    hear = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(command, start_new_session=True, preexec_fn=hear)
    try:
        while not out.exists() or out.read_text().count("\n") < 2:
            assert process.poll() is None
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(timeout=60) != 0
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert out.read_text().count("\n") < 20


def processes_of_group(group: int) -> list[str]:
    """Return the commands of a process group's live processes; Linux only."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().rpartition(") ")
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        state, _, its_group, *_ = rest.split()
        if int(its_group) == group and state not in "ZX":
            found.append(name)
    return found


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_workers_end_with_the_process_that_started_them(tmp_path) -> None:
    out = tmp_path / "runs.jsonl"
    long = ("--scenarios", "mixed", "--samplers", "tpe", "--trials", "150", "--seeds", "200")
    command = [sys.executable, "-m", "dre_bench.cli", "run", *long, "-o", str(out)]
    process = subprocess.Popen(command, start_new_session=True)
    try:
        while not out.exists() or out.read_text().count("\n") < 1:
            assert process.poll() is None
            time.sleep(0.05)
        assert len(processes_of_group(process.pid)) >= 2
        process.kill()
        process.wait()
        for _ in range(200):
            if not processes_of_group(process.pid):
                break
            time.sleep(0.05)
        assert processes_of_group(process.pid) == []
    finally:
        if processes_of_group(process.pid):
            os.killpg(process.pid, signal.SIGKILL)


def test_tables_of_hpob_become_past_tasks(bench, tmp_path) -> None:
    tables = {
        str(n): {"X": [[x / 9] * n for x in range(9)], "y": [[x] for x in range(9)]}
        for n in (2, 3)
    }
    tree = {"5970": {"1": tables["2"], "2": tables["2"]}, "5859": {"1": tables["3"]}}
    (tmp_path / "meta-train-dataset.json").write_text(json.dumps(tree))
    out = tmp_path / "tasks"
    assert "2 tasks, 18 evaluations" in bench("import-hpob", tmp_path, "-o", out).output
    assert sorted(path.name for path in out.iterdir()) == ["5859.npz", "5970.npz"]
    assert [task.name for task in MetaDataset.load(out / "5970.npz")] == ["1", "2"]
    for options, part in ((["--space", "7"], "'7'"), (["--split", "test"], "meta-test-dataset")):
        assert part in bench("import-hpob", tmp_path, *options, "-o", out, code=1).stderr
