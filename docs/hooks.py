"""Pages of the site that are made of files elsewhere in the repository, and links to these.

The examples, the notebook and the changelog become pages. A link to one of them is written as it
works in the repository (`../examples/demo.py`), and leads to its page on the site.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

REPOSITORY = Path(__file__).parent.parent
# `](../examples/demo.py)` and `](../../CHANGELOG.md)`: one step up leaves the folder of the docs.
OUTWARD_LINK = re.compile(
    r"\]\((?P<up>(?:\.\./)*)\.\./(?P<file>examples/\w+\.(?:py|ipynb)|CHANGELOG\.md)\)"
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for path in sorted(REPOSITORY.glob("examples/*.py")):
        files.append(_page(config, f"examples/{path.stem}.md", _of_example(path)))
    for path in REPOSITORY.glob("examples/*.ipynb"):
        files.append(_page(config, f"examples/{path.stem}.md", _of_notebook(path)))
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    files.append(_page(config, "changelog.md", changelog))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to files of the repository at their pages."""
    return OUTWARD_LINK.sub(_inward, markdown)


def _inward(link: re.Match[str]) -> str:
    target = link["file"].lower() if link["file"] == "CHANGELOG.md" else link["file"]
    return f"]({link['up']}{Path(target).with_suffix('.md').as_posix()})"


def _page(config: MkDocsConfig, path: str, content: str) -> File:
    return File.generated(config, path, content=content)


def _of_example(path: Path) -> str:
    source = path.read_text(encoding="utf-8")
    title, _, rest = (ast.get_docstring(ast.parse(source)) or "").partition("\n")
    return (
        f"---\ntitle: {path.stem}\n---\n\n# {path.name}\n\n{title}\n\n{rest}\n\n"
        f"```python\n{source}```\n"
    )


def _of_notebook(path: Path) -> str:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join(part for cell in cells for part in _of_cell(cell))


def _of_cell(cell: dict) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] != "code":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        data = output.get("data", {})
        text = "".join(output.get("text", data.get("text/plain", "")))
        if "image/png" in data:
            picture = "".join(data["image/png"]).replace("\n", "")
            yield f"![{text}](data:image/png;base64,{picture})"
        elif text:
            yield f"```text\n{text}\n```"
