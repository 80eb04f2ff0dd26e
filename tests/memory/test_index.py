"""The index says which studies there are, whatever happens to it."""

import errno
import json
import math
import os
import re
import time
from multiprocessing import get_context
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from processes import run_together
from remembered import SPACE, files_of, header, loss, tune, write_studies, write_study
from spies import spy

from dre_plugins import AskTell
from dre_plugins.files import sibling_path
from dre_plugins.memory import Memory, index as index_module
from dre_plugins.memory.recorded_study import RecordedTrial
from dre_plugins.memory.records import Recorder, header_line, space_line, trial_line
from dre_plugins.memory.selection import MAX_STUDIES, newest_with, select
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space import Categorical, Float, Integer, SearchSpace


def names(memory):
    return sorted(entry.header.name for entry in memory.index().entries)


def test_entries_say_what_was_tuned(memory):
    write_study(memory, "first", 7)
    write_study(memory, "second", 9)
    newest, oldest = memory.index().entries
    assert (newest.header.name, newest.n_trials) == ("second", 9)
    assert (oldest.header.name, oldest.n_trials) == ("first", 7)
    assert newest.space() == SPACE
    assert newest.n_bytes == files_of(memory)[1].stat().st_size
    assert oldest.last <= newest.last <= time.time()


def test_only_what_has_changed_is_read_again(memory, monkeypatch):
    write_studies(memory, "abc")
    memory.index()
    summary = spy(monkeypatch, index_module, "_summary")
    memory.index()
    assert not summary.called
    Recorder(memory.records, header("b")).write(
        99, Trial({"lr": 0.1, "layers": 1}, TrialState.COMPLETE, 0.0), SPACE
    )
    entries = {entry.header.study: entry.n_trials for entry in memory.index().entries}
    assert entries == {"a": 12, "b": 13, "c": 12}
    assert summary.call_count == 1


def test_a_trial_that_was_recorded_again_counts_once(memory):
    """After a restart that has lost the last trials, or in a record whose last line was cut."""
    write_study(memory, "a", 4)
    write_study(memory, "a", 6)
    with files_of(memory)[0].open("ab") as file:
        file.write(b'{"trial":7')
    assert [entry.n_trials for entry in memory.index().entries] == [6]


@pytest.mark.parametrize(
    ("whole", "content"),
    [
        *((b".*", damage) for damage in (b"", b"{", b"[]", b'{"format": 1}', b"\xff" * 100)),
        *((rb"(?<=\n).*", damage) for damage in (b"[]", b'{"a": [1]}', b"3")),
        *((b'"header"', b'"heading"'), (b"Integer", b"Odd"), (rb"\[.*\]", b"5")),
    ],
)
def test_a_damaged_index_is_made_anew(memory, whole, content):
    write_study(memory, "a")
    memory.index()
    path = memory.path / "index.json"
    path.write_bytes(re.sub(whole, content, path.read_bytes(), count=1))
    assert memory.index().entries[0].space() == SPACE
    assert names(memory) == ["a"]
    assert json.loads(path.read_bytes().splitlines()[1])


@pytest.mark.parametrize("is_record", [False, True])
def test_what_cannot_be_read_once_is_no_damage(memory, monkeypatch, is_record):
    """Such as a file on NFS that is stale, or whose server does not answer."""
    write_studies(memory, "ab")
    stale = files_of(memory)[0] if is_record else memory.path / "index.json"
    read = Path.read_bytes

    def refused(path):
        if path == stale:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(path))
        return read(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", refused)
        assert names(memory) == [*"ab"[is_record:]]
        assert memory.index().damaged == [stale.name] * is_record
    assert names(memory) == ["a", "b"]
    assert memory.index().damaged == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("began", value) for value in (None, "x", math.nan, 1e30, -1e30, True)),
        *(("name", value) for value in (None, 3)),
        *(("directions", value) for value in ([], "minimize", ["up"])),
        *(("study", value) for value in (5, "", "../../x")),
        ("framework", None),
    ],
)
def test_a_record_with_a_wrong_header_stops_no_other_study(memory, key, value):
    write_studies(memory, "ab")
    path = files_of(memory)[0]
    first, *lines = path.read_bytes().splitlines()
    wrong = json.dumps({**json.loads(first), key: value}).encode()
    path.write_bytes(b"\n".join([wrong, *lines, b""]))
    study = tune(memory, 1)
    assert (study.stats["past_studies"], study.stats["memory_errors"]) == (1, 0)
    assert memory.index().damaged == [path.name]


