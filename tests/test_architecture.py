"""The import rules of docs/architecture.md, read from the source of every module."""

import ast
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from import_circles import circle_in

PACKAGE = Path(__file__).parent.parent / "dre_plugins"

FRAMEWORKS = {"optuna", "ray", "syne_tune"}
NUMERICS = {"numpy", "scipy", "torch", "safetensors"}

# What the modules of a room may import: third-party packages, and rooms of ours beside their own.
ALLOWED: dict[str, tuple[set[str], set[str]]] = {
    "engine": ({"numpy", "torch", "safetensors", "threadpoolctl"}, set()),
    "space": ({"numpy", "scipy"}, set()),
    "universal": ({"numpy", "torch", "safetensors"}, {"engine"}),
    "recommend": (NUMERICS, {"engine", "space", "universal"}),
    "transfer": (NUMERICS | {"rich"}, {"engine", "space", "universal", "recommend"}),
    "memory": ({"numpy", "platformdirs"}, {"space", "recommend", "transfer"}),
    "study": ({"numpy"}, {"engine", "space", "universal", "recommend", "transfer", "memory"}),
    "adapters": (
        NUMERICS | FRAMEWORKS | {"pandas"},
        {"space", "recommend", "transfer", "memory", "study"},
    ),
    "plots": (
        {"numpy", "scipy", "matplotlib"},
        {"engine", "space", "recommend", "transfer", "study", "adapters"},
    ),
    "cli": (
        NUMERICS | FRAMEWORKS | {"matplotlib", "rich", "typer"},
        {"engine", "space", "recommend", "transfer", "memory", "study", "adapters"},
    ),
}
# Files at the top of the package, which every room may import.
TOP = {"_version", "checks", "files"}

# Where private framework API may be used, once each, and what for: Optuna has no public way to
# show the parameters of a running trial to other processes but its storage.
PRIVATE_USE = {
    ("adapters/optuna/attributes.py", "_storage"),
    ("adapters/optuna/attributes.py", "_trial_id"),
}

# Where a pickle is read, and why: the state of a searcher holds a parameter space, whose choices
# may be any Python objects; Ray's own state beside it is one as well, and so is a tuner of Syne
# Tune. Never weights or metadata.
UNPICKLING = {f"adapters/{p}.py" for p in ("ray_tune/state", "ray_tune/stored", "syne_tune/state")}

