"""Priors that are trained ahead, and found by the studies that begin later."""

import errno
import os
from pathlib import Path

import pytest
from remembered import LOGGER, SPACE, header, tune, write_studies

from dre_plugins import Prior
from dre_plugins.memory import choices
from dre_plugins.memory.choices import groups_of, pretrain
from dre_plugins.memory.selection import overlap
from dre_plugins.space import Categorical, Constant, Float, Integer, SearchSpace
from dre_plugins.transfer.training import train_prior
from dre_plugins.transfer.training_state import MetaTrainingSettings

OTHER = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})


@pytest.fixture
def trainings(monkeypatch):
    """Make the long trainings short, and count them."""
    counted = []

    def train(metadata, **options):
        counted.append(len(metadata))
        return Prior.of(train_prior(metadata, settings=MetaTrainingSettings(n_steps=20)))

    monkeypatch.setattr(Prior, "train", staticmethod(train))
    return counted


def pretrained(memory, names):
    """Record studies, and return the file of the prior of all that are recorded."""
    write_studies(memory, names, n_trials=20)
    ((_, entries),) = groups_of(memory.index())
    return pretrain(memory, entries, LOGGER)


def test_studies_are_grouped_by_overlapping_spaces(memory):
    write_studies(memory, "abc")
    wider = SearchSpace(
        {"learning_rate": Float(1e-5, 1.0, "log"), "layers": Integer(1, 9), "z": Float(0.0, 1.0)}
    )
    write_studies(memory, "d", space=wider)
    write_studies(memory, "ef", space=OTHER)
    spaces, studies = zip(*groups_of(memory.index()), strict=True)
    identities = [{entry.header.study for entry in entries} for entries in studies]
    assert identities == [{*"abcd"}, {*"ef"}]
    assert set(spaces[0].names) == {"learning_rate", "layers", "z"}


@pytest.mark.parametrize(
    ("more", "other"),
    [
        pytest.param({f"x{number}": Float(0.0, 1.0) for number in range(4)}, {}, id="small part"),
        # too many numbers to list them beside words
        ({"n": Integer(1, 10**6)}, {"n": Categorical(("few", "many"))}),
    ],
)
def test_a_small_part_of_a_space_and_what_contradicts_it_are_no_members(memory, more, other):
    write_studies(memory, "ab", space=SearchSpace({**SPACE.domains, **more}))
    write_studies(memory, "c", space=SearchSpace({**SPACE.domains, **other}))
    assert [len(entries) for _, entries in groups_of(memory.index())] == [2, 1]


def test_studies_that_have_searched_nothing_are_in_no_group(memory):
    for study in "ab":
        write_studies(memory, study, space=SearchSpace({"k": Constant(study)}))
    assert groups_of(memory.index()) == []
    assert overlap(SearchSpace({}), SearchSpace({})) == 0.0


def test_a_study_begins_with_what_was_trained_ahead(memory, trainings):
    write_studies(memory, "xy", sign=float("nan"))  # say nothing, count as known
    path = pretrained(memory, "abcde")
    assert path is not None and trainings == [5]
    study = tune(memory, 1)
    assert study.stats["past_studies"] == 5
    newest = ", ".join(header(name, name).dated for name in "edc")
    assert study.explain(0).past_studies == f"{newest} and 2 more"
    assert [file.name for file in memory.priors.glob("*.safetensors")] == [path.name]
    assert memory.source_studies()[next(iter(memory.source_studies()))] == [*"edcba"]


def test_it_is_trained_once_until_something_is_new(memory, trainings):
    path = pretrained(memory, "abc")
    assert pretrained(memory, "") == path != pretrained(memory, "d")
    assert trainings == [3, 4]
    assert tune(memory, 0).stats["past_studies"] == 4  # the one that knows most


def test_what_knows_too_few_of_the_studies_is_not_used(memory, trainings):
    ahead_of_time = pretrained(memory, "abc")
    write_studies(memory, "d", n_trials=20)  # 3 of 4 are less than 80 %
    prior = choices.prior_for(memory, "study", SPACE, LOGGER)
    assert sorted(prior.card.tasks) == [*"abcd"]
    assert len(list(memory.priors.glob("*.safetensors"))) == 2
    assert ahead_of_time is not None and ahead_of_time.exists()


def test_of_very_many_studies_the_newest_are_taken(memory, trainings, monkeypatch):
    monkeypatch.setattr(choices, "MAX_STUDIES_AHEAD", 2)
    pretrained(memory, "abc")
    assert trainings == [2]


def test_studies_without_a_common_order_have_no_prior(memory, trainings, monkeypatch):
    monkeypatch.setattr("dre_plugins.memory.priors.are_related", lambda metadata: False)
    assert pretrained(memory, "abc") is None
    assert trainings == []


def test_a_folder_that_no_prior_can_be_written_to_is_told_before_the_training(
    memory, trainings, monkeypatch
):
    monkeypatch.setattr(os, "access", lambda path, mode: path != memory.priors)
    with pytest.raises(PermissionError, match="priors"):
        pretrained(memory, "abc")
    assert trainings == []


def test_forgotten_studies_are_in_no_prior(memory, trainings):
    pretrained(memory, "abc")
    memory.forget(memory.index().entries[:1])
    assert not [file for file in memory.priors.iterdir() if file.suffix != ".lock"]


def test_a_damaged_list_of_studies_is_passed_over(memory, trainings):
    pretrained(memory, "abc").with_suffix(".studies").write_bytes(b"\x00")
    study = tune(memory, 1)
    assert (study.stats["past_studies"], study.stats["memory_errors"]) == (3, 0)


@pytest.mark.parametrize(
    ("code", "is_known", "is_trained_ahead"),
    [(errno.EROFS, *known) for known in [(True, False), (True, True), (False, False)]]
    + [(errno.ENOSPC, False, False)],
)
@pytest.mark.usefixtures("trainings")
def test_a_folder_that_is_full_or_read_only_is_learnt_from(
    memory, monkeypatch, caplog, code, is_known, is_trained_ahead
):
    def files():
        return {memory.path / "index.json", *filter(Path.is_file, memory.path.rglob("*"))}

    write_studies(memory, "abc", n_trials=20)
    if is_trained_ahead:
        pretrained(memory, "")
    before, opened = files(), os.open

    def refused(path, *rest, **options):
        if memory.path in Path(path).parents:
            raise OSError(code, os.strerror(code), str(path))
        return opened(path, *rest, **options)

    if is_known:  # on NFS, a server may answer late that the folder has become read only
        # An administrator, as in a container, may write to any folder whatever its permissions.
        monkeypatch.setattr(os, "access", lambda path, _: memory.path not in [path, *path.parents])
    monkeypatch.setattr(os, "open", refused)
    study = tune(memory, 4)
    assert study.explain(0).source == "prior" and study.stats["past_studies"] == 3
    assert files() == before
    assert study.stats["memory_errors"] == 4
    assert caplog.text.count(f"cannot be written (OSError: [Errno {code}]") == 1
