"""A study learns from those before it, and no trouble with the memory ends it."""

import logging
import os
import pickle
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from processes import run_together
from remembered import (
    SPACE,
    configurations,
    continued,
    files_of,
    header,
    loss,
    memory_of,
    tune,
    write_studies,
    write_study,
)

from dre_plugins import AskTell, Memory
from dre_plugins.memory.records import read_study
from dre_plugins.memory.selection import MAX_STUDIES, MIN_TRIALS
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space import Categorical, Float, SearchSpace

# ---- where it is


@pytest.mark.parametrize(("given", "folders"), [(None, []), (True, ["memory"])])
def test_off_by_default_and_true_is_a_folder_of_the_user(tmp_path, monkeypatch, given, folders):
    monkeypatch.delenv("DRE_MEMORY", raising=False)
    monkeypatch.setattr("platformdirs.user_data_path", lambda *a, **k: tmp_path)
    tune(given, 2)
    assert [path.name for path in tmp_path.iterdir()] == folders
    assert len(files_of(Memory(tmp_path / "memory"))) == len(folders)


@pytest.mark.parametrize("given", [None, True])
def test_the_environment_names_a_folder(tmp_path, monkeypatch, given):
    monkeypatch.setenv("DRE_MEMORY", str(tmp_path / "team"))
    tune(given, 2)
    assert len(files_of(Memory(tmp_path / "team"))) == 1
    assert Memory.of(False) is None


@pytest.mark.parametrize("value", ["1", "True", "off"])
def test_the_environment_does_not_switch_it_on_or_off(monkeypatch, value):
    monkeypatch.setenv("DRE_MEMORY", value)
    with pytest.raises(ValueError, match=f"DRE_MEMORY must be .* got '{value}'"):
        tune(None, 1)
    assert Memory.of(False) is None