MODULES = sorted(PACKAGE.rglob("*.py"))
ROOM_MODULES = [path for path in MODULES if path.parent != PACKAGE]


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def each_of(paths: list[Path]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """Run a test for each file and name the one that breaks a rule."""

    def decorate(check: Callable[[Path], None]) -> Callable[[], None]:
        def test() -> None:
            for path in paths:
                try:
                    check(path)
                except AssertionError as error:
                    raise AssertionError(f"{name_of(path)}: {error}") from error

        return test

    return decorate


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Dotted names that a module imports, and whether at run time (not for type checkers)."""
    tree = parsed(path)
    typing_only = {
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test).endswith("TYPE_CHECKING")
        for statement in block.body
        for node in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            yield name, node not in typing_only


def attributes(path: Path) -> Iterator[ast.Attribute]:
    yield from (n for n in ast.walk(parsed(path)) if isinstance(n, ast.Attribute))


@each_of(ROOM_MODULES)
def test_imports_point_down(path):
    room = path.relative_to(PACKAGE).parts[0]
    packages, rooms = ALLOWED[room]
    allowed_inside = rooms | {room} | TOP
    for name, _ in imports(path):
        package, *rest = name.split(".")
        if package == "dre_plugins":
            # ``from dre_plugins import X`` hides which room X is from; `__version__` has none.
            assert rest in ([], ["__version__"]) or rest[0] in allowed_inside, (
                f"{room} must not import {name}"
            )
        else:
            assert package in packages | sys.stdlib_module_names, f"{room} must not import {name}"


def test_no_imports_form_a_circle():
    assert circle_in(PACKAGE) == []


# Packages and modules of `adapters` that name a framework, and the one that each may name.
FRAMEWORK_OF = {"optuna": "optuna", "ray_tune": "ray", "syne_tune": "syne_tune"}


@each_of(MODULES)
def test_a_framework_is_named_in_its_own_adapter_only(path):
    named = {name.split(".")[0] for name, _ in imports(path)} & FRAMEWORKS
    room, *places = path.relative_to(PACKAGE).parts
    if room == "adapters":
        assert named <= {FRAMEWORK_OF.get(places[0])}
    else:
        assert not named


@each_of(sorted((PACKAGE / "adapters").rglob("*.py")))
def test_an_adapter_imports_no_other_adapter(path):
    """What several of them need is in `adapters/common`, which imports none of them."""
    place = path.relative_to(PACKAGE / "adapters").parts[0]
    for name, _ in imports(path):
        if name.startswith("dre_plugins.adapters."):
            assert name.split(".")[2] in {place, "common"}, f"{name_of(path)} imports {name}"


def test_nothing_imports_the_benchmarks():
    """They depend on the package, never the other way round; nor do its tests need them."""
    for path in [*MODULES, *Path(__file__).parent.rglob("*.py")]:
        named = {name.split(".")[0] for name, _ in imports(path)}
        assert "dre_bench" not in named, path


@each_of(MODULES)
def test_no_private_framework_imports(path):
    for name, _ in imports(path):
        package, *rest = name.split(".")
        if package in FRAMEWORKS:
            assert not any(part.startswith("_") and not part.endswith("__") for part in rest), name


@each_of(MODULES)
def test_no_private_attributes_of_others(path):
    """``self._x`` and ``cls._x`` are one's own; ``study._storage`` is not."""
    for attribute in attributes(path):
        private = attribute.attr.startswith("_") and not attribute.attr.endswith("__")
        of_itself = isinstance(attribute.value, ast.Name) and attribute.value.id in {"self", "cls"}
        nested = ast.unparse(attribute.value).startswith(("self._", "cls._"))
        if private and not of_itself and not nested:
            assert (name_of(path), attribute.attr) in PRIVATE_USE, (
                f"{name_of(path)}:{attribute.lineno} uses {ast.unparse(attribute)}"
            )


@each_of(sorted((PACKAGE / "study").glob("*.py")))
def test_a_study_loads_a_memory_and_trained_priors_only_where_it_has_them(path):
    """The import is within a function, not at the top of the module."""
    named = {node.module for node in parsed(path).body if isinstance(node, ast.ImportFrom)}
    rooms = {module.split(".")[1] for module in named if module.startswith("dre_plugins.")}
    assert not rooms & {"memory", "transfer"}


@pytest.mark.parametrize(("file", "name"), sorted(PRIVATE_USE))
def test_a_permitted_private_use_is_in_one_place(file, name):
    uses = [node.lineno for node in attributes(PACKAGE / file) if node.attr == name]
    assert len(uses) <= 1, f"{file} uses {name} in lines {uses}"


@each_of(MODULES)
def test_global_state_is_not_set(path):
    """Threads are the exception: engine/runtime.py restores them."""
    setters = {
        "random.seed",
        "np.random.seed",
        "torch.manual_seed",
        "torch.set_default_device",
        "torch.set_default_dtype",
    }
    if name_of(path) != "engine/runtime.py":
        setters.add("torch.set_num_threads")
    assert not {ast.unparse(node) for node in attributes(path)} & setters


@each_of(MODULES)
def test_nothing_is_unpickled(path):
    """A file of weights must not be able to run code."""
    parts = {part for name, _ in imports(path) for part in name.split(".")}
    assert not parts & {"pickle", "cloudpickle", "dill"} or name_of(path) in UNPICKLING
    assert not [node for node in attributes(path) if ast.unparse(node) == "torch.load"]


def test_space_and_package_top_load_no_torch():
    rooms = [PACKAGE, PACKAGE / "space", PACKAGE / "memory"]
    for path in [path for room in rooms for path in room.glob("*.py")]:
        loaded = {name.split(".")[0] for name, at_run_time in imports(path) if at_run_time}
        assert "torch" not in loaded, name_of(path)
