"""Circles of imports in a package, read from the source of its modules."""

import ast
from collections.abc import Collection, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path


def circle_in(package: Path, free_within: Collection[str] = ()) -> list[str]:
    """Return the modules of a circle, empty if there is none; imports for type checkers count.

    `free_within` has the files whose functions may import what imports the file.
    """
    paths = {_dotted(path, package): path for path in package.rglob("*.py")}
    graph: dict[str, set[str]] = {}
    for name, path in paths.items():
        found = _imported(path, path.relative_to(package).as_posix() in free_within)
        modules = {each if each in paths else each.rpartition(".")[0] for each in found}
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


def _imported(path: Path, is_free: bool) -> Iterator[str]:
    """Yield dotted names, those of functions and classes too."""
    nodes = [ast.parse(path.read_text()).body]
    while nodes:
        for node in nodes.pop():
            if isinstance(node, ast.ImportFrom):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif not (is_free and isinstance(node, ast.FunctionDef)):
                nodes.append([*ast.iter_child_nodes(node)])
