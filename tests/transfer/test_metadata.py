"""Metadata: trials in, trials out, one file in between."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dre_plugins.recommend.lists import trial_lists
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space import (
    Categorical,
    Condition,
    Constant,
    Float,
    Integer,
    Normal,
    Ordinal,
    RangeCondition,
    SearchSpace,
)
from dre_plugins.transfer.metadata import MetadataError, MetaDataset, Task

COMPLETE, PRUNED = TrialState.COMPLETE, TrialState.PRUNED
FAILED, RUNNING = TrialState.FAILED, TrialState.RUNNING
NAN, INF = math.nan, math.inf

SPACE = SearchSpace(
    {
        "lr": Float(1e-4, 1.0, "log"),
        "array": Categorical((1, True, 1.0, NAN, (1, (2,)), [3], {"k": (4,), 5: NAN}, INF, None)),
        "layers": Integer(0, 10**20),
        "width": Ordinal((16, 32, 64), "log"),
        "noise": Normal(0.0, 1.0, 0.5),
        "seed": Constant(-INF),
    },
    [Condition("layers", "array", (None, (1, (2,)))), RangeCondition("width", "lr", low=0.01)],
    ["noise"],
)
TRIALS = [
    Trial({"lr": 2.5, "array": (1, (2,)), "layers": 10**20}, COMPLETE, 1.0, {1: 0.5, 2: NAN}),
    Trial({"lr": 0.1, "array": True, "width": 32}, COMPLETE, INF, {1: 0.6, 2: 0.7}),
    Trial({"lr": 0.1, "array": 1, "noise": 0.5}, COMPLETE, -INF),
    Trial({"lr": 0.1, "array": NAN}, PRUNED, None, {1: INF}),
    Trial({"lr": 0.1, "array": NAN}, PRUNED, None, {1: NAN}),
    Trial({"lr": 0.1, "array": [3]}, PRUNED),
    Trial({"lr": 0.1, "array": {"k": (4,), 5: NAN}}, COMPLETE, NAN, {1: 3.0}),
    Trial({"lr": 0.1, "array": INF}, COMPLETE, None),
    Trial({"lr": 0.1}, FAILED, None, {2: 9.0}),
    Trial({"lr": 0.1}, RUNNING, None, {3: 9.0}),
]


def task(name: str = "first", trials: list[Trial] | None = None) -> Task:
    return Task.from_trials(name, SPACE, TRIALS if trials is None else trials)


def test_a_task_says_what_became_of_its_trials() -> None:
    made = task()
    assert len(made) == 9  # the running one is left out
    assert made.n_complete == 3
    assert made.counts() == {"complete": 3, "pruned": 1, "failed": 5}
    np.testing.assert_array_equal(made.values, [1.0, INF, -INF] + [NAN] * 6)
    np.testing.assert_array_equal(made.failed, [False] * 4 + [True] * 5)
    assert list(made.rungs) == [1.0, 2.0]  # nothing that ended well reported at 3
    np.testing.assert_array_equal(made.rungs[1], [0.5, 0.6, NAN, INF] + [NAN] * 5)
    np.testing.assert_array_equal(made.rungs[2], [NAN, 0.7] + [NAN] * 7)


def test_trials_come_back_as_they_were() -> None:
    made = task()
    states = [trial.state for trial in made.trials()]
    assert states == [COMPLETE] * 3 + [PRUNED] + [FAILED] * 5
    again = Task.from_trials("again", SPACE, made.trials())
    np.testing.assert_array_equal(again.units, made.units)
    np.testing.assert_array_equal(again.values, made.values)
    arrays = [trial.configuration["array"] for trial in made.trials()[:3]]
    assert arrays == [(1, (2,)), True, 1]
    assert made.trials()[0].configuration["lr"] == 2.5  # beyond its range
    space = SearchSpace({"n": Integer(0, 100, step=10)})
    (trial,) = Task.from_trials("grid", space, [Trial({"n": 15}, COMPLETE, 0.0)]).trials()
    assert trial.configuration == {"n": 15}  # between two values of its grid


def test_the_lists_of_a_task_are_those_of_its_trials() -> None:
    history = [trial for trial in TRIALS if trial.state is not RUNNING]
    history[6] = Trial(history[6].configuration, COMPLETE, NAN)
    # Two trials have passed this step without a report there.
    history.append(Trial({"lr": 0.1}, PRUNED, None, {1.5: 0.55}))
    made = task(trials=history)
    before = trial_lists(history, failed="worst", max_length=100)
    after = trial_lists(made.trials(), failed="worst", max_length=100)
    for ranked, expected, of_task in zip(before, after, made.lists(), strict=True):
        for found in (expected, of_task):
            np.testing.assert_array_equal(ranked.trials, found.trials)
            np.testing.assert_array_equal(ranked.ranks, found.ranks)
            assert ranked.weight == found.weight


def test_values_of_no_domain_and_arrays_of_the_wrong_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"'first'.*'lr'.*'fast'"):
        task(trials=[Trial({"lr": "fast"}, COMPLETE, 0.0)])
    with pytest.raises(ValueError, match=r"'t'.*units has shape \(2, 1\)"):
        Task("t", SPACE, np.zeros((2, 1)), np.zeros(2), np.zeros(2, dtype=np.bool_))
    with pytest.raises(ValueError, match="must have the value NaN"):
        Task("t", SPACE, np.zeros((1, 5)), np.zeros(1), np.ones(1, dtype=np.bool_))


def test_empty_tasks_are_dropped_and_counted_and_names_made_unique() -> None:
    only_failed = task("first", [Trial({"lr": 0.1}, FAILED)])
    metadata = MetaDataset.of([task(), task("empty", []), task(), only_failed], skipped={"x": 2})
    assert [task.name for task in metadata] == ["first", "first (2)", "first (3)"]
    assert metadata.skipped == {"x": 2, "empty study": 1}
    assert metadata.n_evaluations == 19
    assert metadata.tasks[2].counts() == {"complete": 0, "pruned": 0, "failed": 1}
    with pytest.raises(ValueError, match="'first'"):
        MetaDataset((task(), task()))


def test_metadata_can_be_joined_and_cut() -> None:
    left = MetaDataset.of([task("a"), task("b")], source="here", licence="MIT", skipped={"x": 1})
    right = MetaDataset.of([task("a")], source="there", licence="MIT", skipped={"x": 2, "y": 3})
    both = left + right
    assert [task.name for task in both] == ["a", "b", "a (2)"]
    assert (both.source, both.licence) == ("here; there", "MIT")
    assert both.skipped == {"x": 3, "y": 3}
    assert [task.name for task in both.subset(["a (2)", "b"])] == ["b", "a (2)"]
    assert len(both.subset("b")) == 1
    with pytest.raises(ValueError, match=r"\['c'\].*'a \(2\)'"):
        both.subset(["b", "c"])


def test_the_summary_is_short_and_says_what_was_left_out() -> None:
    metadata = MetaDataset.of([task(f"t{i}") for i in range(12)], source="x", skipped={"why": 2})
    lines = metadata.summary().splitlines()
    assert lines[0] == "12 tasks, 108 evaluations (36 complete, 12 pruned, 60 failed) from x"
    assert lines[1] == "  t0: 9 evaluations (3 complete, 1 pruned, 5 failed), 5 parameters"
    assert lines[-2:] == ["  … and 2 more", "skipped: 2 × why"]
    assert MetaDataset(()).summary() == "0 tasks, no evaluations"


def assert_same(metadata: MetaDataset, other: MetaDataset) -> None:
    assert (metadata.source, metadata.licence) == (other.source, other.licence)
    assert dict(metadata.skipped) == dict(other.skipped)
    for left, right in zip(metadata, other, strict=True):
        assert left.name == right.name and left.space == right.space
        assert [*left.rungs] == [*right.rungs]
        pairs = [(left.units, right.units), (left.values, right.values)]
        pairs += [(left.failed, right.failed)]
        pairs += [(left.rungs[step], right.rungs[step]) for step in left.rungs]
        for expected, found in pairs:
            np.testing.assert_array_equal(expected, found)
            assert expected.dtype == found.dtype and expected.shape == found.shape


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_a_file_keeps_everything(tmp_path: Path, suffix: str) -> None:
    constant = SearchSpace({"seed": Constant(7)})
    nothing_searched = Task.from_trials("c", constant, [Trial({"seed": 7}, COMPLETE, 0.1 + 0.2)])
    metadata = MetaDataset((task("Größe"), nothing_searched), "s", "CC BY 4.0", {"array": 3})
    path = tmp_path / f"metadata{suffix}"
    metadata.save(path)
    assert_same(metadata, MetaDataset.load(path))
    MetaDataset(()).save(str(path))
    assert_same(MetaDataset(()), MetaDataset.load(str(path)))
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_the_json_file_is_strict(tmp_path: Path) -> None:
    path = tmp_path / "metadata.json"
    MetaDataset((task(),)).save(path)
    tree = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert tree["tasks"][0]["values"][:4] == [1.0, "inf", "-inf", None]
    assert tree["format"] == "dre-plugins/metadata" and tree["version"] == 1


@given(
    values=st.lists(st.floats(width=64), min_size=1, max_size=5),
    reports=st.dictionaries(st.floats(0, 100), st.floats(width=64), max_size=3),
)
def test_any_floats_survive_all_formats(
    tmp_path_factory: pytest.TempPathFactory, values: list[float], reports: dict[float, float]
) -> None:
    space = SearchSpace({"x": Float(0.0, 1.0)})
    trials = [Trial({"x": 0.5}, COMPLETE, value, reports) for value in values]
    metadata = MetaDataset((Task.from_trials("t", space, trials),))
    folder = tmp_path_factory.mktemp("floats")
    for name in ("m.json", "m.npz"):
        metadata.save(folder / name)
        assert_same(metadata, MetaDataset.load(folder / name))


class Callable:
    """A category that no file can hold."""


def test_a_category_that_no_file_holds_is_refused_at_saving(tmp_path: Path) -> None:
    space = SearchSpace({"optimiser": Categorical((Callable(), "sgd"))})
    made = Task.from_trials("t", space, [Trial({"optimiser": "sgd"}, COMPLETE, 1.0)])
    for name in ("m.json", "m.npz"):
        with pytest.raises(ValueError, match=r"'t'.*'optimiser'.*Callable.*string"):
            MetaDataset((made,)).save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_other_suffixes_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"metadata.pkl.*'.json' or '.npz'"):
        MetaDataset(()).save(tmp_path / "metadata.pkl")
    with pytest.raises(MetadataError, match=r"metadata.pkl.*'.json' or '.npz'"):
        MetaDataset.load(tmp_path / "metadata.pkl")


def changed(path: Path, **changes: Any) -> None:
    tree = json.loads(path.read_text())
    path.write_text(json.dumps({**tree, **changes}))


def test_missing_foreign_and_newer_files_are_refused_with_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "metadata.json"
    with pytest.raises(MetadataError, match=r"metadata.json.*check the path"):
        MetaDataset.load(path)
    MetaDataset((task(),)).save(path)
    changed(path, version=2)
    with pytest.raises(MetadataError, match=r"metadata.json.*version 2.*update"):
        MetaDataset.load(path)
    path.write_text('{"hyperparameters": []}')
    with pytest.raises(MetadataError, match=r"metadata.json.*from_table"):
        MetaDataset.load(path)
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    with pytest.raises(MetadataError, match=r"other.npz"):
        MetaDataset.load(tmp_path / "other.npz")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(MetadataError, match=r"folder.json"):
        MetaDataset.load(tmp_path / "folder.json")


@pytest.mark.parametrize(
    "tasks",
    [
        None,
        [1],
        [{}],
        [{"name": "t"}],
        [{"name": "t", "space": {"domains": {"x": {"kind": "os.system"}}}}],
        [{"name": "t", "space": {"domains": {}, "conditions": [], "optional": []}, "values": "x"}],
    ],
)
def test_wrong_content_is_damage(tmp_path: Path, tasks: Any) -> None:
    path = tmp_path / "metadata.json"
    MetaDataset((task(),)).save(path)
    changed(path, tasks=tasks)
    with pytest.raises(MetadataError, match=r"metadata.json.*damaged"):
        MetaDataset.load(path)
    path.write_text("[" * 100_000)
    with pytest.raises(MetadataError, match="damaged"):
        MetaDataset.load(path)
