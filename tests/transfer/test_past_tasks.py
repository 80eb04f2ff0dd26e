"""Past tasks on a study's search space, whatever their own ones are."""

import pickle
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from small_priors import DOMAINS, SPACE, metadata, task

from dre_plugins import AskTell
from dre_plugins.memory.access import StudyMemory
from dre_plugins.recommend import Trial, TrialState
from dre_plugins.space import Categorical, Float, Integer, SearchSpace
from dre_plugins.transfer import past_tasks
from dre_plugins.transfer.metadata import MetaDataset, Task
from dre_plugins.transfer.past_tasks import MAX_TRIALS, N_BEST, PastTasks

RATES = SearchSpace({"lr": Float(1e-4, 1.0, "log"), "layers": Integer(1, 8)})


def past_of(space: SearchSpace, n: int = 30) -> Task:
    return task("past", 3, space, n)


@pytest.mark.parametrize(
    ("domains", "n_known"),
    [
        ({}, 2),
        ({"lr": Float(1e-2, 10.0, "log")}, 2),
        ({"momentum": Float(0.0, 1.0)}, 2),
        ({"layers": None}, 1),
        ({"lr": None, "learning_rate": Float(1e-4, 1.0, "log")}, 2),
        ({"lr": None, "layers": None, "learning_rate": Float(1e-5, 1.0, "log")}, 1),
    ],
)
def test_the_study_may_have_other_names_ranges_and_parameters(domains, n_known) -> None:
    given = {**domains, **{n: d for n, d in RATES.domains.items() if n not in domains}}
    space = SearchSpace({name: domain for name, domain in given.items() if domain is not None})
    past = past_of(RATES)
    (found,) = PastTasks([past]).tasks_on(space)
    names = [{"learning_rate": "lr"}.get(name, name) for name in space.names]
    shared = [column for column, name in enumerate(names) if name in RATES.names]
    assert found.name == "past" and len(found.columns) == len(shared) == n_known
    assert found.features.shape == (30, len(shared))
    best = past.units[np.argsort(-past.values)[:N_BEST]]
    assert found.best.shape == (N_BEST, space.n_parameters)
    lacking = [column for column in range(space.n_parameters) if column not in shared]
    assert np.isnan(found.best[:, lacking]).all()
    for column in shared:
        name, theirs = space.names[column], names[column]
        numbers = RATES.domains[theirs].numbers(best[:, RATES.names.index(theirs)])
        low, high = space.domains[name].low, space.domains[name].high
        there = space.domains[name].numbers(found.best[:, column])
        assert there == pytest.approx(np.clip(numbers, low, high))


def test_without_a_common_value_there_is_no_task() -> None:
    past = past_of(SearchSpace({"batch_size": Categorical((32,)), "x": Float(0.0, 1.0)}))
    tasks = PastTasks([past, past_of(RATES)])
    sizes = SearchSpace({"batch_size": Categorical((16, 64))})
    assert not tasks.may_help(sizes)
    with pytest.raises(ValueError, match=r"no value in common: 'batch_size' is .*16, 64.*32"):
        tasks.tasks_on(sizes)
    with pytest.raises(ValueError, match=r"no parameter in common: \['z'\] in this study"):
        tasks.tasks_on(SearchSpace({"z": Float(0.0, 1.0)}))
    assert [len(found.columns) for found in tasks.tasks_on(RATES)] == [2]
    rate = past_of(SearchSpace({"lr": RATES.domains["lr"]}))
    same = replace(rate, units=np.full((30, 1), 0.5))
    with pytest.raises(ValueError, match=r"two evaluations that differ in .*\['lr', 'layers'\]"):
        PastTasks([same]).tasks_on(RATES)


def test_names_that_only_a_mapping_tells() -> None:
    space = SearchSpace({"step size": Float(1e-4, 1.0, "log"), "levels": Integer(1, 8)})
    past = PastTasks([past_of(RATES)])
    assert not past.may_help(space)
    mapped = past.with_mapping({"step size": "lr", "levels": "layers"})
    (found,) = mapped.tasks_on(space)
    (same,) = past.tasks_on(RATES)
    assert np.array_equal(found.features, same.features) and np.array_equal(found.best, same.best)
    levels = {"levels": Integer(1, 8)}
    assert mapped.knows("levels", levels) and not past.knows("levels", levels)
    assert mapped.completed(levels).names == ("levels", "lr")
    text = "knows step size (there 'lr'), levels (there 'layers'); not: none"
    assert mapped.summary(space).endswith(text)


