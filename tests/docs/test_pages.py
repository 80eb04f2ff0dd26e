"""What pages say of the repository is so: links, names, messages, the table of features."""

import ast
import inspect
import re
from pathlib import Path

import pytest
from pages import LAB, NOTEBOOKS, PAGES, ROOT, name_of

import dre_plugins

PACKAGE = ROOT / "dre_plugins"
API = "\n".join(page.read_text(encoding="utf-8") for page in sorted(ROOT.glob("docs/api/*.md")))
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")


def test_there_are_pages() -> None:
    assert len(PAGES) > 20
    assert NOTEBOOKS


def test_the_documentation_stays_readable() -> None:
    """Measurements belong to lab/, so that there is little to read here."""
    pages = sorted(ROOT.glob("docs/**/*.md"))
    assert sum(page.stat().st_size for page in pages) <= 90 * 1024


@pytest.mark.parametrize("page", [*PAGES, *LAB], ids=name_of)
def test_links_lead_to_files(page: Path) -> None:
    links = LINK.findall(page.read_text(encoding="utf-8"))
    assert not [link for link in links if not (page.parent / link).exists()]


def test_every_yes_in_the_table_of_features_has_a_test_or_an_example() -> None:
    page = ROOT / "docs/guide/migration.md"
    table = page.read_text(encoding="utf-8").partition("## Features")[2]
    rows = [row.split("|")[1:-1] for row in table.splitlines() if row.startswith("|")]
    ours = [row[1].strip() for row in rows[2:]]
    assert len(ours) > 10
    for cell in ours:
        link = re.fullmatch(r"\[yes\]\((\S+/(?:tests|examples)/\S+\.py)\)", cell)
        assert cell in ("no", "never run") or (link and (page.parent / link[1]).is_file()), cell


@pytest.mark.parametrize("name", sorted(set(dre_plugins.__all__) - {"__version__"}))
def test_every_public_name_is_in_the_api(name: str) -> None:
    assert re.search(rf"^::: dre_plugins\.\S+\.{name}$", API, re.M)


@pytest.mark.parametrize(
    "name", ["DRESampler", "DRESearch", "DRESearcher", "DRE", "ASHADRE", "MODRE", "Settings"]
)
def test_every_argument_is_on_its_page_with_its_default(name: str) -> None:
    page = (ROOT / "docs/guide/arguments.md").read_text(encoding="utf-8")
    try:
        arguments = inspect.signature(getattr(dre_plugins, name)).parameters.values()
    except ImportError as error:
        pytest.skip(str(error))
    for argument in arguments:
        default = "" if argument.default is argument.empty else f"={argument.default!r}"
        shown = f"`{argument.name}{default}`".replace("'", '"')
        assert argument.kind is argument.VAR_KEYWORD or shown in page, shown


def test_every_plot_is_explained_and_in_the_api() -> None:
    pytest.importorskip("matplotlib")
    from dre_plugins import plots

    page = (ROOT / "docs/explanations.md").read_text(encoding="utf-8")
    for name in plots.__all__:
        assert f"plots.{name}(" in page
        assert f".{name}\n" in API


def messages() -> list[str]:
    """Return all texts in the package, with "…" where something is filled in."""
    texts = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [p.value if isinstance(p, ast.Constant) else "…" for p in node.values]
                texts.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(re.sub(r"%[rsd]", "…", node.value))
    return texts


def test_messages_in_troubleshooting_are_ours() -> None:
    page = (ROOT / "docs/guide/troubleshooting.md").read_text(encoding="utf-8")
    quoted = [
        message
        for line in page.splitlines()
        if line.startswith('"')
        for message in re.findall(r'"([^"]+)"', line)
    ]
    assert len(quoted) > 15
    written = "\n".join(messages())
    for message in quoted:
        pieces = [re.escape(piece) for piece in message.split("…")]
        assert re.search(".{0,60}?".join(pieces), written), message


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=name_of)
def test_a_notebook_shows_its_results_and_no_machine(notebook: Path) -> None:
    text = notebook.read_text(encoding="utf-8")
    assert '"image/png"' in text
    assert '"stderr"' not in text
    assert "site-packages" not in text
