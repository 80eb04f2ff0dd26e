"""Tasks in a folder: written one by one, mapped when they are read, refused when damaged."""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dre_plugins.space import Categorical, Condition, Float, SearchSpace
from dre_plugins.transfer.metadata import MetadataError, MetaDataset, Task

SPACE = SearchSpace(
    {"x": Float(0.0, 1.0), "kind": Categorical(("a", "b")), "y": Float(0.0, 1.0)},
    [Condition("y", "kind", ("b",))],
)
OTHER = SearchSpace({"z": Float(0.0, 1.0)})


def task(name: str, seed: int = 0, space: SearchSpace = SPACE, n: int = 20) -> Task:
    rng = np.random.default_rng(seed)
    units = space.canonical(rng.random((n, space.n_parameters)))
    failed = np.arange(n) % 7 == 3
    values = np.where(failed | (np.arange(n) % 7 == 4), np.nan, units[:, 0])
    return Task(name, space, units, values, failed, {3.0: np.where(failed, np.nan, seed + 1.0)})


def several(n: int = 4) -> Iterator[Task]:
    for seed in range(n):
        yield task(f"task {seed}", seed, OTHER if seed == 2 else SPACE, 20 + seed)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "past.tasks"
    assert MetaDataset.write(path, several(), source="a formula", licence="CC0-1.0") == 4
    return path


def test_tasks_are_written_from_a_generator_and_come_back(folder: Path) -> None:
    found = MetaDataset.load(folder)
    assert (found.source, found.licence) == ("a formula", "CC0-1.0")
    for left, right in zip(several(), found, strict=True):
        assert (left.name, left.space) == (right.name, right.space)
        for name in ("units", "values", "failed"):
            np.testing.assert_array_equal(getattr(left, name), getattr(right, name))
        np.testing.assert_array_equal(left.rungs[3.0], right.rungs[3.0])


def test_evaluations_are_mapped_and_spaces_shared(folder: Path) -> None:
    first, second, *_ = MetaDataset.load(folder)
    assert first.space is second.space
    base: Any = first.units
    while isinstance(base, np.ndarray):
        base = base.base
    assert isinstance(base, mmap.mmap)


def test_no_two_tasks_are_in_memory_together(tmp_path: Path) -> None:
    alive: list[Any] = []

    def one_by_one() -> Iterator[Task]:
        import weakref

        for seed in range(5):
            made = task(f"{seed}", seed)
            alive.append(weakref.ref(made))
            yield made
            del made
            assert sum(one() is not None for one in alive) <= 1

    assert MetaDataset.write(tmp_path / "m.tasks", one_by_one()) == 5


def test_empty_tasks_are_left_out_and_names_must_differ(tmp_path: Path) -> None:
    path = tmp_path / "m.tasks"
    assert MetaDataset.write(path, [task("a"), task("b", n=0)]) == 1
    with pytest.raises(ValueError, match="Several tasks have the name 'a'"):
        MetaDataset.write(path, [task("a"), task("a", 1)])
    with pytest.raises(ValueError, match=r"m\.json.*must end in '\.tasks'"):
        MetaDataset.write(tmp_path / "m.json", [])
    assert len(MetaDataset.load(path)) == 1  # the older folder stayed


def test_a_folder_is_replaced_as_a_whole_and_only_if_it_is_one_of_tasks(folder: Path) -> None:
    def interrupted() -> Iterator[Task]:
        yield task("new")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        MetaDataset.write(folder, interrupted())
    found = MetaDataset.load(folder)
    assert len(found) == 4
    found.subset(["task 1"]).save(folder)  # what is written is read from there
    assert [one.name for one in MetaDataset.load(folder)] == ["task 1"]
    assert [one.name for one in folder.parent.iterdir()] == [folder.name]

    foreign = folder.with_name("mine.tasks")
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("")
    with pytest.raises(ValueError, match=r"mine\.tasks.*holds no tasks"):
        MetaDataset.write(foreign, several())
    assert (foreign / "thesis.txt").exists()


