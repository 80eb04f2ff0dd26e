"""All frameworks write to one memory and start from it."""

import copy
import os
import pickle
import time
from datetime import datetime, timedelta
from unittest.mock import Mock

import numpy as np
import optuna
import pytest
from optuna_worker import open_storage, optimized, params_of, reported
from remembered import DAY, files_of, loss, objective, optimize, write_studies, write_study

from dre_plugins import DRESampler, Memory
from dre_plugins.adapters.optuna import metadata_from_studies
from dre_plugins.memory.records import TRIAL, read_study

# ---- Optuna


def test_optuna_studies_are_recorded(memory):
    def failing(trial):
        trial.set_user_attr("anything", 1)
        kind = trial.suggest_categorical("kind", ["a", "b"])
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.report(x, 1)
        if trial.number == 1:
            raise optuna.TrialPruned
        if trial.number == 2:
            raise RuntimeError
        return x + (kind == "a")

    study = optuna.create_study(
        study_name="mine \udcff",  # not UTF-8 on the command line
        direction="maximize",
        sampler=DRESampler(
            seed=0, memory=memory, constraints_func=lambda trial: (trial.params["x"] - 0.5,)
        ),
    )
    study.optimize(failing, n_trials=4, catch=(RuntimeError,))
    read = read_study(files_of(memory))
    assert (read.header.name, read.header.framework) == ("mine \udcff", "optuna")
    assert read.header.directions == ("maximize",)
    history = read.history()
    assert [trial.state.value for trial in history] == ["complete", "pruned", "failed", "complete"]
    assert [trial.configuration for trial in history] == params_of(study)
    assert history[0].value == study.trials[0].value
    assert history[1].rungs == {1.0: study.trials[1].params["x"]}
    assert history[3].constraints == {"0": study.trials[3].params["x"] - 0.5}
    assert set(read.space().domains) == {"kind", "x"}


@pytest.mark.parametrize("ending", [RuntimeError, optuna.TrialPruned])
def test_trials_that_end_before_they_ask_for_all_show_no_condition(memory, ending):
    def early(trial):
        kind = trial.suggest_categorical("kind", ["a", "b"])
        trial.report(0.0, 1)
        if trial.number in (4, 5):
            raise ending
        return trial.suggest_float("x" if kind == "a" else "y", 0.0, 1.0)

    study = optuna.create_study(sampler=DRESampler(seed=1, memory=memory, prior=None))
    for kind in "abababab":
        study.enqueue_trial({"kind": kind})
    study.optimize(early, n_trials=8, catch=RuntimeError)
    (task,) = metadata_from_studies(study)
    assert {condition.child for condition in task.space.conditions} == {"x", "y"}
    assert read_study(files_of(memory)).space() == task.space


def test_all_brackets_of_hyperband_are_recorded_as_one_study(memory):
    """Optuna shows a sampler only the trials of the present trial's bracket."""
    of_study = {
        "study_name": "s",
        "load_if_exists": True,
        "storage": optuna.storages.InMemoryStorage(),
        "pruner": optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9),
    }
    for _ in range(6):
        sampler = DRESampler(seed=0, memory=memory)
        study = optimized(sampler, lambda t: reported(t, objective(t)), 2, **of_study)
    (entry,) = memory.index().entries
    assert [t.configuration for t in read_study(entry.files).history()] == params_of(study)
    assert study.sampler.stats["memory_errors"] == 0


def test_the_first_trial_of_an_optuna_study_is_what_was_good_before(memory):
    write_studies(memory, "abc", 30)
    study = optimize(4, memory=memory)
    first = study.sampler.explain(study, 0)
    assert first.source == "past-studies"
    assert sorted(first.past_studies.split(", ")) == [f"{name} ({DAY})" for name in "abc"]
    assert str(first).endswith(f"; learnt from {first.past_studies}")
    assert study.trials[0].value < 0.1
    assert study.sampler.stats["past_studies"] == 3
    assert study.sampler.stats["memory_errors"] == 0


