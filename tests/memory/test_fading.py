"""Past studies that the trials of a study contradict are left out, one by one."""

from __future__ import annotations

import math
import pickle
import shutil
from collections import Counter

import numpy as np
import pytest
from remembered import SPACE, header, loss, tune, write_study

from dre_plugins import Memory, MetaDataset
from dre_plugins.memory import study as study_memory
from dre_plugins.recommend.trials import Trial, TrialState
from dre_plugins.space import Float, Integer, SearchSpace
from dre_plugins.transfer.found import FadingPrior, expected_by
from dre_plugins.transfer.metadata import Task

pytestmark = pytest.mark.usefixtures("small_priors")


def trials_of(seed, n_trials, sign=1.0):
    """Return random trials of the loss, or of its mirror image."""
    rng = np.random.default_rng(seed)
    drawn = [SPACE.to_configuration(rng.random(SPACE.n_parameters)) for _ in range(n_trials)]
    return [Trial(found, TrialState.COMPLETE, -sign * loss(found)) for found in drawn]


def task_of(name, sign=1.0):
    return Task.from_trials(name, SPACE, trials_of(ord(name), 30, sign))


class Fading(FadingPrior):
    """Give the names of the tasks that are kept instead of their prior, and count trainings."""

    def __init__(self, signs):
        self.trainings = 0
        tasks = [task_of(name, sign) for name, sign in signs.items()]
        super().__init__(tuple(signs), MetaDataset(tuple(tasks)), self._names)

    def _names(self, metadata):
        self.trainings += 1
        return tuple(task.name for task in metadata)

    def kept(self, history):
        return self.for_turns(SPACE, history, range(2), Counter())[0]


MIXED = {"a": 1.0, "b": -1.0, "c": 1.0, "d": -1.0}


def test_only_tasks_that_agree_are_kept_once_there_are_four_trials():
    fading, history = Fading(MIXED), trials_of(5, 20)
    assert {fading.kept(history[:n]) for n in range(4)} == {("a", "b", "c", "d")}
    assert {fading.kept(history[:n]) for n in range(4, 21)} == {("a", "c")}
    assert fading.trainings == 1


def test_tasks_are_judged_anew_only_where_the_trials_have_doubled():
    fading, history = Fading(MIXED), trials_of(5, 16)
    alike = [Trial(trial.configuration, TrialState.COMPLETE, -9.0) for trial in history[:4]]
    assert fading.kept(alike) == ("a", "b", "c", "d")  # nothing to compare
    assert fading.kept([*alike, *history[4:7]]) == ("a", "b", "c", "d")
    assert fading.kept([*alike, *history[4:8]]) == ("a", "c")
    mirrored = trials_of(6, 7, sign=-1.0)
    assert fading.kept([*history[:8], *mirrored]) == ("a", "c")
    running = [Trial(trial.configuration, TrialState.RUNNING) for trial in history]
    assert fading.kept([*running, *history[:3]]) == ("a", "b", "c", "d")
    assert fading.kept([*running, *history[:4]]) == ("a", "c")
    assert fading.trainings == 1


def test_what_contradicts_all_tasks_leaves_none_and_is_counted():
    fading, history, stats = Fading(MIXED | {"b": 1.0, "d": 1.0}), trials_of(5, 8, -1.0), Counter()
    assert fading.for_turns(SPACE, history, range(8, 12), stats) == (None, 0)
    assert stats == {"memory_contradicted": 2}
    assert fading.for_turns(SPACE, history, range(9, 10), stats) == (None, 0)
    assert stats == {"memory_contradicted": 2}  # 9 is no turn of the memory
    assert fading.for_turns(SPACE, [], range(8, 12), stats) == (tuple("abcd"), 2)


def test_a_past_task_expects_what_its_nearest_trials_had():
    task = task_of("a")
    assert np.corrcoef(expected_by(task, SPACE, task.units), task.values)[0, 1] > 0.9
    other = SearchSpace({"layers": Integer(1, 8), "learning_rate": Float(1e-4, 1.0, "log")})
    renamed = expected_by(task, other, task.units[:, ::-1])
    assert np.allclose(renamed, expected_by(task, SPACE, task.units))
    with pytest.raises(ValueError, match="in common"):
        expected_by(task, SearchSpace({"z": Float(0.0, 1.0)}), task.units[:, :1])


def test_what_failed_is_worst_and_what_was_pruned_says_nothing():
    units = np.array([[0.1, 0.5], [0.5, 0.5], [0.9, 0.5]])
    nothing, no = np.full(3, math.nan), np.zeros(3, dtype=bool)
    task = Task("a", SPACE, units, np.array([1.0, math.nan, 2.0]), np.array([False, True, False]))
    low, failed, high = expected_by(task, SPACE, units)
    assert failed < low < high
    pruned = Task("a", SPACE, units, np.array([1.0, math.nan, 2.0]), no)
    low, middle, high = expected_by(pruned, SPACE, units)
    assert middle == pytest.approx((low + high) / 2, rel=1e-3)
    assert not expected_by(Task("a", SPACE, units, nothing, no), SPACE, units).any()


# ---- a memory that misleads


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_trials_that_contradict_past_studies_do_without_them(memory, sign):
    """Studies of the mirrored loss lead to the worst region; those of the same one do not."""
    for past in "abc":
        write_study(memory, past, 30, sign=sign)
    study = tune(memory, 12)
    contradicted = study.stats["memory_contradicted"]
    assert contradicted == (0 if sign > 0 else 4)  # numbers 4, 6, 8 and 10
    if sign < 0:
        assert min(loss(trial.configuration) for trial in study.trials) < 1.0


def write_mixed(memory):
    for past in "abc":
        write_study(memory, past, 30)
        write_study(memory, f"mirrored {past}", 30, sign=-1.0)


def test_of_a_mixed_memory_the_related_studies_stay_and_are_named(memory):
    write_mixed(memory)
    study = tune(memory, 10)
    assert study.explain(0).past_studies.endswith(" and 3 more")
    explained = [study.explain(number) for number in (4, 6, 8)]
    named = {explanation.past_studies for explanation in explained} - {None}
    assert named == {", ".join(header(past, past).dated for past in "abc")}
    assert study.stats["memory_contradicted"] == 0


def test_priors_of_those_kept_are_trained_once_and_a_restart_changes_nothing(memory, monkeypatch):
    write_mixed(memory)
    elsewhere = Memory(shutil.copytree(memory.path, memory.path.with_name("elsewhere")))
    straight = tune(memory, 10)
    assert len([*memory.priors.glob("*.safetensors")]) == 2
    shutil.copytree(memory.priors, elsewhere.priors)
    monkeypatch.setattr("dre_plugins.transfer.prior.Prior.of_few", None)  # none is trained
    resumed = pickle.loads(pickle.dumps(tune(elsewhere, 5)))
    for _ in range(5):
        number, configuration = resumed.ask()
        resumed.tell(number, loss(configuration))
    assert resumed.stats["memory_errors"] == 0
    assert [t.configuration for t in resumed.trials] == [t.configuration for t in straight.trials]
    memory.forget(memory.index().entries[:1])
    assert not [file for file in memory.priors.iterdir() if file.suffix != ".lock"]


def test_a_training_that_fails_is_one_warning_and_the_study_goes_on(memory, monkeypatch, caplog):
    write_mixed(memory)
    study = tune(memory, 4)

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(study_memory, "trained_prior", full)
    for _ in range(4):
        number, configuration = study.ask()
        study.tell(number, loss(configuration))
    assert study.stats["memory_errors"] == 1
    assert study.explain(4).past_studies is None
    assert caplog.text.count("no space left on device") == 1
