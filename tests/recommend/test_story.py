"""How one suggestion is made: evidence once, the schedule, and one fit of whose turn it is."""

from collections import Counter

import numpy as np
import pytest
from small_spaces import PLANE, history_of
from test_universal_proposer import SETTINGS

from dre_plugins.recommend import Recommender, schedule
from dre_plugins.recommend.evidence import Evidence
from dre_plugins.recommend.proposers.ensemble import EnsembleProposer
from dre_plugins.recommend.proposers.space_filling import SpaceFilling
from dre_plugins.recommend.proposers.universal import UniversalProposer
from dre_plugins.space.seen import Seen


@pytest.fixture
def calls(monkeypatch) -> Counter[str]:
    """Count what one suggestion calls."""
    counted: Counter[str] = Counter()

    def count(owner, name, label):
        original = getattr(owner, name)

        def counting(*arguments, **keywords):
            counted[label] += 1
            return original(*arguments, **keywords)

        monkeypatch.setattr(owner, name, counting)

    count(Evidence, "of", "evidence")
    count(schedule, "proposer_for", "schedule")
    count(Seen, "of", "seen")
    for proposer in (EnsembleProposer, UniversalProposer, SpaceFilling):
        count(proposer, "__init__", f"new {proposer.__name__}")
        count(proposer, "propose", proposer.__name__)
    return counted


@pytest.mark.parametrize(
    ("index", "proposer"), [(8, "EnsembleProposer"), (9, "UniversalProposer")]
)
def test_one_suggestion_asks_each_once(calls, index: int, proposer: str) -> None:
    Recommender(PLANE, SETTINGS, seed=0).suggest(history_of(8), index=index)
    assert calls == Counter(["evidence", "schedule", "seen", f"new {proposer}", proposer])


def test_a_start_up_point_asks_no_model(calls) -> None:
    Recommender(PLANE, SETTINGS, seed=0).suggest([], index=0)
    assert calls == Counter(["evidence", "seen", "new SpaceFilling", "SpaceFilling"])


def test_a_batch_fits_each_model_once_and_asks_it_in_its_turns(calls) -> None:
    batch = Recommender(PLANE, SETTINGS, seed=0).suggest(history_of(8), 4, index=8)
    assert len({tuple(np.round(part.units, 9)) for part in batch}) == 4
    once = ["evidence", "seen", "new EnsembleProposer", "new UniversalProposer"]
    twice = ["EnsembleProposer", "UniversalProposer"] * 2
    assert calls == Counter([*once, *twice, *["schedule"] * 4])
