"""What pages say of the repository is so: links, names, messages, features, learners."""

import ast
import inspect
import re
from pathlib import Path

import pytest
from pages import LAB, NOTEBOOKS, PAGES, ROOT, name_of

import dre_plugins
from dre_plugins.transfer.learners import LEARNERS
from dre_plugins.transfer.prior import Prior
from dre_plugins.transfer.prior_file import names
from dre_plugins.transfer.spaces.aliases import ROLES

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


# ---- the page of learners, whose priors `prior="auto"` takes

LEARNERS_PAGE = ROOT / "docs" / "guide" / "learners.md"
COLUMNS = (
    "regret of the first trial",
    "regret of the library's default",
    "regret of the portfolio",
    "regret of default and random trials",
    "regret after 5 trials",
    "regret after 5 trials without",
)


def rows_of_learners() -> list[str]:
    found = []
    for key, learner in LEARNERS.items():
        name = learner.prior or key
        if name in names():
            figures = Prior.load(name).card.validation
            texts = [
                f"{figures[title]:.2f}".removeprefix("0") if title in figures else "–"
                for title in COLUMNS
            ]
            title = learner.title.removeprefix("a ").removeprefix("an ")
            found.append(f"| {title} | `{name}` | {' | '.join(texts)} |")
    return found


def tables_of_learners() -> list[list[str]]:
    parts = LEARNERS_PAGE.read_text(encoding="utf-8").split("\n\n")
    return [part.strip().splitlines()[2:] for part in parts if part.strip().startswith("|")]


def test_the_page_of_learners_has_a_row_for_each_with_its_figures() -> None:
    assert tables_of_learners()[0] == rows_of_learners()


def test_names_of_a_row_play_one_role() -> None:
    for row in tables_of_learners()[1]:
        names = {*re.findall("`([^`]+)`", row)}
        assert len(names) >= 2
        assert any(names <= role.names | role.words for role in ROLES.values()), row