def test_a_mapping_is_of_all_tasks_whatever_they_call_the_parameter() -> None:
    """And of those that have a value in common with the study's parameter."""
    spaces = [SearchSpace({name: Float(1e-4, 1.0, "log")}) for name in ("lr", "learning_rate")]
    past = PastTasks([past_of(space) for space in spaces])
    mapped = past.with_mapping({"speed": "learning_rate"})
    assert len(mapped.tasks_on(SearchSpace({"speed": Float(1e-4, 1.0, "log")}))) == 2
    kinds = [SearchSpace({"booster": Categorical((*choices,))}) for choices in ("ab", "cd")]
    past = PastTasks([past_of(space) for space in kinds])
    mapped = past.with_mapping({"kind": "booster"})
    assert len(mapped.tasks_on(SearchSpace({"kind": Categorical(("c", "d"))}))) == 1
    with pytest.raises(ValueError, match="mapping joins 'kind' to 'booster', but no value of"):
        mapped.tasks_on(SearchSpace({"kind": Categorical(("e", "f"))}))


def test_what_a_metadata_set_must_have(monkeypatch) -> None:
    def named(number: int, space: SearchSpace = RATES) -> Task:
        return replace(past_of(space), name=f"task {number}")

    assert len(PastTasks.of(MetaDataset.of(map(named, range(3)))).tasks) == 3
    monkeypatch.setattr(past_tasks, "MAX_TASKS", 2)
    last = PastTasks.of(MetaDataset.of(map(named, range(3))))
    assert [task.name for task in last.tasks] == ["task 1", "task 2"]
    with pytest.raises(ValueError, match=r"^There are no past tasks, so there is nothing to"):
        PastTasks.of(MetaDataset(()))
    with pytest.raises(ValueError, match=r"^None of 1 past task has two evaluations that differ"):
        PastTasks.of(MetaDataset.of([past_of(RATES, 1)]))
    with pytest.raises(ValueError, match=r"^tasks must be one past task at least, got \[\]"):
        PastTasks([])
    words = SearchSpace({"lr": Categorical(("low", "high"))})
    with pytest.raises(ValueError, match=r"space without the tasks \['task 1'\]"):
        PastTasks.of(MetaDataset.of([named(0), named(1, words)]))


def test_failed_trials_are_left_out_and_pruned_ones_have_a_place() -> None:
    def trial(lr: float, value: float | None, **state) -> Trial:
        return Trial({"lr": lr, "layers": 4}, value=value, **state)

    whole = [
        trial(lr, 10.0 * lr, state=TrialState.COMPLETE, rungs={1: lr}) for lr in (0.1, 0.2, 0.3)
    ]
    pruned = trial(0.15, None, state=TrialState.PRUNED, rungs={1: 0.15})
    failed = trial(0.9, None, state=TrialState.FAILED)
    past = PastTasks([Task.from_trials("past", RATES, [failed, *whole, pruned])])
    (found,) = past.tasks_on(RATES)
    order = np.argsort(found.ranks)
    assert found.features[order, 0].tolist() == sorted(found.features[:, 0])
    assert found.values[order] == pytest.approx([1.0, 1.5, 2.0, 3.0])


def test_of_many_trials_the_best_and_some_others_are_read() -> None:
    past = past_of(RATES, 3 * MAX_TRIALS)
    (found,) = PastTasks([past]).tasks_on(RATES)
    assert len(found.values) == MAX_TRIALS
    assert found.best[0] == pytest.approx(past.units[past.values.argmax()])
    assert found.values.max() == past.values.max()


