"""What past studies have saved, as far as records tell."""

import pytest
from remembered import SPACE, header, objective, tune, write_study

from dre_plugins import Memory
from dre_plugins.memory.recorded_study import RecordedStudy, RecordedTrial
from dre_plugins.memory.records import read_study
from dre_plugins.memory.savings import MIN_STUDIES, savings, share_beaten
from dre_plugins.recommend.trials import Trial, TrialState


def recorded(*trials):
    """Return a study of trials, each a source and a value, None if it failed."""
    ended = {}
    for number, (source, value) in enumerate(trials):
        state = TrialState.FAILED if value is None else TrialState.COMPLETE
        ended[number] = RecordedTrial(
            Trial({"lr": 0.1, "layers": 2}, state, value), 0.0, source=source
        )
    return RecordedStudy(header(), (SPACE,), ended)


@pytest.mark.parametrize(
    ("trials", "share"),
    [
        ([("prior", 3.0), ("random", 1.0), ("contrast", 2.0), ("model", 9.0)], 1.0),
        ([("prior", 1.5), ("random", 1.0), ("contrast", 2.0)], 0.5),
        ([("prior", 1.0), ("random", 1.0)], 0.5),
        ([("prior", None), ("random", 1.0)], 0.0),
        ([("prior", None), ("random", None)], 0.5),
        ([("prior", 1.0), ("universal-prior", 0.0)], None),
        ([("random", 1.0), ("model", 2.0)], None),
        ([("", 1.0)], None),
    ],
)
def test_the_share_of_space_filling_trials_that_the_first_suggestion_beats(trials, share):
    assert share_beaten(recorded(*trials)) == share


def test_of_few_studies_nothing_is_known_and_luck_saves_nothing():
    win = recorded(("prior", 2.0), ("random", 1.0))
    loses = recorded(("prior", 1.0), ("random", 2.0))
    assert savings([win] * 9 + [recorded()] * 9).n_studies == 9 < MIN_STUDIES
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
    assert sources[0] == "prior"