def test_a_study_is_warned_once_of_damaged_records(memory, caplog):
    write_studies(memory, "abc", 30)
    damaged, empty, whole = files_of(memory)
    damaged.write_text("no record")
    empty.write_text("")  # a process has just begun it
    study = optimize(3, memory=memory)
    assert study.sampler.explain(study, 0).past_studies == f"c ({DAY})"
    assert study.sampler.stats["memory_errors"] == 0
    (warning,) = [text for text in caplog.messages if damaged.name in text]
    assert "are left out, as damaged" in warning
    assert not any(path.name in caplog.text for path in (empty, whole))


def test_its_first_parameter_may_have_another_name(memory):
    write_studies(memory, "abc", n_trials=40)
    sampler = DRESampler(seed=0, memory=memory)
    study = optimized(sampler, lambda t: t.suggest_float("learning_rate", 1e-3, 2.0, log=True), 1)
    assert sampler.explain(study, 0).source == "past-studies"
    assert abs(np.log10(study.trials[0].params["learning_rate"] / 0.03)) < 0.5


def test_its_first_and_last_parameters_may_be_in_no_past_study(memory):
    write_studies(memory, "abc", n_trials=40)

    def extended(trial):
        first = trial.suggest_float("first", 0.0, 1.0)
        return first + objective(trial) + trial.suggest_float("last", 0.0, 1.0)

    sampler = DRESampler(seed=0, memory=memory)
    study = optimized(sampler, extended, 1)
    assert sampler.explain(study, 0).source == "past-studies"
    assert sampler.stats["past_studies"] == 3
    assert loss(study.trials[0].params) < 0.1
    assert len([*memory.choices.iterdir()]) == 1  # for the only name that past studies have


def test_a_restarted_optuna_study_goes_on_as_if_it_had_not_stopped(memory, tmp_path, monkeypatch):
    """Whatever was tuned meanwhile; and its records are those of one study."""
    write_study(memory, "past", 20)
    elsewhere = Memory(tmp_path / "elsewhere")
    write_study(elsewhere, "past", 20)
    straight = optimize(6, memory=elsewhere)
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    optimize(3, memory=memory, storage=storage)
    write_study(memory, "meanwhile", 20, sign=-1.0)
    monkeypatch.setattr(os, "getpid", lambda: -1)  # as in another process
    resumed = optimize(3, memory=memory, storage=storage)
    assert params_of(resumed) == params_of(straight)
    (entry,) = [e for e in memory.index().entries if e.header.name == "present"]
    assert len(entry.files) == 2
    assert sorted(read_study(entry.files).trials) == [0, 1, 2, 3, 4, 5]


def test_trials_from_before_a_memory_was_given_are_recorded_once(memory, monkeypatch, tmp_path):
    def ended(trial):
        if trial.number == 1:
            raise RuntimeError
        return reported(trial, objective(trial))

    storage, part = optuna.storages.InMemoryStorage(), Memory(tmp_path / "part")

    def run(n_trials, **options):
        of_study = {"study_name": "s", "storage": storage, "load_if_exists": True}
        sampler = DRESampler(seed=0, prior=None, **options)  # start-up trials take no time
        study = optuna.create_study(sampler=sampler, **of_study)
        study.optimize(ended, n_trials, catch=RuntimeError)
        return study

    run(3, memory=part)
    run(2)
    for process in (-1, -2):  # as in other processes
        monkeypatch.setattr(os, "getpid", lambda process=process: process)
        study = run(1, memory=part)
        run(1, memory=memory)
        assert study.sampler.stats["memory_errors"] == 0
    for recorded in (memory, part):
        lines = b"".join(path.read_bytes() for path in files_of(recorded)).splitlines()
        numbers = sorted(int(match[1]) for line in lines if (match := TRIAL.match(line)))
        history = read_study(files_of(recorded)).history()
        assert numbers == [*range(len(history))]
        assert [trial.configuration for trial in history] == params_of(study)[: len(history)]
        assert history[1].state.value == "failed" and history[2].rungs
    assert len(numbers) == 8


