"""What is written about a study is what is read, and what past studies have saved."""

import errno
import gc
import math
import multiprocessing
import os
import pickle
from unittest.mock import Mock

import numpy as np
import pytest
from remembered import SPACE, files_of, header, loss, objective, tune, write_study

from dre_plugins import Memory
from dre_plugins.memory.recorded_study import RecordedStudy, RecordedTrial
from dre_plugins.memory.records import Recorder, RecordError, read_study
from dre_plugins.memory.savings import MIN_STUDIES, savings, share_beaten
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space import Categorical, Condition, Float, Integer, SearchSpace

COMPLETE, PRUNED, FAILED = TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAILED
FULL = Mock(side_effect=OSError(28, "No space left on device"))


def write(memory, trials, *, space=SPACE, stopped=(), of=None):
    recorder = Recorder(memory.records, of or header())
    for number, trial in enumerate(trials):
        recorder.write(number, trial, space, is_stopped=number in stopped)
    return recorder


AT = {"lr": 0.01, "layers": 3}


@pytest.mark.parametrize(
    "trial",
    [
        Trial(AT, COMPLETE, -0.25),
        Trial(AT, COMPLETE, math.inf),
        Trial({"lr": np.float64(0.01), "layers": np.int64(3)}, COMPLETE, 1.0),
        Trial(AT, FAILED),
        Trial(AT, PRUNED, None, {1.0: -3.0, 2.0: -math.inf}),
        Trial(AT, COMPLETE, 2.0, {}, (), {"memory": -1.0, "latency": 0.5}),
    ],
)
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_trial_is_read_as_it_was_written(memory, trial, direction):
    write(memory, [trial], of=header(directions=(direction,)))
    study = read_study(files_of(memory))
    assert study.trials[0].trial == trial
    assert study.space() == SPACE


def test_values_are_in_the_users_signs_in_the_file(memory):
    trial = Trial(AT, COMPLETE, None, {}, (-1.0, 2.0))
    write(memory, [trial], of=header(directions=("minimize", "maximize")))
    assert b'"values":[1.0,2.0]' in files_of(memory)[0].read_bytes()
    assert read_study(files_of(memory)).trials[0].trial == trial


def test_choices_of_any_plain_type_and_conditions(memory):
    space = SearchSpace(
        {"kind": Categorical(("a", (1, 2), None, True, 1)), "depth": Integer(1, 3)},
        [Condition("depth", "kind", ("a",))],
    )
    kinds = ["a", (1, 2), None, True, 1]
    trials = [
        Trial({"kind": kind, **({"depth": 2} if kind == "a" else {})}, COMPLETE, 0.0)
        for kind in kinds
    ]
    write(memory, trials, space=space)
    study = read_study(files_of(memory))
    read = [study.trials[number].trial.configuration["kind"] for number in range(5)]
    assert [(type(kind), kind) for kind in read] == [(type(kind), kind) for kind in kinds]
    assert study.space() == space


def test_what_cannot_be_written_leaves_no_file(memory):
    space = SearchSpace({"kind": Categorical((object(), 1))})
    with pytest.raises(ValueError, match="cannot be saved"):
        write(memory, [Trial({"kind": 1}, COMPLETE, 0.0)], space=space)
    assert not files_of(memory)