@pytest.mark.parametrize(
    "space", [{"x": {"kind": "Odd"}}, {"x": {"kind": "Categorical", "choices": [math.nan, 1]}}]
)
def test_a_space_that_cannot_be_rebuilt_stops_no_other_study(memory, space):
    write_studies(memory, "ab")
    with files_of(memory)[0].open("a") as file:
        file.write(json.dumps({"space": {"domains": space, "conditions": [], "optional": []}}))
    study = tune(memory, 1)
    assert (study.stats["past_studies"], study.stats["memory_errors"]) == (2, 0)


def test_a_record_without_a_search_space_is_damaged(memory):
    write_studies(memory, "ab")
    first, _, *trials = files_of(memory)[0].read_bytes().splitlines()
    files_of(memory)[0].write_bytes(b"\n".join([first, b'{"space":{}}', *trials]))
    assert memory.index().damaged == [files_of(memory)[0].name]
    assert names(memory) == ["b"]


@pytest.mark.parametrize("ended", [math.nan, math.inf, 1e30, None, "x"])
def test_an_end_that_is_no_time_counts_as_the_beginning(memory, ended):
    write_study(memory, "a", 1)
    path = files_of(memory)[0]
    *lines, trial = path.read_bytes().splitlines()
    wrong = json.dumps({**json.loads(trial), "ended": ended}).encode()
    path.write_bytes(b"\n".join([*lines, wrong, b""]))
    assert [entry.last for entry in memory.index().entries] == [1000.0]


def test_an_index_that_cannot_be_written_is_not_needed(memory, monkeypatch):
    """On a full disk, where studies are forgotten to make room, or one that is read only."""
    full = Mock(side_effect=OSError(28, "No space left on device"))
    write_studies(memory, "ab")
    monkeypatch.setattr(index_module, "atomic_write", full)
    memory.forget([entry for entry in memory.index().entries if entry.header.study == "a"])
    assert names(memory) == ["b"]
    assert not (memory.path / "index.json").exists()


# "a" is the oldest, but a study may have just learnt from it.
@pytest.mark.parametrize(("used", "kept"), [("a", "ad"), ("abcd", "cd")])
def test_the_limit_forgets_what_was_written_and_used_longest_ago(tmp_path, used, kept):
    memory = Memory(tmp_path)
    write_studies(memory, "abcd")
    memory.choices.mkdir()
    choice = memory.choices / "e-1.json"
    choice.write_text(json.dumps({"prior": None, "studies": [*used]}))
    now = memory.index().entries[0].last + 1.0  # the clock of a file system may be some ms slow
    os.utime(choice, (now, now))
    size = files_of(memory)[0].stat().st_size
    Memory(tmp_path, max_megabytes=2.5 * size / 1e6).shrink()
    assert names(memory) == [*kept]


def _write_and_index(path):
    memory = Memory(path)
    for number in range(5):
        write_study(memory, f"{os.getpid()}-{number}", 3)
        memory.index()


@pytest.mark.filterwarnings("ignore:.*fork")
def test_processes_that_write_and_index_at_once_lose_nothing(memory):
    run_together(4, _write_and_index, memory.path, context=get_context("fork"))
    entries = memory.index().entries
    assert len(entries) == 20
    assert {entry.n_trials for entry in entries} == {3}
    assert not [path for path in memory.path.rglob("*") if path.name.endswith(".tmp")]


# ---- what helps


def test_the_studies_with_the_largest_overlap_come_first_then_the_newest(memory):
    other = SearchSpace({"alpha": Float(0.0, 1.0), "beta": Float(0.0, 1.0)})
    larger = SearchSpace({**SPACE.domains, "dropout": Float(0.0, 0.5)})
    write_study(memory, "same, older")
    write_study(memory, "larger", space=larger)
    write_study(memory, "same, newer")
    write_study(memory, "other", space=other)
    write_study(memory, "short", 4)
    chosen = [entry.header.name for entry in select(memory.index(), SPACE, without="none")]
    assert chosen == ["same, newer", "same, older", "larger"]
    chosen = select(memory.index(), SPACE, without="same, newer")
    assert [entry.header.name for entry in chosen] == ["same, older", "larger"]


@pytest.mark.parametrize(
    ("past", "present", "is_chosen"),
    [
        ({"Learning-Rate": Float(1e-3, 1.0), "layers": Integer(1, 100)}, {}, True),  # alias, range
        ({"lr": Float(1e-3, 1.0), "model__layers": Integer(1, 8)}, {}, True),  # prefix
        ({"lr": Float(1e-3, 1.0)}, {}, True),  # half of the parameters
        ({"lr": Float(1e-3, 1.0)}, {**SPACE.domains, "momentum": Float(0.0, 1.0)}, False),  # third
        ({"svm_tol": Float(1e-5, 0.1, "log")}, {"tol": Float(1e-5, 0.1, "log")}, True),  # learner
        ({"lr": Categorical(("low", "high")), "layers": Categorical(("few", "many"))}, {}, False),
        ({"width": Integer(1, 8)}, {}, False),
    ],
)
def test_parameters_match_by_name_alias_and_domain(memory, past, present, is_chosen):
    write_study(memory, "past", space=SearchSpace(past))
    chosen = select(memory.index(), SearchSpace(present or SPACE.domains), without="")
    assert len(chosen) == is_chosen


