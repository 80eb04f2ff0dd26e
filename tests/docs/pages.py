"""The pages that people read, and the Python in them."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
RECORDS = [path for path in sorted(ROOT.glob("docs/decisions/*.md")) if path.stem != "index"]
# The dated notebook: it keeps what was measured, and its code is that of its day.
LAB = sorted(ROOT.glob("lab/*.md"))
NOTEBOOKS = sorted(ROOT.glob("examples/*.ipynb"))
# A block that begins so is a file that other blocks use.
FILE_NAME = re.compile(r"# (\w+\.py)\n")


def blocks_of(path: Path) -> list[str]:
    """Return the Python blocks of a page, or the code cells of a notebook, in order."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return re.findall(r"^```python\n(.*?)^```", text, re.S | re.M)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
