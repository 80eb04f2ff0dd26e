"""The versions of what evaluates, kept beside the evaluations."""

from __future__ import annotations

import json
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

LIBRARIES = ("numpy", "scipy", "scikit-learn", "lightgbm", "xgboost-cpu", "catboost", "torch")
FILE = "environment.json"


def versions() -> dict[str, str | None]:
    """Give the versions of Python and the learners' libraries; None for one that is missing."""
    return {"python": platform.python_version(), **{name: _version(name) for name in LIBRARIES}}


def note(raw: Path) -> None:
    """Add the versions of this environment to those that a folder of evaluations has."""
    raw.mkdir(parents=True, exist_ok=True)
    found = noted(raw)
    if versions() not in found:
        (raw / FILE).write_text(json.dumps([*found, versions()], indent=1))


def noted(raw: Path) -> list[dict[str, str | None]]:
    """Read the environments that a folder of evaluations was made in, the first one first."""
    path = raw / FILE
    return list(json.loads(path.read_text())) if path.exists() else []


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
