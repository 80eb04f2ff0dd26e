"""Files of past tasks: where they cannot be written, past studies are learnt from all the same."""

import errno
import io
import os
from pathlib import Path

import pytest
from remembered import SPACE, tune, write_studies

from dre_plugins.memory.selection import overlap
from dre_plugins.space import SearchSpace


def test_studies_that_have_searched_nothing_have_nothing_in_common():
    assert overlap(SearchSpace({}), SearchSpace({})) == overlap(SearchSpace({}), SPACE) == 0.0


def test_forgotten_studies_are_in_no_file(memory):
    write_studies(memory, "abc")
    tune(memory, 0)
    assert [*memory.tasks.iterdir()]
    memory.forget(memory.index().entries[:1])
    assert not [*memory.tasks.iterdir()]
    assert tune(memory, 0).stats["past_studies"] == 2


@pytest.mark.parametrize(
    ("code", "is_known", "has_learnt"),
    [(errno.EROFS, *known) for known in [(True, False), (True, True), (False, False)]]
    + [(code, False, False) for code in (errno.ENOSPC, errno.EFBIG)],
)
def test_a_folder_that_is_full_or_read_only_is_learnt_from(
    memory, monkeypatch, caplog, code, is_known, has_learnt
):
    def files():
        return {memory.path / "index.json", *filter(Path.is_file, memory.path.rglob("*"))}

    write_studies(memory, "abc", n_trials=20)
    if has_learnt:
        tune(memory, 0, name="before")
    before = files()

    def refusing(opened, reading):
        def refused(path, mode="r", *rest, **options):
            is_inside = not isinstance(path, int) and memory.path in Path(path).parents
            if is_inside and mode not in reading:
                raise OSError(code, os.strerror(code), str(path))
            return opened(path, mode, *rest, **options)

        return refused

    if is_known:  # on NFS, a server may answer late that the folder has become read only
        # An administrator, as in a container, may write to any folder whatever its permissions.
        monkeypatch.setattr(os, "access", lambda path, _: memory.path not in [path, *path.parents])
    monkeypatch.setattr(os, "open", refusing(os.open, ()))
    monkeypatch.setattr(io, "open", refusing(io.open, ("r", "rb")))
    monkeypatch.setattr(Path, "open", refusing(Path.open, ("r", "rb")))  # Python 3.10
    study = tune(memory, 4)
    assert study.explain(0).source == "past-studies" and study.stats["past_studies"] == 3
    assert files() == before
    assert study.stats["memory_errors"] == 4
    assert caplog.text.count(f"cannot be written (OSError: [Errno {code}]") == 1
