"""`DRESampler` with past studies, whatever their search spaces."""

from collections.abc import Sequence

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import TrialState
from optuna_past import SPACE, loss_of, objective, past_study, sampler_of, source_of, tuned
from optuna_worker import optimized

from dre_plugins import AskTell, DRESampler, PastTasks
from dre_plugins.adapters.optuna.sources import metadata_from_studies
from dre_plugins.space import Float, Integer

pytestmark = pytest.mark.usefixtures("small_priors")


@pytest.mark.parametrize("argument", ["past_studies", "prior"])
def test_a_resumed_study_does_not_learn_from_itself(argument, tmp_path):
    """Past studies in the storage of the study that goes on."""
    url = f"sqlite:///{tmp_path}/studies.db"
    for seed in range(3):
        optuna.copy_study(
            from_study_name=f"past {seed}", from_storage=past_study(seed)._storage, to_storage=url
        )
    metadata = metadata_from_studies(url)

    def trials_of(name: str, parts: Sequence[int]) -> list[dict]:
        for n_trials in parts:
            past = url if name == "resumed" else metadata
            if argument == "prior":
                read = metadata_from_studies(url) if name == "resumed" else metadata
                past = PastTasks.of(read).with_mapping({"depth": "depth"})
            of_study = {"study_name": name, "storage": url, "load_if_exists": True}
            study = optimized(sampler_of(**{argument: past}), objective, n_trials, **of_study)
        return [trial.params for trial in study.trials]

    resumed = trials_of("resumed", [3, 3])
    assert resumed == trials_of("in one go", [6])


def test_a_study_whose_name_is_in_several_storages_does_not_learn_from_itself(tmp_path):
    urls = [f"sqlite:///{tmp_path}/{day}.db" for day in ("monday", "tuesday")]
    named = [(urls[0], "same"), (urls[0], "same (2)"), (urls[1], "same")]
    for seed, (url, name) in enumerate(named):
        study = optuna.create_study(storage=url, study_name=name)
        study.add_trials(past_study(seed, n_trials=5).trials)
    assert [task.name for task in metadata_from_studies(urls)][1:] == ["same (2)", "same (3)"]
    sampler = sampler_of(past_studies=urls)
    study.sampler = sampler  # of Tuesday
    study.optimize(objective, n_trials=1)
    assert sampler.explain(study, 5).past_studies == "same (2)"


def test_a_sampler_of_several_studies_forgets_nothing():
    """Each study learns from all past ones but itself, whatever the sampler did before."""
    metadata = metadata_from_studies([past_study(seed) for seed in range(3)])

    def first_trial(sampler: DRESampler, name: str) -> dict:
        return optimized(sampler, objective, 1, study_name=name).trials[0].params

    shared = sampler_of(past_studies=metadata)
    names = ["past 0", "past 1", "new", "past 0"]
    found = [first_trial(shared, name) for name in names]
    assert found == [first_trial(sampler_of(past_studies=metadata), name) for name in names]


def test_a_finished_ask_tell_is_a_past_study():
    """In a list with Optuna's studies, and for another `AskTell`."""
    space = {"rate": Float(1e-4, 1.0, "log"), "depth": Integer(1, 10)}
    finished = AskTell(space, direction="maximize", seed=0, prior=None, name="finished")
    for number in range(10):
        _, configuration = finished.ask()
        finished.report(number, 1 if number == 3 else 2, number)
        value = -loss_of(**configuration, kind="b")
        finished.stop(number) if number == 3 else finished.tell(number, value)
    finished.ask()
    several = AskTell(space, direction=["minimize", "maximize"], name="several")
    past = [past_study(0), finished, finished, several]
    read = metadata_from_studies(past)
    assert read.skipped == {"study that is given twice": 1, "study with several objectives": 1}
    assert [task.name for task in read] == ["past 0", "finished"]
    task = read.tasks[1]
    assert task.counts() == {"complete": 9, "pruned": 1, "failed": 0}
    best = task.trials()[int(np.nanargmax(task.values))]
    assert best.configuration == pytest.approx(finished.best.configuration)
    study = tuned(sampler_of(past_studies=past), 1)
    assert study.trials[0].user_attrs["dre:explanation"]["past_studies"] == "past 0, finished"
    other = AskTell(space, seed=0, prior=PastTasks([finished.task()]))
    assert abs(np.log10(other.ask()[1]["rate"]) + 2) < 1
    assert str(other.explain(0)).endswith("learnt from finished")
    with pytest.raises(ValueError, match="number of objectives must be 1, got 2"):
        several.task()


# ---- past studies whose spaces differ


MATRIX = {
    "a parameter is missing": {"space": {n: SPACE[n] for n in ("rate", "kind")}},
    "there is an extra parameter": {"space": {**SPACE, "momentum": FloatDistribution(0, 1)}},
    "ten times wider range": {"space": {**SPACE, "rate": FloatDistribution(1e-5, 10, log=True)}},
    "reordered categories": {"space": {**SPACE, "kind": CategoricalDistribution(["c", "a", "b"])}},
    "other categories": {
        "space": {**SPACE, "kind": CategoricalDistribution(["x", "b", "c", "a", "y"])}
    },
    "float for int, linear for log": {
        "space": {**SPACE, "depth": FloatDistribution(1, 10), "rate": FloatDistribution(1e-4, 1)}
    },
    "maximize": {"direction": "maximize", "value_of": lambda loss: -loss},
}