def test_of_studies_that_contradict_each_other_the_nearest_are_learnt_from(memory):
    """A rate was a number once and a word once, and the present study has the word."""
    number = {"rate": Float(1e-4, 1.0), "layers": Integer(1, 8)}
    word = {"rate": Categorical(("low", "high")), "layers": Integer(1, 8)}
    write_study(memory, "word", space=SearchSpace(word))
    write_study(memory, "number", space=SearchSpace(number))  # by its layers
    chosen = select(memory.index(), SearchSpace(word), without="")
    assert [entry.header.name for entry in chosen] == ["word"]
    study = AskTell(word, seed=0, memory=memory.path)
    assert (study.stats["past_studies"], study.stats["memory_errors"]) == (1, 0)


def test_several_objectives_are_not_learnt_from(memory):
    recorder = Recorder(memory.records, header(directions=("minimize", "minimize")))
    for number in range(9):
        trial = Trial({"lr": 0.1, "layers": 1}, TrialState.COMPLETE, None, {}, (1.0, 2.0))
        recorder.write(number, trial, SPACE)
    assert len(memory.index().entries) == 1
    assert select(memory.index(), SPACE, without="") == []


def test_studies_that_say_nothing_are_not_named(memory):
    write_study(memory, "good")
    write_study(memory, "failed", sign=math.nan)
    study = tune(memory, 1)
    assert study.stats["past_studies"] == 1
    assert study.explain(0).past_studies == header("good", "good").dated
    assert [*memory.source_studies().values()] == [["good"]]


def test_the_newest_study_with_a_parameter_stands_in_for_the_rest(memory):
    write_study(memory, "past")
    assert newest_with(memory.index(), "layers", without="") == SPACE
    assert newest_with(memory.index(), "layers", without="past") is None
    assert newest_with(memory.index(), "learning_rate", without="") == SPACE  # there "lr"
    assert newest_with(memory.index(), "width", without="") is None


# ---- for years


def write_many(memory, n_studies, n_trials=100):
    """Write records directly: a hundred different spaces, which share two parameters or none."""
    memory.records.mkdir(parents=True)
    spaces = [
        SearchSpace({**(SPACE.domains if n % 10 == 0 else {}), f"own_{n}": Float(0.0, 1.0 + n)})
        for n in range(100)
    ]
    for study in range(n_studies):
        space, of = spaces[study % 100], header(f"{study:016x}", f"study {study}")
        lines = header_line(of) + space_line(space)
        for number in range(n_trials):
            units = np.random.default_rng(number).random(space.n_parameters)
            drawn = space.to_configuration(units)
            value = -loss(drawn) if "lr" in drawn else 0.0
            trial = Trial(drawn, TrialState.COMPLETE, value)
            lines += trial_line(number, RecordedTrial(trial, 1000.0 + study), of)
        (memory.records / f"{of.study}-0.jsonl").write_bytes(lines)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(600)
def test_ten_thousand_studies_begin_a_new_one_within_two_seconds(memory):
    write_many(memory, 10_000)
    start = time.perf_counter()
    memory.index()
    first = time.perf_counter() - start
    tune(memory, 1)
    times = []
    for _ in range(3):
        os.utime(files_of(memory)[0])  # something has changed
        start = time.perf_counter()
        assert len(select(memory.index(), SPACE, without="")) == MAX_STUDIES
        times.append(time.perf_counter() - start)
    start = time.perf_counter()
    study = tune(memory, 0)
    begun = time.perf_counter() - start
    print(f"first index {first:.2f} s, later {min(times):.2f} s, a study begun {begun:.2f} s")
    assert study.stats["past_studies"] == MAX_STUDIES
    assert max(min(times), begun) < 2.0


@pytest.mark.parametrize("name", ["index.json", "tasks/a.npz", "choices/a.json"])
def test_what_a_killed_process_left_is_deleted_a_day_later(tmp_path, name):
    path = tmp_path / name
    users, *left = path.with_name(".a.json"), *(sibling_path(path, ".tmp") for _ in range(2))
    path.parent.mkdir(exist_ok=True)
    for file, hours in zip((path, users, *left), (48, 48, 48, 1), strict=True):
        file.touch()
        os.utime(file, (time.time() - 3600 * hours,) * 2)
    Memory(tmp_path).shrink()
    assert {*path.parent.glob("*")} == {path, users, left[1]}
