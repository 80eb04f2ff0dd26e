"""Files that several write, that a crash interrupts, or for which a disk has no room.

The limit on the size of files is the operating system's own: writing fails as on a full disk,
after the first kilobyte.
"""

import logging
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults import full_disk
from hypothesis import HealthCheck, given, settings, strategies as st
from readers import SPACE, make_prior, training
from searches import RaySearch

from dre_plugins.files import atomic_write
from dre_plugins.transfer import training_state
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.prior import Prior


def past(length: int) -> MetaDataset:
    """Return two tasks of that many evaluations, all of which have their number as the value."""
    units = SPACE.canonical(np.random.default_rng(length).random((length, 3)))
    values = np.full(length, float(length))
    failed = np.zeros(length, dtype=np.bool_)
    return MetaDataset.of([Task(name, SPACE, units, values, failed) for name in "ab"])


def length_of(found: MetaDataset) -> int:
    """Return the number of evaluations, and check that all that was read is from one writer."""
    (length,) = {len(task) for task in found}
    assert [task.name for task in found] == ["a", "b"]
    assert all((task.values == length).all() for task in found)
    return length


# What is saved: the name of its file, how one of several writers saves it, and how it is read.
SAVED: dict[str, tuple[str, Callable[[Path, int], object], Callable[[Path], object]]] = {
    "prior": ("a.safetensors", make_prior, Prior.load),
    "training": (
        "a.safetensors",
        lambda path, writer: training_state.save(path, training(writer), {}),
        lambda path: training_state.load(path, training(), {}),
    ),
    "json": ("a.json", lambda path, writer: past(5 + writer).save(path), MetaDataset.load),
    "npz": ("a.npz", lambda path, writer: past(5 + writer).save(path), MetaDataset.load),
}


N_SAVES = 40


@pytest.mark.parametrize("kind", SAVED)
def test_threads_may_save_a_file_that_another_one_loads(tmp_path: Path, kind: str) -> None:
    name, write, read = SAVED[kind]
    path = tmp_path / name
    write(path, 0)
    is_over = threading.Event()

    def load_again() -> int:
        n_loads = 0
        while not is_over.is_set() or n_loads < N_SAVES:
            found = read(path)
            if isinstance(found, MetaDataset):
                length_of(found)
            n_loads += 1
        return n_loads

    def save_again(writer: int) -> None:
        for _ in range(N_SAVES):
            write(path, writer)

    with ThreadPoolExecutor(4) as pool:
        loading = pool.submit(load_again)
        saving = [pool.submit(save_again, writer) for writer in range(3)]
        try:
            for task in saving:
                task.result()
        finally:
            is_over.set()
        assert loading.result() >= N_SAVES
    assert [*tmp_path.iterdir()] == [path]


class Crash(BaseException):
    """End whatever is going on."""


@contextmanager
def crashing(n_calls: int) -> Iterator[None]:
    """Let nothing reach the disk after so many calls, as if the process had been killed there."""
    left = n_calls

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def done(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise Crash
            return function(*arguments, **options)

        return done

    with pytest.MonkeyPatch.context() as patch:
        for module, names in ((os, "mkdir rename replace unlink rmdir fsync"), (shutil, "rmtree")):
            for name in names.split():
                patch.setattr(module, name, counted(getattr(module, name)))
        with suppress(Crash):
            yield


@pytest.mark.parametrize("name", ["past.npz", "past.json"])
@pytest.mark.parametrize("n_before", [0, 1, 2])
def test_a_crash_at_any_point_leaves_the_old_or_the_new(
    tmp_path: Path, name: str, n_before: int
) -> None:
    found, n_calls = set(), 0
    while 9 not in found or n_calls < 12:
        path = tmp_path / str(n_calls) / name
        path.parent.mkdir()
        for _ in range(n_before):
            past(4).save(path)
        with crashing(n_calls):
            past(9).save(path)
        found.add(length_of(MetaDataset.load(path)) if n_before or path.exists() else 0)
        past(12).save(path)
        assert length_of(MetaDataset.load(path)) == 12
        n_calls += 1
    assert found == {4 if n_before else 0, 9}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    suffix=st.sampled_from([".json", ".npz"]),
    turns=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 30)), min_size=1, max_size=6),
)
def test_interrupted_saves_in_any_order_lock_nobody_out(
    suffix: str, turns: list[tuple[int, int]]
) -> None:
    """Some of them are interrupted after a number of calls, whoever wrote before."""
    with tempfile.TemporaryDirectory(prefix="dre-fuzz-") as folder:
        path, read_length = Path(folder, f"past{suffix}"), 0
        for length, n_calls in turns:
            with crashing(n_calls):
                past(length).save(path)
            if read_length or path.exists():
                found = length_of(MetaDataset.load(path))
                assert found in (read_length, length)
                read_length = found
        past(10).save(path)
        assert length_of(MetaDataset.load(path)) == 10


# ---- what was there before


@pytest.mark.parametrize("kind", SAVED)
def test_permissions_are_kept_or_those_of_a_new_file(tmp_path: Path, kind: str) -> None:
    name, write, _ = SAVED[kind]
    path, other = tmp_path / name, tmp_path / "plain"
    other.touch()
    write(path, 0)
    assert path.stat().st_mode == other.stat().st_mode  # what the umask leaves
    for mode in (0o600, 0o664, 0o400):
        path.chmod(mode)
        write(path, 1)
        assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize("kind", ["prior", "json"])
def test_a_symbolic_link_stays_one(tmp_path: Path, kind: str) -> None:
    name, write, read = SAVED[kind]
    (tmp_path / "elsewhere").mkdir()
    path, target = tmp_path / name, tmp_path / "elsewhere" / f"real.{name}"
    path.symlink_to(target)
    for writer in range(2):  # one that leads nowhere yet, then one that leads to a file
        write(path, writer)
        assert path.is_symlink() and target.exists()
        read(path)
    assert [*target.parent.iterdir()] == [target]


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "pipe.safetensors"
    os.mkfifo(path)
    with pytest.raises(OSError, match="named pipe"):
        make_prior(path, 0)
    assert path.is_fifo() and [*tmp_path.iterdir()] == [path]
    with pytest.raises(OSError, match="device"), atomic_write("/dev/null"):
        pass


# ---- a full disk


def content(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("kind", SAVED)
@pytest.mark.parametrize("is_first", [True, False], ids=["new", "old"])
def test_on_a_full_disk_the_old_file_stays_whole(
    tmp_path: Path, kind: str, is_first: bool
) -> None:
    name, save, _ = SAVED[kind]
    if not is_first:
        save(tmp_path / name, 1)
    before = content(tmp_path)
    with full_disk(), pytest.raises(OSError, match=f"File too large: .*/{name}'$"):
        save(tmp_path / name, 2)
    assert content(tmp_path) == before
    save(tmp_path / name, 2)  # there is room again
    assert content(tmp_path) != before


@pytest.fixture
def ray_search() -> RaySearch:
    pytest.importorskip("ray.tune")
    return RaySearch()


@pytest.mark.ray
def test_on_a_full_disk_ray_goes_on_and_keeps_the_last_state(ray_search, tmp_path, caplog) -> None:
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
def test_a_state_that_is_saved_by_hand_says_that_it_is_not(ray_search, tmp_path) -> None:
    with full_disk(), pytest.raises(OSError, match="File too large"):
        ray_search.search.save(str(tmp_path / "state"))
    assert not [*tmp_path.iterdir()]