@pytest.mark.parametrize("name", MATRIX)
def test_past_studies_may_differ(name):
    past = [past_study(seed, **MATRIX[name]) for seed in range(4)]
    study = tuned(sampler_of(past_studies=past), 4)
    assert source_of(study.trials[0]) == "past-studies"
    assert study.trials[0].params["kind"] == "b"
    assert study.sampler.stats["fallbacks"] == 0


def test_past_studies_without_anything_to_rank_are_left_out():
    """Studies without trials, and studies in which no trial was completed."""
    good = [past_study(seed) for seed in range(4)]
    empty = optuna.create_study(study_name="empty")
    failed = past_study(7, states=[TrialState.FAIL])
    metadata = metadata_from_studies([*good, empty, failed])
    assert metadata.skipped == {"empty study": 1}
    with_them, without = (
        tuned(sampler_of(past_studies=past), 3).trials for past in (metadata, good)
    )
    assert [trial.params for trial in with_them] == [trial.params for trial in without]
    constant = optuna.create_study(study_name="fixed")
    constant.optimize(lambda _: 1.0, 2)
    with pytest.raises(ValueError, match=r"left out: .*'fixed'.*, where no parameter varies"):
        sampler_of(past_studies=constant)


@pytest.mark.parametrize(
    "past", [[], [optuna.create_study()], [past_study(0, states=[TrialState.FAIL])]]
)
def test_past_studies_with_nothing_to_learn_from_are_refused_at_once(past):
    with pytest.raises(ValueError, match="nothing to learn from"):
        DRESampler(past_studies=past)


@pytest.mark.parametrize(
    ("past", "remedy"),
    [(past_study(0), ": train a prior"), ("storage", " objectives, .*: leave it out, or")],
)
def test_past_studies_have_one_objective(past, remedy):
    study = optuna.create_study(directions=["minimize"] * 2, sampler=sampler_of(past_studies=past))
    with pytest.raises(ValueError, match=f"cannot be used with 2{remedy}"):
        study.ask({"rate": SPACE["rate"]})


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("past_studies", optuna.create_study().trials_dataframe(), "a study, .* of a table"),
        *((name, 3, "") for name in ("valid", "constraints_func", "independent_sampler")),
        ("warn_independent_sampling", "no", "True or False"),
    ],
)
def test_arguments_of_another_kind_are_refused_by_name(argument, value, message):
    with pytest.raises(ValueError, match=rf"^{argument} must be {message}.*, got "):
        DRESampler(**{argument: value})


def test_order_of_categories_and_unit_of_values_change_nothing():
    plain, reordered, rescaled = (
        tuned(sampler_of(past_studies=[past_study(seed, **how) for seed in range(3)]), 4).trials
        for how in ({}, MATRIX["reordered categories"], {"value_of": lambda loss: 4.0 * loss})
    )
    expected = [trial.params for trial in plain]
    assert [trial.params for trial in rescaled] == expected
    assert [trial.params for trial in reordered] == expected


def test_a_metric_on_another_scale_says_what_is_good_all_the_same():
    steep = {"value_of": lambda loss: np.exp(3.0 * loss)}
    past = [past_study(seed, **steep) for seed in range(3)]
    first = tuned(sampler_of(past_studies=past), 1).trials[0]
    assert source_of(first) == "past-studies"
    assert first.value < np.quantile([trial.value for trial in past_study(0).trials], 0.1)


def test_a_branch_tells_nothing_of_the_parameters_of_another():
    """The first trial, before the study has shown its conditions."""

    def of_branches(trial: optuna.Trial) -> float:
        if trial.suggest_categorical("kind", ["svm", "forest"]) == "svm":
            return (np.log10(trial.suggest_float("c", 1e-3, 1e3, log=True)) - 1) ** 2
        depth = trial.suggest_int("depth", 1, 20)
        if trial.suggest_categorical("bootstrap", [True, False]):
            return 0.1 + abs(depth - 7) / 3 + trial.suggest_float("share", 0.1, 1.0)
        return 0.5 + abs(depth - 7) / 3

    for seed in (6, 7, 10):
        past = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
        past.optimize(of_branches, 30)
        study = optimized(DRESampler(seed=seed, past_studies=past), of_branches, 1)
        assert study.best_value < 0.1


def test_a_study_avoids_what_has_failed_in_the_past():
    """Large rates crash, and the best value is just below."""

    def crashing(trial: optuna.Trial) -> float:
        rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
        width = trial.suggest_float("width", 0.0, 1.0)
        if rate > 0.02:
            raise ValueError
        return -np.log10(rate) + (width - 0.3) ** 2

    for seed in range(3):
        past = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
        past.optimize(crashing, 40, catch=(ValueError,))
        study = optuna.create_study(sampler=sampler_of(past_studies=past))
        study.optimize(crashing, 3, catch=(ValueError,))
        assert study.trials[0].params["rate"] < 0.05 and study.best_value < 2.5
