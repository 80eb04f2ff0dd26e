"""``import dre_plugins`` is cheap and needs no framework; each test in a fresh interpreter."""

import subprocess
import sys

import pytest

import dre_plugins

LIMIT_SECONDS = 0.3
PUBLIC = sorted(set(dre_plugins.__all__) - {"__version__"})
FRAMEWORKS = {"optuna", "ray", "syne_tune"}

# Makes the imports of a package and of all that is in it fail, as if it were not installed, and
# writes down which were tried. `anew` forgets our own modules, as in another interpreter.
PRELUDE = """
import importlib.abc, sys

tried = set()

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        package = name.partition(".")[0]
        if package in {names}:
            tried.add(package)
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

def anew():
    for name in [name for name in sys.modules if name.partition(".")[0] == "dre_plugins"]:
        del sys.modules[name]

sys.meta_path.insert(0, Missing())
"""


def run(code: str, *, missing: set[str] = frozenset()) -> str:
    """Run code in a fresh interpreter in which the named packages are missing."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE.format(names=set(missing) or "()") + code],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def seconds(code: str) -> float:
    """Best of five runs, in processor time: other processes can only make code slower."""
    timed = f"import time\nstart = time.process_time()\n{code}\nprint(time.process_time() - start)"
    return min(float(run(timed)) for _ in range(5))


def test_import_loads_nothing_heavy():
    heavy = {"torch", "numpy", "scipy", "safetensors", *FRAMEWORKS}
    loaded = run(f"import dre_plugins; print(sorted({heavy} & set(sys.modules)))")
    assert loaded == "[]"


def test_import_is_fast():
    assert seconds("import dre_plugins") < LIMIT_SECONDS


@pytest.mark.slow
def test_every_public_name_is_what_it_says_whichever_is_asked_for_first():
    each = f"for name in {PUBLIC}:\n    anew()\n    import dre_plugins\n"
    each += "    print(getattr(dre_plugins, name).__name__)\n"
    star = "anew()\nstar = {}\nexec('from dre_plugins import *', star)\n"
    found = run(f"{each}{star}print(sorted(name for name in star if name[0] != '_'))")
    assert found.splitlines() == [*PUBLIC, str(PUBLIC)]


def test_dir_lists_public_names():
    assert set(dre_plugins.__all__) <= set(dir(dre_plugins))


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        dre_plugins.Nothing  # noqa: B018


def test_the_core_needs_no_framework():
    names = ["AskTell", "Recommender", "SearchSpace", "DeepRankingEnsemble"]
    run("\n".join(f"anew()\nfrom dre_plugins import {name}" for name in names), missing=FRAMEWORKS)


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
def test_a_missing_framework_says_what_to_install(framework, home, name, extra):
    tries = [
        f"anew()\ntry:\n    from {origin} import {name}\nexcept ImportError as error:\n"
        "    print(error)"
        for origin in (home, "dre_plugins")
    ]
    messages = run("\n".join(tries), missing={framework}).splitlines()
    assert len(messages) == 2
    assert all(f"pip install 'dre-plugins[{extra}]'" in message for message in messages)


@pytest.mark.slow
@pytest.mark.parametrize(("framework", "home", "name", "extra"), ADAPTERS)
def test_an_adapter_asks_for_no_other_framework_and_not_for_torch(framework, home, name, extra):
    code = f"from {home} import {name}; {BEGINNINGS[name]}; print(sorted(tried))"
    assert run(code, missing={"torch", "xgboost", *FRAMEWORKS} - {framework}) == "[]"