def test_spaces_of_one_study_are_not_compared_with_each_other(memory, monkeypatch):
    """Where ranges move, each trial has its own: 2000 of them took 6 s to read."""
    monkeypatch.setattr(SearchSpace, "__eq__", Mock(side_effect=AssertionError))
    recorder = Recorder(memory.records, header())
    for number in range(4):
        recorder.write(number, Trial(AT, FAILED), SearchSpace({"x": Float(0.0, number // 2 + 1)}))
    assert len(read_study(files_of(memory)).spaces) == 2


def test_spaces_that_grow_become_one_with_conditions(memory):
    """As a define-by-run framework shows them, trial by trial."""
    shallow = SearchSpace({"kind": Categorical(("mlp", "tree")), "lr": Float(0.0, 1.0)})
    deep = SearchSpace({"kind": Categorical(("mlp", "tree")), "depth": Integer(1, 9)})
    recorder = Recorder(memory.records, header())
    for number in range(12):
        if number % 2:
            recorder.write(number, Trial({"kind": "tree", "depth": 3}, COMPLETE, 0.0), deep)
        else:
            recorder.write(number, Trial({"kind": "mlp", "lr": 0.5}, COMPLETE, 0.0), shallow)
    space = read_study(files_of(memory)).space()
    assert set(space.domains) == {"kind", "lr", "depth"}
    assert {condition.child for condition in space.conditions} == {"lr", "depth"}


def test_a_task_ranks_violations_with_failures_and_stopped_trials_by_their_reports(memory):
    trials = [
        Trial(AT, COMPLETE, 5.0, {}, (), {"c": 1.0}),
        Trial(AT, COMPLETE, 3.0, {}, (), {"c": 0.0}),
        Trial(AT, PRUNED, None, {1.0: 4.0}, (), {"c": 0.0}),
    ]
    write(memory, trials, stopped=[2])
    task = read_study(files_of(memory)).task()
    assert task.failed.tolist() == [True, False, False]
    assert task.values[1:].tolist() == [3.0, 4.0]


# ---- several processes, and what goes wrong


def test_records_of_several_processes_are_merged(memory, monkeypatch):
    write(memory, [Trial(AT, COMPLETE, 1.0)])
    monkeypatch.setattr(os, "getpid", lambda: -1)
    other = Recorder(memory.records, header())
    other.write(1, Trial(AT, COMPLETE, 2.0), SPACE)
    other.write(0, Trial(AT, COMPLETE, 3.0), SPACE)  # it ran again
    monkeypatch.setattr("time.time", lambda: 0.0)
    other.write(0, Trial(AT, COMPLETE, 4.0), SPACE)  # after the clock was set back
    assert len(files_of(memory)) == 2
    values = {n: ended.trial.value for n, ended in read_study(files_of(memory)).trials.items()}
    assert values == {0: 4.0, 1: 2.0}


def test_copies_of_a_study_that_went_on_apart_lose_no_trial(memory):
    """As `optuna.copy_study` makes them in another storage, under the same name."""
    for layers in (1, 2):
        recorder = write(memory, [Trial(AT, COMPLETE, 1.0)])
        recorder.write(1, Trial({**AT, "layers": layers}, COMPLETE, 2.0), SPACE)
    trials = read_study(files_of(memory)).trials
    assert {n: trials[n].trial.configuration["layers"] for n in trials} == {0: 3, 1: 1, 2: 2}


def test_copies_in_another_process_write_to_its_own_file(memory, monkeypatch):
    recorder = write(memory, [Trial(AT, COMPLETE, 1.0)])
    before = files_of(memory)[0].read_bytes()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    for number in (1, 2):  # a worker of joblib gets a copy with each trial
        pickle.loads(pickle.dumps(recorder)).write(number, Trial(AT, COMPLETE, 2.0), SPACE)
    assert len(files_of(memory)) == 2
    assert before in [path.read_bytes() for path in files_of(memory)]
    assert len(read_study(files_of(memory)).trials) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_forked_process_writes_to_its_own_file(memory):
    recorder = write(memory, [Trial(AT, COMPLETE, 1.0)])
    process = multiprocessing.get_context("fork").Process(
        target=recorder.write, args=(1, Trial(AT, COMPLETE, 2.0), SPACE)
    )
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert len(files_of(memory)) == 2


@pytest.mark.parametrize("cut", [1, 20, 100])
def test_the_line_that_a_killed_process_left_unfinished_is_counted(memory, cut):
    write(memory, [Trial(AT, COMPLETE, float(n)) for n in range(3)])
    path = files_of(memory)[0]
    path.write_bytes(path.read_bytes()[:-cut])
    study = read_study([path])
    assert sorted(study.trials) == ([0, 1, 2] if cut == 1 else [0, 1])  # 1: only the line's end
    assert study.n_damaged == (0 if cut == 1 else 1)


@pytest.mark.parametrize(
    "content", [b"", b"\x00" * 50, b"{}\n", b'{"format":"dre-plugins/memory","version":99}\n']
)
def test_what_is_no_record_is_refused(memory, content):
    memory.records.mkdir(parents=True)
    path = memory.records / "a-1.jsonl"
    path.write_bytes(content)
    with pytest.raises(RecordError, match=r"a-1\.jsonl"):
        read_study([path])


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "is full"), KeyboardInterrupt("is full")])
def test_after_a_failed_write_everything_goes_to_a_new_file(memory, monkeypatch, error):
    recorder = write(memory, [Trial(AT, COMPLETE, 1.0)])
    whole = os.write

    def half(descriptor, lines):
        monkeypatch.setattr(os, "write", Mock(side_effect=error))
        return whole(descriptor, lines[: len(lines) // 2])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(type(error), match="is full"):
        recorder.write(1, Trial(AT, COMPLETE, 2.0), SPACE)
    monkeypatch.undo()
    recorder.write(2, Trial(AT, COMPLETE, 3.0), SPACE)
    study = read_study(files_of(memory))
    assert {n: ended.trial.value for n, ended in study.trials.items()} == {0: 1.0, 1: 2.0, 2: 3.0}
    assert study.n_damaged == 1


def test_a_first_write_that_fails_leaves_no_file(memory, monkeypatch):
    recorder = Recorder(memory.records, header())
    monkeypatch.setattr(os, "write", FULL)
    for number in range(2):
        with pytest.raises(OSError, match="No space"):
            recorder.write(number, Trial(AT, COMPLETE, 1.0), SPACE)
    assert files_of(memory) == []
    monkeypatch.undo()
    recorder.write(2, Trial(AT, COMPLETE, 3.0), SPACE)
    assert sorted(read_study(files_of(memory)).trials) == [0, 1, 2]


def test_a_folder_that_answers_late_is_left_alone_for_a_while(memory, monkeypatch):
    """As on NFS whose server is away, where each try may take minutes."""
    now, tried = [0.0], []

    def late(path, *rest):
        tried.append(path)
        now[0] += 60.0
        raise OSError(errno.EIO, "no answer")

    recorder = write(memory, [Trial(AT, COMPLETE, 1.0)])
    with monkeypatch.context() as patch:
        patch.setattr("time.monotonic", lambda: now[0])
        patch.setattr(os, "open", late)
        for number, seconds in enumerate([0.0, 1.0, 500.0, 100.0], 1):
            now[0] += seconds
            with pytest.raises(OSError, match="answer"):
                recorder.write(number, Trial(AT, COMPLETE, 1.0), SPACE)
        assert len(tried) == 2
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)  # as on another machine
        copied = pickle.loads(pickle.dumps(recorder))
        copied.write(5, Trial(AT, COMPLETE, 1.0), SPACE)
    assert sorted(read_study(files_of(memory)).trials) == [0, 5]
    del recorder  # the study's end
    assert sorted(read_study(files_of(memory)).trials) == [0, 1, 2, 3, 4, 5]


def test_a_study_that_is_forgotten_while_it_runs_goes_on_in_a_new_file(memory):
    recorder = write(memory, [Trial(AT, COMPLETE, 1.0)])
    files_of(memory)[0].unlink()
    recorder.write(1, Trial(AT, COMPLETE, 2.0), SPACE)
    assert sorted(read_study(files_of(memory)).trials) == [1]


def test_writing_waits_for_the_disk_at_most_every_minute_and_at_the_end(memory, monkeypatch):
    gc.collect()  # or a study of an earlier test may end meanwhile
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    recorder = write(memory, [Trial(AT, COMPLETE, float(n)) for n in range(50)])
    assert not synced
    monkeypatch.setattr("dre_plugins.memory.records.SECONDS_BETWEEN_SYNCS", 0.0)
    recorder.write(50, Trial(AT, COMPLETE, 0.0), SPACE)
    assert len(synced) == 1
    del recorder
    assert len(synced) == 2


# ---- what past studies have saved, as far as records tell


def recorded(source="past-studies", first=1.0, n_trials=12):
    """Return a study whose first trial has a source and a value, None if it failed."""
    rng = np.random.default_rng(0)
    ended = {}
    for number in range(n_trials):
        drawn = SPACE.to_configuration(rng.random(2))
        value = -loss(drawn) if number else first
        state = TrialState.FAILED if value is None else TrialState.COMPLETE
        trial = Trial(drawn, state, value)
        ended[number] = RecordedTrial(trial, 0.0, source="random" if number else source)
    return RecordedStudy(header(), (SPACE,), ended)


@pytest.mark.parametrize(
    ("study", "share"),
    [
        (recorded(first=9.0), 1.0),
        (recorded(first=-99.0), 0.0),
        (recorded(first=None), 0.0),
        (recorded(first=-1.0), pytest.approx(0.5, abs=0.25)),  # about the mean loss
        (recorded(n_trials=9), None),  # tells too little
        (recorded(n_trials=0), None),
        (recorded("random"), None),
        (recorded(""), None),
    ],
)
def test_the_share_of_space_filling_points_that_the_first_suggestion_beats(study, share):
    assert share_beaten(study) == share


def test_of_few_studies_nothing_is_known_and_luck_saves_nothing():
    win, loses = recorded(first=9.0), recorded(first=-99.0)
    assert savings([win] * 9 + [recorded("random")] * 9).n_studies == 9 < MIN_STUDIES
    even = savings([win] * 5 + [loses] * 5)
    assert (even.n_studies, even.share, even.trials) == (MIN_STUDIES, 0.5, 1.0)
    best = savings([win] * 10)
    assert best.trials == pytest.approx(21.0)  # known to be at most that much


@pytest.mark.parametrize("adapter", ["ask-tell", "optuna"])
def test_records_say_who_suggested_a_trial(tmp_path, adapter):
    memory = Memory(tmp_path / "memory")
    write_study(memory, "past", 20)
    if adapter == "ask-tell":
        study = tune(memory, 4, name="present")
        sources = [study.explain(number).source for number in range(4)]
    else:
        optuna = pytest.importorskip("optuna")
        from dre_plugins import DRESampler

        sampler = DRESampler(seed=0, memory=memory)
        study = optuna.create_study(study_name="present", sampler=sampler)
        study.optimize(objective, n_trials=4)
        sources = [sampler.explain(study, number).source for number in range(4)]
    (entry,) = [e for e in memory.index().entries if e.header.name == "present"]
    trials = read_study(entry.files).trials
    assert [trials[number].source for number in range(4)] == sources
    assert sources[0] == "past-studies"
