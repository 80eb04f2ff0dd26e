"""What past studies have saved, as far as records tell."""

import numpy as np
import pytest
from remembered import SPACE, header, loss, objective, tune, write_study

from dre_plugins import Memory
from dre_plugins.memory.recorded_study import RecordedStudy, RecordedTrial
from dre_plugins.memory.records import read_study
from dre_plugins.memory.savings import MIN_STUDIES, savings, share_beaten
from dre_plugins.recommend.trials import Trial, TrialState


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