def test_what_is_known_of_a_space() -> None:
    past = PastTasks([past_of(RATES), past_of(SearchSpace({"x": Float(0.0, 1.0)}))])
    expected = "the record of 2 past studies knows lr, layers; not: none"
    assert past.summary(RATES) == expected
    assert past.knows("learning_rate", {"learning_rate": Float(1e-3, 1.0, "log")})
    assert past.knows("x", {"x": Float(0, 1)}) and not past.knows("z", {"z": Float(0.0, 1.0)})
    assert {*past.completed({"learning_rate": RATES.domains["lr"]}).names} == {
        *("learning_rate", "layers", "x")
    }


def with_values(values, **options) -> Task:
    repeated = np.resize(np.array(values, dtype=np.float64), 12)
    return replace(past_of(SPACE, 12), values=repeated, **options)


KINDS = {
    "conditions": past_of(SPACE),
    "other categories": past_of(
        SearchSpace({**DOMAINS, "booster": Categorical(("dart", "tree", "new"))})
    ),
    "infinities": with_values([np.inf, -np.inf, 0.0, 1.0]),
    "huge numbers": with_values([1e308, -1e308, 0.0]),
    "no final value": with_values([np.nan], rungs={1.0: np.arange(12.0)}),
    # what tells nothing
    "a single trial": past_of(SPACE, 1),
    "equal values": with_values([1.0]),
    "no parameter": past_of(SearchSpace({"x": Float(0.0, 1.0)})),
}


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.parametrize("tasks", [*([kind] for kind in KINDS), [*KINDS]], ids=" ".join)
def test_whatever_past_tasks_hold_no_suggestion_falls_back(tasks, tmp_path, monkeypatch) -> None:
    given = PastTasks([KINDS[kind] for kind in tasks])
    monkeypatch.setattr(StudyMemory, "_chosen_for", lambda *_: given)
    study = AskTell(SPACE, direction="maximize", seed=0, memory=tmp_path)
    for number in range(6):
        asked, configuration = study.ask()
        study.tell(asked, None if number == 3 else -abs(configuration["max_depth"] - 4.0))
    sources = Counter(study.explain(number).source for number in range(6))
    assert study.stats["fallbacks"] == study.stats["memory_errors"] == 0
    tells_nothing = tasks in (["a single trial"], ["equal values"], ["no parameter"])
    assert not sources["fallback"] and tells_nothing == (not sources["past-studies"])


@pytest.mark.usefixtures("few_candidates")
def test_past_tasks_may_be_the_prior_of_a_study() -> None:
    study = AskTell(SPACE, direction="maximize", seed=0, prior=PastTasks.of(metadata()))
    _, first = study.ask()
    assert first["learning_rate"] == pytest.approx(10 ** (-4 + 4 * 0.4), rel=0.5)
    assert str(study.explain(0)).endswith("learnt from task 0, task 1, task 2")
    copied = pickle.loads(pickle.dumps(study))
    assert copied.ask() == study.ask()


def test_past_studies_have_one_objective() -> None:
    of_study = PastTasks.of(metadata())
    with pytest.raises(ValueError, match=r"cannot be used with 2: train a prior .*Prior\.train"):
        AskTell(SPACE, direction=["minimize"] * 2, prior=of_study)
    with pytest.raises(ValueError, match=r"past studies in its list: .*Prior\.train"):
        AskTell(SPACE, direction=["minimize"] * 2, prior=[None, of_study])


def test_a_metadata_set_is_no_prior_and_not_printed_in_full() -> None:
    message = r"got MetaDataset\(.{,300}…; a study also takes .*, PastTasks, a Prior, and"
    with pytest.raises(ValueError, match=message):
        AskTell(SPACE, prior=metadata())


@pytest.mark.parametrize(("n_failed", "counts"), [(0, (0, 0)), (1, (63, 1)), (250, (48, 16))])
def test_failed_trials_are_read_in_proportion(n_failed, counts) -> None:
    rng = np.random.default_rng(0)
    failed = np.arange(1000) < n_failed
    values = np.where(failed, np.nan, rng.random(1000))
    (found,) = PastTasks([Task("past", RATES, rng.random((1000, 2)), values, failed)]).tasks_on(
        RATES
    )
    assert ((~found.failed).sum(), found.failed.sum()) == counts
    assert found.ended.shape == (sum(counts), 2)
