"""``import dre_plugins`` is cheap and needs no framework; each test in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

import dre_plugins

LIMIT_SECONDS = 0.3

# Makes the imports of a package and of all that is in it fail, as if it were not installed.
BLOCK = """
import importlib.abc, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""
FRAMEWORKS = {"optuna", "ray", "syne_tune"}
PUBLIC = sorted(set(dre_plugins.__all__) - {"__version__"})


def run(code: str, *, missing: set[str] | None = None) -> str:
    """Run code in a fresh interpreter in which the named packages are missing."""
    prelude = BLOCK.format(names=missing) if missing else ""
    done = subprocess.run(
        [sys.executable, "-c", prelude + code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def seconds(code: str) -> float:
    """Best of five runs: other processes can only make an interpreter slower."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        run(code)
        times.append(time.perf_counter() - start)
    return min(times)


def test_import_loads_nothing_heavy():
    heavy = {"torch", "numpy", "scipy", "safetensors", *FRAMEWORKS}
    loaded = run(f"import sys, dre_plugins; print(sorted({heavy} & set(sys.modules)))")
    assert loaded == "[]"


def test_import_is_fast():
    assert seconds("import dre_plugins") - seconds("pass") < LIMIT_SECONDS


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_is_what_it_says(name):
    assert run(f"import dre_plugins; print(dre_plugins.{name}.__name__)") == name


def test_star_import():
    names = run("from dre_plugins import *; print(sorted(n for n in dir() if n[0] != '_'))")
    assert names == str(PUBLIC)


def test_dir_lists_public_names():
    assert set(dre_plugins.__all__) <= set(dir(dre_plugins))


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        dre_plugins.Nothing  # noqa: B018


def test_core_needs_no_framework():
    names = "AskTell, Recommender, SearchSpace, DeepRankingEnsemble"
    run(f"from dre_plugins import {names}", missing=FRAMEWORKS)


ADAPTERS = [
    ("optuna", "dre_plugins.adapters.optuna", "DRESampler", "optuna"),
    ("ray", "dre_plugins.adapters.ray_tune", "DRESearch", "ray"),
    ("syne_tune", "dre_plugins.adapters.syne_tune", "DRE", "syne-tune"),
]
# What a study does before a model is asked for the first time.
BEGINNINGS = {
    "DRESampler": "import optuna; optuna.create_study(sampler=DRESampler()).optimize("
    "lambda trial: trial.suggest_float('x', 0, 1), n_trials=3)",
    "DRESearch": "DRESearch()",
    "DRE": "from syne_tune.config_space import uniform; "
    "from dre_plugins.adapters.syne_tune import ASHADRE; "
    "DRE({'x': uniform(0, 1)}, 'loss').suggest(); "
    "ASHADRE({'x': uniform(0, 1)}, 'loss', 'epoch', 9).suggest()",
}


@pytest.mark.parametrize(("framework", "home", "name", "extra"), ADAPTERS)
@pytest.mark.parametrize("is_direct", [True, False])
def test_a_missing_framework_says_what_to_install(framework, home, name, extra, is_direct):
    origin = home if is_direct else "dre_plugins"
    message = run(
        f"try:\n    from {origin} import {name}\nexcept ImportError as error:\n    print(error)",
        missing={framework},
    )
    assert f"pip install 'dre-plugins[{extra}]'" in message


@pytest.mark.parametrize(("framework", "home", "name", "extra"), ADAPTERS)
def test_an_adapter_needs_no_other_framework_and_no_torch(framework, home, name, extra):
    code = f"import sys; from {home} import {name}; {BEGINNINGS[name]}"
    show = "print(sorted({'torch', 'xgboost'} & set(sys.modules)))"
    assert run(f"{code}; {show}", missing=FRAMEWORKS - {framework}) == "[]"
