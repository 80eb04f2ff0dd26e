"""Circles of imports in a package, read from the source of its modules."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path


def circle_in(package: Path) -> list[str]:
    """Return the modules of a circle, empty if there is none; imports for type checkers count."""
    paths = {_dotted(path, package): path for path in package.rglob("*.py")}
    graph: dict[str, set[str]] = {}
    for name, path in paths.items():
        modules = {n if n in paths else n.rpartition(".")[0] for n in _imported(path)}
        graph[name] = modules & paths.keys() - {name}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return []


def _dotted(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(path: Path) -> Iterator[str]:
    """Yield dotted names, those of functions and classes too."""
    nodes = [ast.parse(path.read_text()).body]
    while nodes:
        for node in nodes.pop():
            if isinstance(node, ast.ImportFrom):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            else:
                nodes.append([*ast.iter_child_nodes(node)])
