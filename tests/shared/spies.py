"""Functions and methods whose calls are noted, and that do what they did."""

from typing import Any
from unittest.mock import create_autospec

import pytest


def spy(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> Any:
    """Note the calls of a function as a mock does, and in `results` what it returned."""
    original, results = getattr(owner, name), []

    def noting(*arguments: Any, **keywords: Any) -> Any:
        results.append(original(*arguments, **keywords))
        return results[-1]

    noted = create_autospec(original, side_effect=noting)
    noted.results = results
    monkeypatch.setattr(owner, name, noted)
    return noted
