from __future__ import annotations

import numpy as np
import pytest

from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.recommend import AskTell
from dre_plugins.recommend.ensemble.effort import (
    MAX_ROWS,
    MIN_LENGTH,
    MIN_MEMBERS,
    of_constraints,
    of_objectives,
)
from dre_plugins.space import Float


@pytest.mark.parametrize(("n_constraints", "length"), [(1, 128), (2, 128), (10, 32)])
def test_few_constraints_and_short_studies_have_all_members(n_constraints, length) -> None:
    assert of_constraints(n_constraints, 10, length, 10) == (10, length)


@pytest.mark.parametrize("n_others", [10, 20])
@pytest.mark.parametrize("n_constraints", [3, 4, 5, 7, 10])
def test_many_constraints_share_what_a_suggestion_may_cost(n_constraints, n_others) -> None:
    members, length = of_constraints(n_constraints, 10, 128, n_others)
    assert members >= MIN_MEMBERS and length >= MIN_LENGTH // 2
    assert n_constraints * members * length + n_others * 128 <= MAX_ROWS
    assert n_constraints * members * length > 0.4 * (MAX_ROWS - n_others * 128)


def test_objectives_share_members() -> None:
    assert [of_objectives(n, 5) for n in (2, 3, 4, 5, 10, 50)] == [5, 5, 5, 4, 2, 2]


def test_what_is_fitted_for_an_ask_is_bounded(monkeypatch) -> None:
    rows = []
    fit = DeepRankingEnsemble.fit

    def noting(self, lists, *rest, **named):
        rows.append(self.settings.n_members * lists.features.shape[2])
        return fit(self, lists, *rest, **named)

    domains = {f"x{i}": Float(0.0, 1.0) for i in range(3)}
    study = AskTell(domains, direction=["minimize"] * 3, seed=0)
    rng = np.random.default_rng(0)
    planes = rng.normal(size=(10, 3))
    for x in rng.random((130, 3)):
        violations = {f"c{i}": float(one @ x) for i, one in enumerate(planes)}
        study.add(dict(zip(domains, x.tolist(), strict=True)), x.tolist(), constraints=violations)
    monkeypatch.setattr(DeepRankingEnsemble, "fit", noting)
    study.ask()
    assert study.stats["fallbacks"] == 0
    assert sum(rows) <= MAX_ROWS
