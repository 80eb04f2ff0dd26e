"""What changes under a search while it runs: the file of its prior, the clock."""

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from readers import make_prior
from searches import MakeSearch, every_framework

from dre_plugins.space import Float, Integer, SearchSpace
from dre_plugins.transfer.prior import Prior, PriorError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "prior.safetensors"
    make_prior(path, space=SearchSpace({"x": Float(0.0, 1.0), "n": Integer(1, 9)}))
    return path


@every_framework
def test_a_prior_whose_file_vanishes_goes_on(framework: MakeSearch, file: Path) -> None:
    undisturbed = framework(prior=file).run(12)
    search = framework(prior=file)
    search.run(4)
    file.unlink()
    search.run(4)
    outcome = search.restarted().run(4)
    assert outcome.configurations == undisturbed.configurations
    assert outcome.n_complete == 12
    assert outcome.stats["fallbacks"] == 0


@every_framework
def test_a_prior_whose_file_is_damaged_is_an_error_at_set_up(framework, file) -> None:
    search = framework(prior=file)
    file.write_bytes(file.read_bytes()[:-100])
    search.run(6)  # it was read as a whole
    with pytest.raises(PriorError, match="damaged"):
        framework(prior=file)
    file.unlink()
    with pytest.raises(PriorError, match="path of a file"):
        framework(prior=file)


@pytest.mark.syne_tune
def test_a_searcher_that_is_made_anew_needs_the_prior_itself(file: Path) -> None:
    """`LastValueMultiFidelitySearcher` makes one at every suggestion."""
    pytest.importorskip("syne_tune")
    from syne_tune.config_space import randint, uniform
    from syne_tune.optimizer.schedulers.searchers.last_value_multi_fidelity_searcher import (
        LastValueMultiFidelitySearcher,
    )

    from dre_plugins.adapters.syne_tune import DRESearcher

    space = {"x": uniform(0, 1), "n": randint(1, 9)}
    searcher = LastValueMultiFidelitySearcher(
        space, searcher=DRESearcher, searcher_kwargs={"prior": Prior.load(file)}
    )
    file.unlink()
    for trial_id in range(4):
        config = searcher.suggest()
        searcher.on_trial_complete(trial_id, config, config["x"], 1)


# ---- the clock


class Jumping(datetime):
    """A clock that jumps by years at each reading, forward and back in turn."""

    looks = count()

    @classmethod
    def now(cls, tz: Any = None) -> datetime:
        jump = timedelta(days=(-1) ** next(cls.looks) * 4000)
        return datetime.now(tz) + jump


@pytest.fixture
def jumping_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    jumps, now = count(), time.time
    monkeypatch.setattr(time, "time", lambda: now() + (-1) ** next(jumps) * 4e8)
    try:
        import optuna.storages._in_memory
    except ImportError:
        pass
    else:
        monkeypatch.setattr(optuna.storages._in_memory, "datetime", Jumping)
    yield


@every_framework
def test_a_clock_that_jumps_changes_nothing(framework, jumping_clock, request) -> None:
    disturbed = framework().run(15)
    assert disturbed.n_complete == 15
    assert disturbed.stats["fallbacks"] == 0
    request.getfixturevalue("monkeypatch").undo()
    assert disturbed.configurations == framework().run(15).configurations
