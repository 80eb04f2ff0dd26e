"""Pages of the site that are made of files elsewhere in the repository, and links to these.

The examples, the notebook and the changelog become pages. A link out of this folder is written as
it works in the repository (`../examples/demo.py`). On the site it leads to the file's page, or is
plain text if there is none. The page of decisions gets a list of all records.
"""

from __future__ import annotations

import ast
import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

REPOSITORY = Path(__file__).parent.parent
LINK = re.compile(r"\[(?P<text>[^\[\]]+)\]\((?P<target>\.\./[^)\s#]+)(?:#[^)\s]*)?\)")
DECISIONS = "decisions/index.md"
PAGE_OF = {"CHANGELOG.md": "changelog.md", "README.md": "index.md"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for path in sorted(REPOSITORY.glob("examples/*.py")):
        files.append(_page(config, f"examples/{path.stem}.md", _of_example(path)))
    for path in REPOSITORY.glob("examples/*.ipynb"):
        files.append(_page(config, f"examples/{path.stem}.md", _of_notebook(path)))
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    # It lies beside this folder, and its page in it.
    files.append(_page(config, "changelog.md", changelog.replace("](docs/", "](")))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to files of the repository at their pages, and list the decisions."""
    folder = posixpath.dirname(page.file.src_uri)
    if page.file.src_uri == DECISIONS:
        markdown += "\n" + "\n".join(_records())
    return LINK.sub(lambda link: _inward(link, folder), markdown)


def _records() -> Iterator[str]:
    """Yield a line of a list for each record."""
    for path in sorted((REPOSITORY / "docs/decisions").glob("*.md")):
        if path.name != "index.md":
            title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
            yield f"- [{title}]({path.name})"


def _inward(link: re.Match[str], folder: str) -> str:
    file = posixpath.normpath(posixpath.join("docs", folder, link["target"]))
    if file.startswith("docs/") or not (REPOSITORY / file).exists():
        return link[0]
    if file.startswith("examples/"):
        target = str(Path(file).with_suffix(".md"))
    elif file in PAGE_OF:
        target = PAGE_OF[file]
    else:
        return link["text"]
    return f"[{link['text']}]({posixpath.relpath(target, folder or '.')})"


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