def rewritten(folder: Path, name: str, change: Any) -> None:
    array = np.array(np.load(folder / f"{name}.npy"))
    np.save(folder / f"{name}.npy", change(array))


def with_header(folder: Path, **changes: Any) -> None:
    header = json.loads((folder / "header.json").read_text())
    (folder / "header.json").write_text(json.dumps({**header, **changes}))


def put(place: int, value: float) -> Any:
    def change(array: np.ndarray) -> np.ndarray:
        array[place] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("units", lambda a: a[:-1], r"units\.npy.*damaged.*header has float64"),
        ("values", lambda a: a.astype(np.float32), r"values\.npy.*damaged.*float32"),
        ("failed", lambda a: a[:, None], r"failed\.npy.*damaged.*shape"),
        ("rungs", lambda a: a[:0], r"rungs\.npy.*damaged"),
        ("units", put(3, np.nan), r"units\.npy.*'task 0', evaluation 1: the unit of 'x' is nan"),
        ("units", put(60 + 3 * 21, np.inf), r"'task 2', evaluation 0: the unit of 'z' is inf"),
        ("units", put(60 + 3 * 21, 2.5), r"'task 2', evaluation 0: the unit of 'z' is 2\.5"),
        ("failed", put(0, True), r"damaged.*what failed must have the value NaN"),
    ],
)
def test_damaged_arrays_are_named_on_opening(folder: Path, name: str, change: Any, said) -> None:
    rewritten(folder, name, change)
    with pytest.raises(MetadataError, match=rf"(?s){said}"):
        MetaDataset.load(folder)


def test_a_parameter_may_be_missing_where_it_is_inactive_or_the_trial_failed(
    folder: Path,
) -> None:
    rewritten(folder, "units", put(3 * 3, np.nan))
    (first, *_) = MetaDataset.load(folder)
    assert first.failed[3] and np.isnan(first.units[3, 0])
    assert np.isnan(first.units[~first.failed, 2]).any()


def test_values_that_are_no_units_are_refused_at_writing(tmp_path: Path) -> None:
    raw = replace(task("raw"), units=100.0 * task("raw").units)
    with pytest.raises(ValueError, match=r"'raw', evaluation 0.*'x' is.*see SearchSpace.to_units"):
        MetaDataset.write(tmp_path / "m.tasks", [raw])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["units.npy", "values.npy", "failed.npy", "header.json"])
def test_a_file_that_is_missing_or_cut_is_named(folder: Path, name: str) -> None:
    whole = (folder / name).read_bytes()
    for length in range(0, len(whole), max(1, len(whole) // 10)):
        (folder / name).write_bytes(whole[:length])
        with pytest.raises(MetadataError, match=name):
            MetaDataset.load(folder)
    (folder / name).unlink()
    with pytest.raises(MetadataError, match=r"past\.tasks"):
        MetaDataset.load(folder)


def test_foreign_and_newer_folders_are_refused(folder: Path, tmp_path: Path) -> None:
    with_header(folder, tasks=[["a", 5, 20, []]])
    with pytest.raises(MetadataError, match=r"header\.json.*damaged"):
        MetaDataset.load(folder)
    with_header(folder, version=2)
    with pytest.raises(MetadataError, match=r"past\.tasks.*version 2.*update"):
        MetaDataset.load(folder)
    (folder / "header.json").write_text("[]")
    with pytest.raises(MetadataError, match=r"header\.json.*holds no object"):
        MetaDataset.load(folder)
    with pytest.raises(MetadataError, match=r"no\.tasks.*check the path"):
        MetaDataset.load(tmp_path / "no.tasks")


def test_an_array_that_would_run_code_is_not_loaded(folder: Path) -> None:
    np.save(folder / "values.npy", np.array([{"x": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(MetadataError, match=r"values\.npy.*damaged"):
        MetaDataset.load(folder)
