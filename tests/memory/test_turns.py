"""Which trials use past studies: the first ones, and only studies that order them alike."""

import pickle

import numpy as np
import pytest
from remembered import SPACE, configurations, continued, loss, tune, write_studies, write_study

from dre_plugins import AskTell, Memory
from dre_plugins.recommend import schedule


def without_past(trials):
    """Return a study without a memory that got the same trials."""
    study = AskTell(SPACE, seed=0, memory=False)
    for trial in trials:
        study.add(trial.configuration, trial.value)
    return study


def same_as_without(study, number):
    """Return whether a suggestion is made as without a memory."""
    expected = without_past(study.trials[:number])
    is_same = expected.ask() == (number, study.trials[number].configuration)
    return is_same and expected.explain(number).source == study.explain(number).source


def test_past_studies_propose_two_and_the_universal_prior_adds_their_gains_until_the_twentieth(
    memory,
):
    write_studies(memory, "abcde", 20)
    study = tune(memory, 24)
    explained = [study.explain(number) for number in range(24)]
    sources = [explanation.source for explanation in explained]
    later = ["model", "universal-prior"] * 2
    assert sources == ["past-studies"] * 2 + ["universal-prior"] * 18 + later
    assert [n for n in range(24) if explained[n].past_studies] == [*range(20)]
    assert str(explained[0]).endswith(" and 2 more") and explained[0].past_studies.count("(") == 3
    numbers = (0, 2, 9, 17, *range(20, 24))
    assert [n for n in numbers if same_as_without(study, n)] == [*range(20, 24)]
    assert not study.stats["past_contradicted"] and not study.stats["fallbacks"]


def test_from_the_fourth_trial_on_what_past_studies_expect_is_read(memory, tmp_path, monkeypatch):
    folders = memory, Memory(tmp_path / "other")
    for folder in folders:
        write_studies(folder, "abc", 20)
    reading = configurations(tune(folders[0], 6))
    monkeypatch.setattr(schedule, "PAST_FEATURE_TRIALS", ())
    gains_alone = configurations(tune(folders[1], 6))
    assert gains_alone[:3] == reading[:3] and gains_alone[3] != reading[3]


def test_before_two_trials_have_ended_even_suggestions_are_those_of_past_studies(memory):
    write_studies(memory, "ab", 20)
    study = tune(memory, 0)
    first = study.ask_batch(22)
    sources = [study.explain(number).source for number, _ in first]
    # Of those for numbers 1 and 2, one gains 1e-14, but it is the first one again.
    assert sources[:6] == ["past-studies", *["random"] * 3, "past-studies", "random"]
    assert {*sources[7:20:2], *sources[20:]} == {"random"}
    assert "random" in sources[6:20:2]  # nothing is left to gain
    assert len({tuple(configuration.values()) for _, configuration in first}) == 22
    for number, configuration in first[:1]:
        study.tell(number, loss(configuration))
    assert study.explain(study.ask()[0]).source == "random"


def test_start_up_trials_that_are_asked_for_are_space_filling(memory):
    write_studies(memory, "ab", 20)
    study = tune(memory, 5, n_startup_trials=4)
    assert [study.explain(n).source for n in range(5)] == ["random"] * 4 + ["model"]


@pytest.mark.whole_search
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_past_studies_of_the_mirrored_loss_are_contradicted_and_then_reversed(memory, sign):
    """They lead to the worst region first, and from the fifth trial on to the best one."""
    write_studies(memory, "abc", 30, sign=sign)
    study = tune(memory, 12)
    named = [study.explain(n).past_studies for n in range(12)]
    alone = [n for n in range(12) if named[n] is None]
    losses = [loss(trial.configuration) for trial in study.trials]
    assert study.stats["past_contradicted"] == len(alone)
    assert all(same_as_without(study, number) for number in alone)
    assert (min(losses[:2]) > 2.0) == (sign < 0) and min(losses[:5]) < 0.1
    assert alone == ([] if sign > 0 else [3])
    assert [n for n in range(12) if str(named[n]).startswith("reversed ")] == [
        *range(4 if sign < 0 else 12, 12)
    ]


def test_only_past_studies_that_have_a_weight_are_named(memory):
    write_studies(memory, "abd", 30)
    write_studies(memory, "xy", 30, sign=-1.0)
    named = tune(memory, 8).explain(7).past_studies
    assert sorted(name[0] for name in named.split(", ")) == ["a", "b", "d"]


@pytest.mark.parametrize("sign", [0.0, float("nan"), float("inf")])
def test_past_trials_that_are_all_equal_or_say_nothing_are_no_failure(memory, sign):
    write_studies(memory, "a", sign=sign)
    assert configurations(tune(memory, 5)) == configurations(tune(False, 5))
    write_studies(memory, "bc")
    study = tune(memory, 5, name="next")
    assert not study.stats["memory_errors"] and not study.stats["fallbacks"]
    assert study.explain(0).source == "past-studies"


def test_values_of_past_trials_that_are_no_numbers_are_no_failure(memory):
    study = AskTell(SPACE, seed=1, memory=memory)
    for value in (float("inf"), float("nan"), -float("inf"), *np.linspace(0.0, 1.0, 9)):
        study.tell(study.ask()[0], value)
    study = tune(memory, 5)
    assert study.stats["past_studies"] == 1
    assert not study.stats["memory_errors"] and not study.stats["fallbacks"]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_failure_does_not_contradict_past_studies(memory, bad):
    write_studies(memory, "abc", 30)
    study = tune(memory, 1)
    number, _ = study.ask()
    study.tell(number, bad)
    assert not continued(study, 9).stats["past_contradicted"]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_pickled_study_goes_on_the_same(memory, sign):
    elsewhere = Memory(memory.path.with_name("elsewhere"))
    for place in (memory, elsewhere):
        write_study(place, "abc", 30, sign=sign)
    resumed = continued(pickle.loads(pickle.dumps(tune(elsewhere, 6))), 4)
    assert (resumed.stats["past_contradicted"] > 0) == (sign < 0)
    assert configurations(resumed) == configurations(tune(memory, 10))
