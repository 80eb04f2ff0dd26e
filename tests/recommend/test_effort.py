from __future__ import annotations

import numpy as np
import pytest

from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.recommend import AskTell
from dre_plugins.recommend.ensemble.effort import (
    MAX_ROWS,
    MIN_LENGTH,
    MIN_MEMBERS,
    Effort,
    effort_for,
    n_of_objectives,
)
from dre_plugins.space import Float


def effort(n_objectives: int, n_constraints: int, length: int = 128) -> Effort:
    return effort_for(n_objectives, n_constraints, n_ensemble=10, n_members=10, length=length)


@pytest.mark.parametrize(("n_constraints", "length"), [(1, 128), (2, 128), (10, 32)])
def test_few_constraints_and_short_studies_have_all_members(n_constraints, length) -> None:
    assert effort(1, n_constraints, length) == Effort(20, 10, length)
    assert effort(3, 1) == Effort(6, 10, 128)


@pytest.mark.parametrize("n_objectives", [1, 2, 3])
@pytest.mark.parametrize("n_constraints", [3, 4, 5, 7, 10])
def test_many_constraints_share_what_a_suggestion_may_cost(n_constraints, n_objectives) -> None:
    found = effort(n_objectives, n_constraints)
    assert found.n_members >= MIN_MEMBERS and found.length >= MIN_LENGTH // 4
    n_rows = n_constraints * found.n_members * found.length
    n_others = 128 * n_of_objectives(n_objectives, 10, found.n_single)
    assert 0.8 * MAX_ROWS < n_rows + n_others <= MAX_ROWS


def test_objectives_share_members() -> None:
    assert [effort(n, 0).n_single for n in (2, 3, 4, 5, 10, 50)] == [10, 6, 5, 4, 2, 2]
    assert [effort(n, 10).n_single for n in (2, 3, 4, 5, 10, 50)] == [5, 3, 2, 2, 2, 2]


@pytest.mark.parametrize(("n_objectives", "n_constraints"), [(3, 10), (1, 30), (2, 100)])
def test_what_is_fitted_for_an_ask_is_bounded(n_objectives, n_constraints, monkeypatch) -> None:
    rows = []
    fit = DeepRankingEnsemble.fit

    def noting(self, lists, *rest, **named):
        rows.append(self.settings.n_members * lists.features.shape[2])
        return fit(self, lists, *rest, **named)

    domains = {f"x{i}": Float(0.0, 1.0) for i in range(3)}
    study = AskTell(domains, direction=["minimize"] * n_objectives, seed=0)
    rng = np.random.default_rng(0)
    planes = rng.normal(size=(n_constraints, 3))
    for x in rng.random((130, 3)):
        violations = {f"c{i}": float(normal @ x) for i, normal in enumerate(planes)}
        values = x.tolist()[:n_objectives]
        configuration = dict(zip(domains, x.tolist(), strict=True))
        study.add(configuration, values if n_objectives > 1 else values[0], constraints=violations)
    monkeypatch.setattr(DeepRankingEnsemble, "fit", noting)
    study.ask()
    assert study.stats["fallbacks"] == 0
    assert sum(rows) <= MAX_ROWS
