"""A disk that is full while something is saved: the old file stays whole, nothing is left over.

The limit on the size of files is the operating system's own: writing fails as on a full disk,
after the first kilobyte.
"""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faults import full_disk
from past_tasks import SAVED
from searches import RaySearch

pytest.importorskip("resource")


def content(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("kind", SAVED)
@pytest.mark.parametrize("is_first", [True, False], ids=["new", "old"])
def test_the_old_file_stays_whole(tmp_path: Path, kind: str, is_first: bool) -> None:
    name, save, _ = SAVED[kind]
    if not is_first:
        save(tmp_path / name, 1)
    before = content(tmp_path)
    with full_disk(), pytest.raises(OSError, match=f"File too large: .*/{name}'$"):
        save(tmp_path / name, 2)
    assert content(tmp_path) == before
    save(tmp_path / name, 2)  # there is room again
    assert content(tmp_path) != before


# ---- the state of a search of Ray Tune


@pytest.fixture
def ray_search() -> Iterator[RaySearch]:
    pytest.importorskip("ray.tune")
    yield RaySearch()


@pytest.mark.ray
def test_an_experiment_goes_on_and_keeps_its_last_state(
    ray_search: RaySearch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    search: Any = ray_search.search
    ray_search.run(6)
    search.save_to_dir(str(tmp_path))
    before = content(tmp_path)
    with caplog.at_level(logging.WARNING, logger="ray.tune.dre_plugins"), full_disk():
        for _ in range(3):
            ray_search.run(1)
            search.save_to_dir(str(tmp_path))
    assert content(tmp_path) == before
    assert ray_search.run(1).stats["unsaved"] == 3
    assert sum("could not be written" in record.getMessage() for record in caplog.records) == 1

    restored = RaySearch()
    restored.search.restore_from_dir(str(tmp_path))
    assert sum(restored.search.stats[source] for source in ("random", "model")) == 6
    search.save_to_dir(str(tmp_path))  # there is room again
    restored.search.restore_from_dir(str(tmp_path))
    assert sum(restored.search.stats[source] for source in ("random", "model")) == 10


@pytest.mark.ray
def test_a_state_that_is_saved_by_hand_says_that_it_is_not(
    ray_search: RaySearch, tmp_path: Path
) -> None:
    with full_disk(), pytest.raises(OSError, match="File too large"):
        ray_search.search.save(str(tmp_path / "state"))
    assert not [*tmp_path.iterdir()]
