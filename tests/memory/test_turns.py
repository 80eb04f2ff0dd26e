"""Which trials use a memory: the first ones, and none that contradict it."""

import pickle
from dataclasses import replace

import pytest
from remembered import SPACE, configurations, continued, loss, tune, write_studies

from dre_plugins import AskTell, Memory
from dre_plugins.memory.priors import digest_of
from dre_plugins.memory.records import read_study

pytestmark = pytest.mark.usefixtures("small_priors")


def test_of_three_suggestions_two_are_the_memorys_and_the_universal_prior_reads_it_later(memory):
    """Whatever the trials were so far."""
    from dre_plugins import MetaDataset, Prior

    write_studies(memory, "ab", 20)
    tasks = [read_study(entry.files).task() for entry in memory.index().entries]
    tasks.sort(key=lambda task: digest_of([replace(task, name="")]))
    prior = Prior.of_few(MetaDataset.of(tasks))
    study = tune(memory, 11)
    assert study.stats["memory_contradicted"] == 0
    equal = []
    for number in range(11):
        of_others = prior if number in (0, 2) else "universal"
        without = AskTell(SPACE, seed=0, memory=False, prior=of_others)
        for trial in study.trials[:number]:
            without.add(trial.configuration, trial.value)
        equal.append(without.ask() == (number, study.trials[number].configuration))
    assert equal == [True] * 3 + [False] * 7 + [True]
    sources = [study.explain(number).source for number in range(11)]
    assert sources == ["prior", "random", "model", *["universal-prior"] * 8]


def test_only_suggestions_of_past_studies_name_them_and_at_most_three(memory):
    write_studies(memory, "abcde", 20)
    study = tune(memory, 6)
    explained = [study.explain(number) for number in range(6)]
    named = {number for number in range(6) if explained[number].past_studies}
    assert named == {n for n in range(6) if explained[n].source != "random"} == {0, 2, 3, 4, 5}
    assert str(explained[0]).endswith(" and 2 more")


def test_of_a_batch_every_second_suggestion_is_the_memorys(memory):
    write_studies(memory, "ab", 20)
    study = tune(memory, 1)
    batch = study.ask_batch(5)  # numbers 1 to 5
    sources = [study.explain(number).source for number, _ in batch]
    assert sources == ["random", "model", "random", "model", "random"]
    assert len({tuple(configuration.values()) for _, configuration in batch}) == 5


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_trials_that_contradict_past_studies_do_without_them(memory, sign):
    """Studies of the mirrored loss lead to the worst region; those of the same one do not."""
    write_studies(memory, "abc", 30, sign=sign)
    study = tune(memory, 12)
    contradicted = study.stats["memory_contradicted"]
    assert contradicted == (0 if sign > 0 else 8)  # numbers 2 to 9
    if sign < 0:
        assert min(loss(trial.configuration) for trial in study.trials) < 1.0


def test_past_trials_that_are_all_equal_are_no_failure(memory):
    write_studies(memory, "a", sign=0.0)
    assert not tune(memory, 1).stats["memory_errors"]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_failure_does_not_contradict_past_studies(memory, bad):
    write_studies(memory, "abc", 30)
    study = tune(memory, 1)
    number, _ = study.ask()
    study.tell(number, bad)
    assert not continued(study, 9).stats["memory_contradicted"]


def test_a_contradiction_depends_on_the_trials_only(memory):
    elsewhere = Memory(memory.path.with_name("elsewhere"))
    for place in (memory, elsewhere):
        write_studies(place, "abc", 30, sign=-1.0)
    resumed = continued(pickle.loads(pickle.dumps(tune(elsewhere, 6))), 4)
    assert resumed.stats["memory_contradicted"] > 0
    assert configurations(resumed) == configurations(tune(memory, 10))
