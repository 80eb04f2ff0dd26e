"""What a study finds in its storage, what fails in it, arguments of another kind.

Random trials are in tests/reliability (make fuzz).
"""

import json
import math
import warnings
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import optuna
import optuna_worker as worker
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import Trial, TrialState, create_trial

from dre_plugins import Memory
from dre_plugins.adapters.optuna import DRESampler, recommend
from dre_plugins.adapters.optuna.history import begun_in
from dre_plugins.memory.records import read_study
from dre_plugins.recommend.trials import ConstraintState, constraint_states
from dre_plugins.space import UnsupportedDomainError

UNIT = FloatDistribution(0.0, 1.0)


def line(trial: Trial) -> float:
    return float(trial.suggest_float("x", 0.0, 1.0))


def messages(caplog: pytest.LogCaptureFixture, text: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if text in record.getMessage()]


@pytest.fixture(scope="module", params=worker.STORAGES)
def storage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a storage that studies share: the tables of SQLite take longer than a study."""
    return worker.open_storage(f"{request.param}{tmp_path_factory.mktemp('storage') / 'studies'}")


@pytest.mark.filterwarnings("ignore:Fixed parameter")
@pytest.mark.parametrize("value", [math.inf, -math.inf, 1e308, -7, "0.5", True])
def test_an_enqueued_value_of_any_kind_ends_no_study(caplog, storage: Any, value: Any) -> None:
    study = worker.optimized(worker.tiny_sampler(n_startup_trials=2), line, 3, storage=storage)
    study.enqueue_trial({"x": value})
    study.optimize(line, n_trials=3)
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 6
    assert all(0.0 <= trial.params["x"] <= 1.0 for trial in study.trials[4:])
    assert study.sampler.stats["fallbacks"] == 0 and study.sampler.stats["model"] >= 2
    is_odd = isinstance(value, float) and math.isinf(value)
    assert len(messages(caplog, f"trial 3: its parameter 'x' is {value}")) == int(is_odd)


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (CategoricalDistribution(["a", "b"]), CategoricalDistribution(["c", "b", "a"])),
        (CategoricalDistribution([1, 2, 3]), IntDistribution(1, 3)),
        (UNIT, IntDistribution(0, 9)),
        (FloatDistribution(0.1, 1.0, log=True), FloatDistribution(0.1, 1.0)),
        (FloatDistribution(-math.inf, math.inf), UNIT),
    ],
    ids=repr,
)
def test_added_trials_may_have_had_another_kind_of_parameter(then: Any, now: Any) -> None:
    """Such as those of a study before a choice was added."""
    drawn = then.choices[0] if isinstance(then, CategoricalDistribution) else 0.3
    study = optuna.create_study(sampler=worker.tiny_sampler())
    for number in range(6):
        params, space = {"p": drawn, "x": number / 6}, {"p": then, "x": UNIT}
        study.add_trial(create_trial(params=params, distributions=space, value=float(number)))
    for number in range(8):
        trial = study.ask({"p": now, "x": UNIT})
        study.tell(trial, trial.params["x"] + number % 2)
    assert study.sampler.stats["fallbacks"] == 0
    assert study.sampler.stats["suggestions"] == 8


def test_a_choice_that_has_kept_its_name_keeps_its_results() -> None:
    """Places of choices have changed, so that places say nothing."""
    study = optuna.create_study(sampler=worker.tiny_sampler())
    then, now = CategoricalDistribution(["bad", "good"]), CategoricalDistribution(["good", "bad"])
    for number in range(12):
        params = {"k": ("bad", "good")[number % 2], "x": number / 12}
        space, value = {"k": then, "x": UNIT}, float(number % 2 == 0)
        study.add_trial(create_trial(params=params, distributions=space, value=value))
    first = study.ask({"k": now, "x": UNIT})
    study.tell(first, 0.5)
    later = [study.ask({"k": now, "x": UNIT}).params["k"] for _ in range(6)]
    assert later.count("good") >= 4


@pytest.mark.parametrize(
    "choices", [[1, 1, 2], [0.0, -0.0], [math.nan, math.nan], ["a", "b", "a", "c"]], ids=repr
)
def test_choices_may_be_listed_twice(choices: list[Any]) -> None:
    def objective(trial: Trial) -> float:
        return len(str(trial.suggest_categorical("k", choices))) + line(trial)

    sampler = worker.optimized(worker.tiny_sampler(allow_duplicates=True), objective, 8).sampler
    assert sampler.stats["fallbacks"] == 0 and sampler.stats["model"] > 0


@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution")
def test_a_storage_returns_lists_for_tuples(storage: Any) -> None:
    def of_layers(trial: Trial) -> float:
        layers: Any = trial.suggest_categorical("layers", [(64,), (64, (32, 16)), "none"])
        return len(layers) + line(trial)

    def suggested(storage: Any) -> str:
        study = optuna.create_study(storage=storage)
        for _ in range(3):  # a resumed study knows only what is stored
            study.sampler = worker.tiny_sampler(n_startup_trials=2)
            study.optimize(of_layers, n_trials=3)
        return json.dumps(worker.params_of(study))

    assert suggested(storage) == suggested(None)


def test_a_grid_of_huge_integers_is_modelled(caplog: pytest.LogCaptureFixture) -> None:
    """Optuna itself cannot say whether such a number is on its grid."""
    sampler = worker.tiny_sampler()
    study = optuna.create_study(sampler=sampler)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study.optimize(lambda trial: trial.suggest_int("i", 3, 2**60, step=7) / 2**60, n_trials=20)
    assert sampler.stats["independent"] == 1  # of the first trial, which knew no parameter
    assert not messages(caplog, "independently")
    assert study.best_value < 0.02


@pytest.mark.parametrize("function", [lambda trial: [], lambda trial: 1 / 0])
def test_constraints_that_no_trial_has_are_unknown_if_the_function_fails(tmp_path, function):
    """In the study and in the memory; a function of no constraints states that all are met."""
    sampler = worker.tiny_sampler(constraints_func=function, memory=tmp_path / "memory")
    study = worker.optimized(sampler, line, 4)
    (entry,) = Memory(tmp_path / "memory").index().entries
    are_met = sampler.stats["constraint_errors"] == 0
    assert (read_study(entry.files).best() is not None) == are_met
    states = constraint_states(sampler.with_constraints(study, *begun_in(study)[1:]))
    assert states == [ConstraintState.MET if are_met else ConstraintState.UNKNOWN] * 4


@pytest.mark.parametrize("huge", [10**400, -(10**400)])
def test_constraints_beyond_the_floats(huge: int) -> None:
    sampler = worker.tiny_sampler(constraints_func=lambda trial: [huge])
    study = worker.optimized(sampler, line, 8)
    assert sampler.stats["constraint_errors"] == sampler.stats["fallbacks"] == 0
    stored = study.trials[-1].system_attrs["constraints"]
    assert stored == [math.inf if huge > 0 else -math.inf]


def test_constraints_that_a_storage_refuses_are_remembered(monkeypatch, caplog) -> None:
    def run(is_refused: bool) -> optuna.Study:
        sampler = worker.tiny_sampler(constraints_func=lambda trial: [trial.params["x"] - 0.3])
        study = optuna.create_study(sampler=sampler, direction="maximize")
        write = optuna.storages.InMemoryStorage.set_trial_system_attr

        def refuse(self: Any, trial_id: int, key: str, value: Any) -> None:
            if key == "constraints" and is_refused:
                raise OSError(28, "No space left on device")
            write(self, trial_id, key, value)

        with monkeypatch.context() as patch:
            patch.setattr(optuna.storages.InMemoryStorage, "set_trial_system_attr", refuse)
            study.optimize(line, n_trials=8)
        return study

    expected = run(False)
    study = run(True)
    assert worker.params_of(study) == worker.params_of(expected)
    assert study.sampler.stats["unwritten"] == 8
    assert recommend(study).trial.params == recommend(expected).trial.params
    study.sampler = worker.tiny_sampler(constraints_func=len)  # it does not know them
    with pytest.raises(ValueError, match="a complete trial that meets all constraints"):
        recommend(study)
    assert len(messages(caplog, "constraints of trial 0 cannot be stored (OSError")) == 1


class NewestFirst(optuna.storages.InMemoryStorage):
    """Return trials as `MlflowStorage` of MLflow 3.17 does."""

    def get_all_trials(self, study_id: int, deepcopy: bool = True, states: Any = None) -> Any:
        return super().get_all_trials(study_id, deepcopy, states)[::-1]


def test_a_storage_may_return_the_newest_trial_first(tmp_path: Path) -> None:
    def moving(trial: Trial) -> float:
        return float(trial.suggest_float("x", 0.1 * trial.number, 2.0))

    memories = [Memory(tmp_path / name) for name in ("usual", "other")]
    usual = worker.optimized(worker.tiny_sampler(memory=memories[0]), moving, 12)
    other = worker.optimized(
        worker.tiny_sampler(memory=memories[1]), moving, 12, storage=NewestFirst()
    )
    assert worker.params_of(other)[::-1] == worker.params_of(usual)
    assert [trial.number for trial in begun_in(other)[1]] == [*range(12)]
    history = [read_study(sorted(memory.records.glob("*"))).history() for memory in memories]
    assert history[0] == history[1] and len(history[0]) == 12


def test_a_study_in_which_every_trial_fails_goes_on() -> None:
    def objective(trial: Trial) -> float:
        return trial.suggest_float("x", 0, 1) * math.nan

    study = worker.optimized(worker.tiny_sampler(), objective, 10)
    assert len({trial.params["x"] for trial in study.trials}) == 10
    assert study.sampler.stats["fallbacks"] == 0


@pytest.mark.parametrize(
    "error",
    [
        optuna.exceptions.StorageInternalError("read only"),
        RuntimeError("Error: did not possess lock"),  # a journal, when the machine hangs
        OSError(28, "No space left on device"),
    ],
    ids=repr,
)
def test_a_storage_that_takes_no_attributes_costs_no_trial(monkeypatch, error: Exception) -> None:
    study = optuna.create_study(sampler=worker.tiny_sampler())
    expected = worker.optimized(worker.tiny_sampler(), worker.mixed_objective, 8)
    refuse = Mock(side_effect=error)
    monkeypatch.setattr(study._storage, "set_trial_system_attr", refuse)
    monkeypatch.setattr(study._storage, "set_trial_user_attr", refuse)
    study.optimize(worker.mixed_objective, n_trials=8)
    assert worker.params_of(study) == worker.params_of(expected)


@pytest.mark.parametrize("n_trials_before", [0, 3])
def test_a_range_without_end_is_an_error_that_names_it(n_trials_before: int) -> None:
    study = worker.optimized(worker.tiny_sampler(), worker.mixed_objective, n_trials_before)
    for ends in ((0.0, math.inf), (-math.inf, 0.0)):
        with pytest.raises(UnsupportedDomainError, match=r"'width'.*inf"):
            study.optimize(lambda trial: trial.suggest_float("width", *ends), n_trials=1)  # noqa: B023


@pytest.mark.parametrize("name", [3, None, ("a", 1)])
def test_a_name_that_is_no_text_is_refused_with_the_first_trial(name: Any) -> None:
    study = optuna.create_study(sampler=DRESampler(seed=0))
    with pytest.raises(UnsupportedDomainError, match="its name must be a text, such as"):
        study.optimize(lambda trial: trial.suggest_float(name, 0.0, 1.0), n_trials=1)


@pytest.mark.parametrize("seed", [-1, 1.5, True])
def test_a_wrong_seed_is_named(seed: Any) -> None:
    with pytest.raises(ValueError, match=f"seed must be a non-negative integer.*{seed}"):
        DRESampler(seed=seed)


def test_arguments_are_keyword_only() -> None:
    with pytest.raises(TypeError):
        DRESampler(1)  # type: ignore[misc]