def test_workers_that_begin_together_record_one_study(memory, monkeypatch):
    """The trial that is stored second started first, as workers that race may do."""
    storage = optuna.storages.InMemoryStorage()
    study = optimize(1, memory=memory, storage=storage)
    second = copy.deepcopy(study.trials[0])
    second.datetime_start -= timedelta(milliseconds=5)
    study.add_trial(second)
    monkeypatch.setattr(os, "getpid", lambda: -1)  # as in another process
    optimize(1, memory=memory, storage=storage)
    (entry,) = memory.index().entries
    assert len(entry.files) == 2


@pytest.mark.parametrize("year", [1, 1969, 9999])
def test_a_study_may_have_begun_at_any_time(memory, year):
    (made_up,) = optimize(1).trials
    made_up.datetime_start = datetime(year, 1, 1)
    study = optuna.create_study(sampler=DRESampler(seed=0, memory=memory))
    study.add_trial(made_up)
    study.optimize(objective, n_trials=1)
    assert [entry.n_trials for entry in memory.index().entries] == [2]


def test_studies_of_one_name_are_different_ones(memory):
    sampler = DRESampler(seed=0, memory=memory)
    for _ in range(2):
        optimize(6, sampler=sampler)
    assert [entry.n_trials for entry in memory.index().entries] == [6, 6]
    assert sampler.stats["past_studies"] == 1


def test_studies_of_one_name_in_two_storages_are_different_ones(memory, tmp_path):
    """They take turns, opened anew: a storage may have the address of one that is gone."""
    sampler = DRESampler(seed=0, memory=memory)
    for _ in range(4):
        for n_trials in (1, 2):
            storage = open_storage(f"journal:{tmp_path / str(n_trials)}")
            study = optimize(n_trials, sampler=sampler, storage=storage)
    entries = memory.index().entries
    assert [(entry.n_trials, len(entry.files)) for entry in entries] == [(8, 1), (4, 1)]
    assert [t.configuration for t in read_study(entries[0].files).history()] == params_of(study)


def test_a_storage_that_fails_after_a_trial_does_not_end_the_study(memory, monkeypatch, caplog):
    """What is recorded was told to the sampler, also constraints that could not be stored.

    The first trial could not be recorded when it ended: it is read from the storage later on.
    """
    fail = Mock(side_effect=optuna.exceptions.StorageInternalError("locked"))

    class Sampler(DRESampler):
        def after_trial(self, study, trial, *result):
            with monkeypatch.context() as patch:
                for method in ("get_trial", "get_all_trials", "set_trial_system_attr"):
                    if trial.number != 1:
                        patch.setattr(study._storage, method, fail)
                super().after_trial(study, trial, *result)

    # A prior that is given: the study is first identified when a trial is recorded.
    sampler = Sampler(seed=0, memory=memory, prior=None, constraints_func=lambda trial: [1.0])
    study = optimize(3, sampler=sampler)
    assert len(study.trials) == 3 and study.sampler.stats["memory_errors"] == 1
    assert sum("cannot be used (StorageInternalError" in text for text in caplog.messages) == 1
    history = read_study(files_of(memory)).history()
    assert [trial.constraints for trial in history] == [{}, {"0": 1.0}, {"0": 1.0}]


def test_a_sampler_with_a_memory_can_be_pickled(memory):
    write_study(memory, "past", 20)
    sampler = DRESampler(seed=0, memory=memory)
    straight = optimize(4, sampler=sampler)
    assert len(params_of(straight)) == 4
    again = pickle.loads(pickle.dumps(sampler))
    straight.sampler = again
    straight.optimize(objective, n_trials=1)
    assert {entry.n_trials for entry in memory.index().entries} == {20, 5}


