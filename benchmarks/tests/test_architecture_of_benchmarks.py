"""The import rules of the benchmarks, read from the source of every module."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from import_circles import circle_in

PACKAGE = Path(__file__).parents[1] / "dre_bench"
RIVALS = {"numpy", "scipy", "torch", "botorch", "gpytorch", "sklearn"}
ALLOWED = RIVALS | {
    *("dre_bench", "dre_plugins", "optuna", "ray", "syne_tune"),
    *(
        "filelock",
        "jinja2",
        "markupsafe",
        "matplotlib",
        "onnxruntime",
        "pandas",
        "rich",
        "safetensors",
    ),
    *("statsmodels", "typer"),
}
MODULES = sorted(PACKAGE.rglob("*.py"))


def imported(path: Path) -> set[str]:
    nodes = [*ast.walk(ast.parse(path.read_text()))]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return names | {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}


def test_imports() -> None:
    for path in MODULES:
        names = imported(path)
        packages = {name.split(".")[0] for name in names} - sys.stdlib_module_names
        room = path.relative_to(PACKAGE).parts[0]
        if room == "learner_evaluations":  # runs in an environment without either package
            assert "dre_plugins" not in packages, path
            inside = {name for name in names if name.startswith("dre_bench")}
            assert all(name.startswith("dre_bench.learner_evaluations") for name in inside), path
        elif room == "foreign":  # each module runs in the environment of one library
            assert not packages & {"dre_bench", "dre_plugins", "optuna", "ray"}, path
            assert path.stem.startswith("with_") or not packages, path
        elif room == "rivals":  # of public libraries, like methods that others publish
            assert packages <= RIVALS | {"dre_bench", "dre_plugins"}, path
            ours = [name for name in names if name.startswith("dre_bench")]
            assert all(name.startswith("dre_bench.rivals") for name in ours), path
        else:
            assert packages <= ALLOWED, path


def test_no_imports_form_a_circle() -> None:
    assert circle_in(PACKAGE) == []
