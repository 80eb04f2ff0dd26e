"""A memory that misleads: trials that contradict past studies do without them."""

import pickle

import pytest
from remembered import configurations, continued, loss, tune, write_studies

from dre_plugins import Memory

pytestmark = pytest.mark.usefixtures("small_priors")


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
