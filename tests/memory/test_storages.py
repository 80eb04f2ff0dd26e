"""A study starts from the others of its storage: `past_studies="storage"`, of Optuna."""

import logging
from datetime import timezone

import optuna
import pytest
from optuna_worker import STORAGES, open_storage, optimized, params_of
from remembered import DAY, objective, optimize, write_studies

from dre_plugins import DRESampler
from dre_plugins.adapters.optuna.sources import metadata_from_studies
from dre_plugins.memory.records import import_task


@pytest.fixture(params=STORAGES)
def storage(request, tmp_path):
    return open_storage(f"{request.param}{tmp_path / 'studies'}")


def add_past(storage, name, n_trials=10, objective=objective):
    sampler = optuna.samplers.RandomSampler(seed=1)
    return optimized(sampler, objective, n_trials, study_name=name, storage=storage)


def test_the_other_studies_of_the_storage_are_learnt_from(storage, caplog):
    add_past(storage, "past")
    running = add_past(storage, "running", 5)
    running.ask()
    add_past(storage, "short", 4)
    with caplog.at_level(logging.INFO, "optuna.dre_plugins"):
        study = optimize(4, storage=storage, past_studies="storage")
    assert sum("2 past studies" in message for message in caplog.messages) == 1
    first = study.sampler.explain(study, 0)
    assert (first.source, first.past_studies) == ("past-studies", "past, running")


def test_a_storage_teaches_what_a_memory_of_the_same_study_does(storage, memory):
    optimize(12, name="past", storage=storage, memory=memory)
    from_storage = optimize(4, storage=storage, past_studies="storage")
    assert params_of(from_storage) == params_of(optimize(4, memory=memory))


def test_what_is_tuned_meanwhile_changes_nothing(tmp_path):
    def run(interrupted):
        url = f"sqlite:///{tmp_path / str(interrupted)}.db"
        add_past(url, "past")
        optimize(3, storage=url, past_studies="storage")
        if interrupted:
            add_past(url, "meanwhile")
            optuna.copy_study(
                from_study_name="present", from_storage=url, to_storage=url, to_study_name="copy"
            )
        return optimize(3, storage=url, past_studies="storage")

    assert params_of(run(True)) == params_of(run(False))


def test_a_copy_does_not_learn_from_its_original(tmp_path):
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    optimize(6, storage=url, name="original")
    optuna.copy_study(
        from_study_name="original", from_storage=url, to_storage=url, to_study_name="present"
    )
    study = optimize(1, storage=url, past_studies="storage")
    straight = optimize(7, name="straight")
    assert params_of(study) == params_of(straight)


@pytest.mark.parametrize("is_imported", [True, False])
def test_a_study_does_not_learn_from_its_own_trials_in_a_memory(memory, tmp_path, is_imported):
    """They were imported, or are those of the study that it was copied from."""
    url = f"sqlite:///{tmp_path / 'studies.db'}"
    name = "present" if is_imported else "original"
    optimize(6, storage=url, name=name, memory=False if is_imported else memory)
    if is_imported:
        for task in metadata_from_studies(url):
            import_task(memory.records, task, set())
    else:
        optuna.copy_study(
            from_study_name=name, from_storage=url, to_storage=url, to_study_name="present"
        )
    study = optimize(2, storage=url, memory=memory)
    assert params_of(study) == params_of(optimize(8, name="straight"))
    write_studies(memory, "b")
    for choice in memory.choices.iterdir():
        choice.unlink()
    study = optimize(1, storage=url, memory=memory)
    assert study.sampler.explain(study, 8).past_studies == f"b ({DAY})"


def test_times_may_have_zones(storage):
    past = add_past(storage, "past")
    ended = optuna.create_study(study_name="zones", storage=storage)
    for trial in past.trials:
        trial.datetime_start = trial.datetime_start.astimezone(timezone.utc)
        trial.datetime_complete = trial.datetime_complete.astimezone(timezone.utc)
        ended.add_trial(trial)
    study = optimize(1, storage=storage, past_studies="storage")
    assert "zones" in study.sampler.explain(study, 0).past_studies


@pytest.mark.parametrize("step", ["load_study", "Study.get_trials"])
def test_a_study_that_is_deleted_while_it_is_read_is_left_out(storage, step, monkeypatch):
    for name in ("kept", "deleted"):
        add_past(storage, name)
    owner, name = (optuna.Study, "get_trials") if "." in step else (optuna, step)
    original = getattr(owner, name)

    def after_deletion(*arguments, **options):
        names = optuna.get_all_study_names(storage)
        if "deleted" in names:
            optuna.delete_study(study_name="deleted", storage=storage)
        return original(*arguments, **options)

    monkeypatch.setattr(owner, name, after_deletion)
    study = optimize(1, storage=storage, past_studies="storage")
    assert study.sampler.explain(study, 0).past_studies == "kept"


def test_of_studies_that_contradict_each_other_the_nearest_are_learnt_from():
    """A rate was a number once and a word once, and the present study has the number."""

    def other(trial):
        return len(trial.suggest_categorical("lr", ["low", "high"])) + trial.suggest_int(
            "layers", 1, 8
        )

    storage = optuna.storages.InMemoryStorage()
    add_past(storage, "word", objective=other)
    add_past(storage, "number")
    study = optimize(3, storage=storage, past_studies="storage")
    assert study.sampler.explain(study, 0).past_studies == "number"


def test_a_storage_without_studies_that_say_anything_is_as_good_as_none(storage):
    add_past(storage, "single", 1)
    add_past(storage, "equal", objective=lambda trial: 0.0 * objective(trial))
    study = optimize(3, storage=storage, past_studies="storage")
    assert params_of(study) == params_of(optimize(3))


@pytest.mark.parametrize("options", [{"memory": True}, {"past_studies": "storage"}])
def test_optuna_trials_that_contradict_past_studies_reverse_them(memory, options, monkeypatch):
    monkeypatch.setenv("DRE_MEMORY", str(memory.path))
    storage = optuna.storages.InMemoryStorage()
    write_studies(memory, "abc", 30, sign=-1.0)
    for past in "abc":
        add_past(storage, past, 30, lambda trial: -objective(trial))
    sampler = DRESampler(seed=0, **options)
    study = optimize(12, storage=storage, sampler=sampler)
    named = [sampler.explain(study, number).past_studies for number in range(2, 12)]
    assert 1 <= named.count(None) == sampler.stats["past_contradicted"]
    assert sum(str(name).startswith("reversed ") for name in named) >= 7


@pytest.mark.parametrize("begun, n_times", [(19, 1), (20, 0)])
@pytest.mark.parametrize("is_memory", [True, False])
def test_a_worker_learns_only_for_the_trials_that_use_it(
    memory, caplog, is_memory, begun, n_times
):
    storage = optuna.storages.InMemoryStorage()
    write_studies(memory, "abc")
    add_past(storage, "past")
    add_past(storage, "present", begun)
    with caplog.at_level(logging.INFO, "optuna.dre_plugins"):
        options = {"memory": memory} if is_memory else {"past_studies": "storage"}
        optimize(2, storage=storage, **options)
    assert sum(" past stud" in message for message in caplog.messages) == n_times