@pytest.mark.parametrize("given", [True, "~/memory"])
def test_without_a_home_directory_a_memory_needs_a_path(monkeypatch, given):
    for variable in ("HOME", "XDG_DATA_HOME", "DRE_MEMORY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("pwd.getpwuid", Mock(side_effect=KeyError))
    assert Memory.of(None) is None  # a sampler without a memory needs no home
    with pytest.raises(ValueError, match="memory must be the absolute path of a folder, as there"):
        Memory.of(given)


@pytest.mark.parametrize("wrong", ["", "a\0b", 1, 0.5, ["path"]])
def test_what_is_no_memory_is_refused(wrong):
    with pytest.raises(ValueError, match="memory must be"):
        tune(wrong, 0)
    for path in (wrong, None):
        with pytest.raises(ValueError, match="path must be the path of a folder"):
            Memory(path)


@pytest.mark.parametrize("limit", [0.0, -1, "5", True, float("nan")])
def test_a_limit_must_be_a_positive_number(tmp_path, limit):
    with pytest.raises(ValueError, match="max_megabytes must be a number above 0"):
        Memory(tmp_path, max_megabytes=limit)


@pytest.mark.parametrize("argument", ["name", "framework"])
def test_a_study_whose_name_is_no_text_is_refused(memory, argument):
    """Nobody could learn from it, as its record would not be one."""
    for wrong in (None, 3):
        with pytest.raises(ValueError, match=f"{argument} must be a text"):
            AskTell(SPACE, memory=memory, **{argument: wrong})


# ---- what is remembered


def test_all_that_ends_is_recorded(memory):
    study = AskTell(SPACE, direction="maximize", seed=0, memory=memory, name="mine", prior=None)
    numbers = [study.ask()[0] for _ in range(4)]
    study.tell(numbers[0], 1.5, constraints={"c": -1.0})
    study.tell(np.int64(numbers[1]), None)
    study.report(numbers[2], 1, 0.25)
    study.stop(numbers[2])
    study.add({"lr": 0.1, "layers": 2}, 2.5)
    read = read_study(files_of(memory))
    assert (read.header.name, read.header.framework) == ("mine", "ask-tell")
    assert sorted(read.trials) == [0, 1, 2, 4]  # 3 still runs
    expected = [trial for trial in study.history() if trial.state is not TrialState.RUNNING]
    assert read.history() == expected


def test_a_resumed_study_goes_on_as_if_it_had_not_stopped(memory, monkeypatch):
    elsewhere = Memory(memory.path.with_name("elsewhere"))
    for place in (memory, elsewhere):
        write_study(place, "past")
    straight = tune(elsewhere, 6)
    stopped = pickle.dumps(tune(memory, 3))
    monkeypatch.setattr(os, "getpid", lambda: -1)  # as in another process
    resumed = continued(pickle.loads(stopped), 3)
    assert configurations(resumed) == configurations(straight)
    assert len(files_of(memory)) == 3  # the past one, and two parts of the study
    assert {entry.n_trials for entry in memory.index().entries} == {6, 12}


def test_counters_are_those_of_the_study_after_a_restart(memory):
    study = pickle.loads(pickle.dumps(tune(memory, 1)))
    _break(memory)
    assert continued(study, 1).stats["memory_errors"] == 1


# ---- what is learnt


def test_the_first_trial_is_what_was_good_before(memory, caplog):
    caplog.set_level(logging.INFO)
    write_studies(memory, ("first", "second", "third"), 30)
    study = tune(memory, 3)
    assert study.stats["past_studies"] == 3
    assert study.explain(0).source == "past-studies"
    assert "3 past studies" in caplog.text
    dated = {header(name, name).dated for name in ("first", "second", "third")}
    assert {*study.explain(0).past_studies.split(", ")} == dated
    assert min(loss(trial.configuration) for trial in study.trials) < 0.3


@pytest.mark.parametrize("options", [{"prior": None}, {"direction": ["minimize", "maximize"]}])
def test_what_has_other_knowledge_or_several_objectives_is_recorded_only(memory, options):
    write_study(memory, "past")
    study = AskTell(SPACE, seed=0, memory=memory, **options)
    study.ask()
    assert study.stats["past_studies"] == 0
    assert study.explain(0).source == "random"


def test_what_nothing_overlaps_with_starts_as_without_a_memory(memory):
    write_study(memory, "past", space=SearchSpace({"x": Float(0.0, 1.0)}))
    assert configurations(tune(memory, 8)) == configurations(tune(False, 8))


def test_studies_whose_trials_have_all_failed_do_not_take_the_place_of_others(memory):
    write_study(memory, "good")
    for number in range(MAX_STUDIES):
        failing = memory_of(f"failing {number}", memory)
        for trial in range(MIN_TRIALS):
            ended = Trial({"lr": 0.1, "layers": 1}, TrialState.FAILED)
            failing.record(trial, lambda ended=ended: (ended, SPACE))
    assert tune(memory, 0).stats["past_studies"] == 1


def test_past_studies_of_other_values_do_not_end_a_study(memory):
    past = SearchSpace({"batch_size": Categorical([32]), "lr": Float(0.0, 1.0)})
    write_study(memory, "past", space=past)
    study = AskTell({"batch_size": [16, 64]}, seed=0, memory=memory)
    assert study.ask()[1]["batch_size"] in (16, 64) and study.stats["past_studies"] == 0


# ---- chosen and stored once


def test_past_tasks_are_stored_once(memory):
    write_study(memory, "past")
    tune(memory, 1)
    tune(memory, 2)
    assert n_stored(memory) == 1  # studies of fewer than five trials change nothing
    tune(memory, 6)
    tune(memory, 1)
    assert n_stored(memory) == 2


def n_stored(memory):
    return len(list(memory.tasks.glob("*.npz")))


@pytest.mark.slow
def test_processes_that_begin_at_once_have_the_same(memory):
    write_study(memory, "past", 40)
    assert len(set(run_together(4, _past_of, memory.path))) == 1
    assert n_stored(memory) == 1


def _past_of(path):
    past = memory_of("study", Memory(path)).past_tasks_for(SPACE)
    return b"".join(task.best.tobytes() for task in past.tasks_on(SPACE))


def test_workers_of_a_study_keep_to_what_was_chosen_first(memory):
    def chosen(study):
        past = memory_of(study, memory).past_tasks_for(SPACE)
        return sorted(task.name[0] for task in past.tasks)

    write_study(memory, "a", 20)
    first = chosen("study")
    write_study(memory, "b", 20)
    assert chosen("study") == first == ["a"]
    assert chosen("another") == ["a", "b"]
    next(memory.choices.glob("study-*.json")).write_bytes(b"\x00")
    assert chosen("study") == ["a", "b"]


def test_the_same_studies_in_another_memory_teach_the_same(tmp_path):
    def chain(folder):
        studies = [tune(tmp_path / folder, 6, name=str(n), seed=n) for n in range(4)]
        return [configurations(study) for study in studies]

    first = chain("first")
    assert all(chain(folder) == first for folder in ("second", "third"))


def test_a_study_that_began_with_nothing_goes_on_with_nothing(memory):
    assert memory_of("study", memory).past_tasks_for(SPACE) is None
    write_study(memory, "a", 20)
    assert memory_of("study", memory).past_tasks_for(SPACE) is None
    assert memory_of("study", memory).past_tasks_for("lr") is not None  # other parameters


def test_old_tasks_are_deleted_and_not_what_another_worker_is_writing(memory, monkeypatch):
    memory.tasks.mkdir(parents=True)
    (memory.tasks / ".tasks.0123.npz").touch()
    monkeypatch.setattr("dre_plugins.memory.memory.MAX_TASK_FILES", 1)
    for past in ("a", "b", "c"):
        write_study(memory, past)
        tune(memory, 0)
    unfinished, *whole = sorted(path.name for path in memory.tasks.iterdir())
    assert unfinished == ".tasks.0123.npz"
    assert len(whole) == 2  # and the one that is just made


# ---- what goes wrong


def _break(memory: Memory) -> None:
    """Put a file where folders should be, which stops an administrator too."""
    for folder in (memory.records, memory.tasks, memory.choices):
        if folder.is_dir():
            folder.rename(folder.with_suffix(".old"))
        folder.parent.mkdir(exist_ok=True)
        folder.write_bytes(b"")


def test_a_memory_that_cannot_be_used_is_one_warning(memory, caplog):
    _break(memory)
    study = tune(memory, 5)
    assert configurations(study) == configurations(tune(False, 5))
    assert study.stats["memory_errors"] == 6
    assert [record.levelname for record in caplog.records if "memory" in record.message] == [
        "WARNING"
    ]


def test_a_value_that_cannot_be_written_is_one_warning(memory, caplog):
    study = AskTell({"kind": [int, str]}, seed=0, memory=memory)
    for _ in range(2):
        study.tell(study.ask()[0], 1.0)
    assert study.stats["memory_errors"] == 2
    assert caplog.text.count("cannot be written (ValueError: Parameter 'kind'") == 1


@pytest.mark.parametrize(
    "content", [b"", b"\x00" * 100, b"[" * 100_000, b'{"trial":1}\n', "its trials"]
)
def test_a_damaged_record_hides_no_other(memory, content):
    write_studies(memory, ("whole", "damaged"), 20)
    path = next(path for path in files_of(memory) if path.name.startswith("damaged"))
    if content == "its trials":
        content = path.read_bytes().replace(b'"state":"complete"', b'"state":"no"')
    path.write_bytes(content)
    assert tune(memory, 1).stats["past_studies"] == 1


def test_a_damaged_choice_hides_no_other_and_stops_nothing(memory):
    write_studies(memory, "ab")
    assert tune(memory, 2).stats["past_studies"] == 2
    chosen = memory.source_studies()
    (memory.choices / "other-0.json").write_text("")  # after a power cut
    (memory.choices / "other-1.json").write_text("[]")
    (memory.choices / "other-2.json").write_text('{"studies": [[]]}')
    (memory.choices / "other-3.json").mkdir()  # cannot be read, as a colleague's may be
    assert memory.source_studies() == chosen
    study = tune(Memory(memory.path, max_megabytes=0.001), 1)
    assert not study.stats["memory_errors"]


@pytest.mark.parametrize("error", [PermissionError, OSError])
def test_a_file_system_without_hard_links_will_do(memory, monkeypatch, error):
    write_studies(memory, "ab")
    monkeypatch.setattr("os.link", Mock(side_effect=error("no hard links")))
    study = tune(memory, 3)
    assert study.stats["past_studies"] == 2
    assert not study.stats["memory_errors"]


def test_a_damaged_file_of_tasks_is_one_warning_and_written_again_for_the_next(memory):
    write_study(memory, "a")
    tune(memory, 0)
    (tasks,) = memory.tasks.glob("*.npz")
    tasks.write_bytes(b"\x00" * 200)
    study = tune(memory, 2)
    assert study.stats["memory_errors"] == 1
    assert configurations(study) == configurations(tune(False, 2))
    assert tune(memory, 1).stats["past_studies"] == 1


def test_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Memory("somewhere").path == tmp_path / "somewhere"
    assert Memory("~/x").path == Path.home() / "x"
