"""Seeds and resuming, serialisation, storage traffic."""

import copy
import json
import logging
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import dill
import optuna
import optuna_worker as worker
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import Trial
from processes import run_together
from spies import spy

from dre_plugins.adapters.optuna import DRESampler, state as optuna_process


def run_here(sampler: DRESampler, n_trials: int = 15, **arguments: Any) -> optuna.Study:
    return worker.optimized(sampler, worker.mixed_objective, n_trials, **arguments)


# --- seeds -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_same_seed_gives_the_same_suggestions_in_every_process(tmp_path: Path) -> None:
    """With several threads of torch, and from where another process has stopped."""
    whole = worker.params_of(run_here(worker.tiny_sampler(seed=3, n_startup_trials=5), 9))
    assert run_together(1, worker.optimize, "memory", 6, 3, 2) == [whole[:6]]
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    assert run_together(1, worker.optimize, storage, 7, 3) == [whole[:7]]
    assert run_together(1, worker.optimize, storage, 2, 3) == [whole]


def test_studies_differ_by_their_seed_and_without_one() -> None:
    seeds = [*range(10), None, None]
    studies = [run_here(worker.tiny_sampler(seed=seed), 1) for seed in seeds]
    assert len({study.trials[0].params["rate"] for study in studies}) == len(seeds)


def test_studies_of_one_name_in_two_storages_may_share_a_sampler() -> None:
    def suggested(names: str) -> list[list[dict[str, Any]]]:
        sampler = worker.tiny_sampler(n_startup_trials=2)
        studies = [optuna.create_study(study_name=name, sampler=sampler) for name in names]
        for number in range(4):
            trials = [study.ask() for study in studies]
            values = [trial.suggest_float("x", 0.0, 1.0) for trial in trials]
            # In the end the first study asks for a parameter that only the other one has had.
            for place in (0, 1) if number == 3 else (1,):
                values[place] += trials[place].suggest_float("y", 0.0, 1.0)
            for study, trial, value in zip(studies, trials, values, strict=True):
                study.tell(trial, value)
        return [worker.params_of(study) for study in studies]

    assert suggested("ss") == suggested("ab")


def test_reseeding_keeps_the_seed_of_the_user() -> None:
    sampler = worker.tiny_sampler(independent_sampler=optuna.samplers.RandomSampler(seed=0))
    sampler.reseed_rng()
    sampler = worker.tiny_sampler()
    sampler.reseed_rng()
    assert worker.params_of(run_here(sampler)) == worker.params_of(run_here(worker.tiny_sampler()))


# --- serialisation -----------------------------------------------------------------------------


COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda sampler: pickle.loads(pickle.dumps(sampler)),
    "cloudpickle": lambda sampler: pickle.loads(cloudpickle.dumps(sampler)),
    "dill": lambda sampler: dill.loads(dill.dumps(sampler)),
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("seed", [5, None])
def test_a_copy_suggests_the_same(name: str, seed: int | None) -> None:
    study = run_here(worker.tiny_sampler(seed=seed), 8)
    twin = copy.deepcopy(study)
    twin.sampler = COPIES[name](study.sampler)
    study.optimize(worker.mixed_objective, n_trials=4)
    twin.optimize(worker.mixed_objective, n_trials=4)
    assert worker.params_of(study) == worker.params_of(twin)
    assert len(pickle.dumps(study.sampler)) < 5_000
    assert study.sampler.stats == twin.sampler.stats
    assert all(study.sampler.stats.values())  # no counter of what has not happened


# --- traffic and logs --------------------------------------------------------------------------

MIXED_SPACE = {
    "x": FloatDistribution(0.0, 1.0),
    "n": IntDistribution(1, 100, log=True),
    "kind": CategoricalDistribution(["a", "b"]),
}


def test_a_trial_reads_the_history_once(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = optuna.storages.InMemoryStorage()
    study = optuna.create_study(sampler=worker.tiny_sampler(), storage=storage)
    read = spy(monkeypatch, storage, "get_all_trials")
    for number in range(12):
        read.reset_mock()
        study.tell(study.ask(MIXED_SPACE), float(number))
        # Optuna itself asks for trials that are waiting.
        wanted = [call.kwargs for call in read.call_args_list if not call.kwargs.get("states")]
        if number > 0:  # the first does not know its parameters
            assert [keywords["deepcopy"] for keywords in wanted] == [False]


def test_how_long_a_trial_takes_to_ask_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = worker.tiny_sampler()
    study = run_here(sampler, 6)
    asked = study.ask().number
    frozen = study.get_trials(deepcopy=False)[asked]
    search_space = sampler.infer_relative_search_space(study, frozen)
    time.sleep(0.1)
    storage, read = study._storage, study._storage.get_all_trials
    unread = lambda *_, **__: pytest.fail("it was read already")  # noqa: E731
    monkeypatch.setattr(storage, "get_all_trials", unread)
    monkeypatch.setattr(optuna_process, "SMALL_SPACE", 0)
    assert sampler.sample_relative(study, frozen, search_space).keys() == search_space.keys()
    monkeypatch.setattr(storage, "get_all_trials", read)
    asked = study.ask().number
    other = study.get_trials(deepcopy=False)[asked]
    assert sampler.sample_relative(study, other, search_space)  # which was not read for it


def test_attributes_are_few_and_explanations_small_with_hundreds_of_parameters() -> None:
    study = optuna.create_study(sampler=worker.tiny_sampler(n_startup_trials=1))
    space = {f"a_parameter_with_a_name_{i}": FloatDistribution(0, 1) for i in range(200)}
    for number in range(3):
        study.tell(study.ask(space), float(number))
    assert study.trials[-1].user_attrs["dre:explanation"]["source"] == "model"
    for trial in study.trials:
        assert {*trial.system_attrs} <= {"dre:suggestion"}
        assert len(json.dumps(trial.user_attrs)) <= 1_000


def test_a_default_run_logs_one_line_and_prints_nothing(caplog, capfd, recwarn) -> None:
    with caplog.at_level(logging.INFO, logger="optuna.dre_plugins"):

        def objective(trial: Trial) -> float:
            return trial.suggest_float("x", 0, 1) + trial.suggest_int("n", 0, 9)

        optuna.create_study(sampler=worker.tiny_sampler()).optimize(objective, n_trials=20)
    records = [record for record in caplog.records if "dre_plugins" in record.name]
    assert [record.levelname for record in records] == ["INFO"]
    assert "trial 4" in records[0].getMessage()
    assert [str(warning.message) for warning in recwarn if "dre" in str(warning.filename)] == []
    assert capfd.readouterr() == ("", "")
