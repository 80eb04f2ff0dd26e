"""Rivals in a process of their own: a fake one, and each real one where it is installed.

`DRE_BENCH_ENVIRONMENTS` names the folder of their environments.
"""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path

import hill
import numpy as np
import pytest
from marks import LONG

from dre_bench import runs
from dre_bench.problems import catalogue, foreign
from dre_bench.problems.foreign import ForeignSampler
from dre_bench.runs import Run, Sources

FAKE = '''
import os
import numpy as np

DISTRIBUTIONS = ("pytest",)


class Searcher:
    """Suggest what it was told last; y always, though only kind b has it."""

    def __init__(self, parameters, seed, trials):
        assert [each["name"] for each in parameters] == ["x", "kind", "y"]
        self.x, self.seed, self.trials, self.n = 0.5, seed, trials, 0

    def ask(self, n):
        print("a line that is no answer")
        self.n += n
        kinds = "ab"[self.n % 2], *"b" * (n - 1)
        return [{"y": 0.1, "kind": kind, "x": np.float64(self.x)} for kind in kinds]

    def tell(self, values):
        value = values[-1]
        if value < 0.0:
            raise ArithmeticError(f"seed {self.seed}, trials {self.trials}")
        if value > 1.0:
            os.write(2, b"out of memory")
            os._exit(3)
        self.x = value
'''
ENVIRONMENTS = os.environ.get("DRE_BENCH_ENVIRONMENTS")
SOURCES = Sources(environments=ENVIRONMENTS and Path(ENVIRONMENTS))


@pytest.fixture
def sampler(tmp_path):
    path = tmp_path / "with_fake.py"
    path.write_text(FAKE)
    command = [sys.executable, str(foreign.FOLDER / "serve.py"), str(path)]
    with ForeignSampler(command, hill.Hill.parameters, seed=7, trials=20) as sampler:
        yield sampler


def test_a_searcher_is_asked_and_told_and_inactive_parameters_are_left_out(sampler):
    assert sampler.versions == {"pytest": pytest.__version__}
    assert sampler.ask(1) == [{"x": 0.5, "kind": "b", "y": 0.1}]
    sampler.tell([0.1 + 0.2])
    assert sampler.ask(1) == [{"x": 0.1 + 0.2, "kind": "a"}]
    sampler.tell([0.5])
    assert sampler.ask(2) == [{"x": 0.5, "kind": "a"}, {"x": 0.5, "kind": "b", "y": 0.1}]


def test_what_a_searcher_raises_is_raised_here(sampler):
    sampler.ask(1)
    with pytest.raises(RuntimeError, match="ArithmeticError: seed 7, trials 20"):
        sampler.tell([-1.0])


def test_a_process_that_dies_says_why(sampler):
    with pytest.raises(RuntimeError, match=r"ended \(3\).*out of memory"):
        sampler.tell([2.0])
    with pytest.raises(RuntimeError, match="ended"):
        sampler.ask(1)


@pytest.fixture
def nothing_installed(monkeypatch):
    for module in (catalogue, foreign):
        monkeypatch.setattr(module, "find_spec", lambda name: None)


@pytest.mark.usefixtures("nothing_installed")
def test_an_environment_stands_for_a_library_that_is_not_here(tmp_path):
    planned = [Run(name, hill.NAME, 0, 0, 5) for name in ("ax", "hebo")]
    (tmp_path / "ax" / "bin").mkdir(parents=True)
    (tmp_path / "ax" / "bin" / "python").touch()
    missing = {("maximise", "hebo"): "--no-deps hebo"}
    assert catalogue.missing_libraries(planned, tmp_path) == missing
    assert catalogue.missing_libraries(planned) == {**missing, ("maximise", "ax"): "ax-platform"}


@pytest.mark.usefixtures("nothing_installed")
def test_a_rival_that_is_not_installed_is_skipped_with_a_line(bench, tmp_path):
    arguments = ("--scenarios", "mixed", "--samplers", "random,smac", "--trials", "3")
    output = bench("run", *arguments, "--seeds", "1", "-o", tmp_path / "runs.jsonl").stdout
    assert "Skipped smac of maximise: pip install smac" in output
    assert "1 runs to do" in output


@pytest.mark.slow
@pytest.mark.parametrize("problem", [pytest.param(runs.MAXIMISE, marks=LONG), catalogue.BATCHES])
@pytest.mark.parametrize("name", foreign.MODULES)
def test_a_rival_searches_the_conditional_space(name, problem):
    if foreign.python_of(name, SOURCES.environments) is None:
        pytest.skip(f"{name} is installed neither here nor in DRE_BENCH_ENVIRONMENTS")
    run = Run(name, hill.NAME, 3, 0, 12, problem)
    record, again = (runs.perform(catalogue.study, SOURCES, run) for _ in range(2))
    assert "error" not in record, record["error"]
    assert len(record["values"]) == len(record["ask_seconds"]) == 12 and record["library"]
    assert all(("y" in each) == (each["kind"] == "b") for each in record["configurations"])
    # Models of HEBO and SMAC are not the same again, with the same seed; their designs are.
    assert record["values"][:8] == again["values"][:8]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "searcher", "arguments"),
    [
        ("ax", "botl", {}),
        ("cqr", "cqr", {"method": "box"}),
        pytest.param("cqr", "cqr", {"method": "quantile"}, marks=LONG),
    ],
)
def test_a_rival_learns_from_a_past_study(name, searcher, arguments):
    """The past study is of the same function: what follows is better than most of it."""
    python = foreign.python_of(name, SOURCES.environments)
    if python is None:
        pytest.skip(f"{name} is installed neither here nor in DRE_BENCH_ENVIRONMENTS")
    scenario = hill.Hill()
    tried = scenario.random_configurations(30, np.random.default_rng(0))
    study = {
        "parameters": [asdict(parameter) for parameter in hill.Hill.parameters],
        "configurations": [{"y": 0.5, **configuration} for configuration in tried],
        "values": scenario.evaluate_many(0, tried)[scenario.metric].tolist(),
        "names": {},
    }
    path = foreign.FOLDER / f"with_{searcher}.py"
    command = [python, "-E", str(foreign.FOLDER / "serve.py"), str(path)]
    with ForeignSampler(
        command, hill.Hill.parameters, seed=7, trials=6, transfer={**arguments, "past": [study]}
    ) as sampler:
        found = []
        for _ in range(6):
            found.append(scenario.value(0, sampler.ask(1)[0]))
            sampler.tell(found[-1:])
    assert max(found[1:]) > np.quantile(study["values"], 0.8)
