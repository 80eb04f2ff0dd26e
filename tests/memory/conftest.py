"""What tests of the memory share."""

import pytest

from dre_plugins import Memory


@pytest.fixture
def memory(tmp_path):
    return Memory(tmp_path / "memory")