def test_a_memory_that_cannot_be_used_does_not_end_a_study(tmp_path):
    (tmp_path / "file").write_text("")
    broken = Memory(tmp_path / "file")
    study = optimize(3, memory=broken)
    assert params_of(study) == params_of(optimize(3))
    assert study.sampler.stats["memory_errors"] >= 3


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the zone of a process cannot be changed")
def test_workers_in_several_time_zones_record_one_study(memory, tmp_path, monkeypatch):
    for zone in ("JST-9", "UTC", "NST3:30"):
        with monkeypatch.context() as here:
            here.setenv("TZ", zone)
            time.tzset()
            storage = open_storage(f"journal:{tmp_path / 'studies'}")
            optimize(2, storage=storage, memory=memory)
    time.tzset()
    (entry,) = memory.index().entries
    assert entry.n_trials == 6


def test_several_objectives_are_recorded_only(memory):
    write_study(memory, "past")
    sampler, directions = DRESampler(seed=0, memory=memory), ["minimize"] * 2
    study = optimized(sampler, lambda t: (objective(t), 0.0), 2, directions=directions)
    assert len(memory.index().entries) == 2
    assert study.sampler.stats["past_studies"] == 0


# ---- one memory for all


def assert_optuna_helped(memory, framework, config, explanation):
    """Check the first trial of another framework, and what the memory holds after it."""
    assert loss(config) < 0.5
    assert explanation.source == "past-studies"
    assert explanation.past_studies.startswith("present (")
    names = {(e.header.framework, e.header.name, e.n_trials) for e in memory.index().entries}
    assert names == {("optuna", "present", 25), (framework, "loss", 1)}


@pytest.mark.syne_tune
def test_what_optuna_tuned_helps_syne_tune(memory):
    syne_tune = pytest.importorskip("syne_tune.config_space")
    from dre_plugins import DRE

    optimize(25, memory=memory, n_startup_trials=25)
    space = {"lr": syne_tune.loguniform(1e-4, 1.0), "layers": syne_tune.randint(1, 8), "epochs": 9}
    scheduler = DRE(space, metric="loss", random_seed=0, memory=memory)
    assert scheduler.searcher.stats["past_studies"] == 1
    config = scheduler.suggest().config
    scheduler.searcher.on_trial_complete(0, config, 1.0)
    assert_optuna_helped(memory, "syne-tune", config, scheduler.searcher.study.explain(0))
    assert DRE(space, metric="loss", random_seed=0).suggest().config != config


def ray_search(memory, **arguments):
    """Return a search whose space is an argument, or is set as a Tuner sets it, without any."""
    tune_of_ray = pytest.importorskip("ray.tune")
    from dre_plugins import DRESearch

    space = {"lr": tune_of_ray.loguniform(1e-4, 1.0), "layers": tune_of_ray.randint(1, 9)}
    if arguments:
        return DRESearch(space, seed=0, memory=memory, **arguments)
    search = DRESearch(seed=0, memory=memory)
    search.set_search_properties("loss", "min", space)
    return search


@pytest.mark.ray
def test_what_optuna_tuned_helps_ray_tune(memory):
    optimize(25, memory=memory, n_startup_trials=25)
    search = ray_search(memory, metric="loss", mode="min")
    config = search.suggest("a")
    search.on_trial_complete("a", {"loss": loss(config), "training_iteration": 1})
    assert_optuna_helped(memory, "ray-tune", config, search.explain("a"))


@pytest.mark.ray
def test_a_ray_search_that_is_restored_is_no_study_more(memory, tmp_path):
    """Ray makes a new search of a Tuner and restores its state then."""
    write_study(memory, "past")
    search = ray_search(memory)
    config = search.suggest("a")
    search.save_to_dir(str(tmp_path), session_str="1")
    again = ray_search(memory)
    again.restore_from_dir(str(tmp_path))
    assert again.suggest("a") == config
    again.on_trial_complete("a", {"loss": 1.0, "training_iteration": 1})
    assert [*memory.source_studies().values()] == [["past"]]
    assert len(memory.index().entries) == 2
    assert len([*memory.tasks.glob("*.npz")]) == 1
