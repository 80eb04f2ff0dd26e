"""The regression gate: that it passes, what it notices, and what it lets through."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sabotages import SABOTAGES, verdicts

from dre_bench import gate

NAMES = [f"{measure} {place}" for measure in ("order", "pick") for place in range(40)]


def figures(worse: float = 0.0, noise: float = 0.0, seed: int = 0) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    return {name: -1.0 + worse + noise * rng.normal() for name in NAMES}


def is_worse(found: dict[str, float]) -> list[bool]:
    return [verdict.is_worse for verdict in gate.compare(figures(), found)]


def test_what_did_not_change_is_not_worse() -> None:
    assert is_worse(figures()) == [False, False]
    for verdict in gate.compare(figures(), figures()):
        assert (verdict.changed, verdict.difference, verdict.lowest, verdict.highest) == (
            0,
            0.0,
            0.0,
            0.0,
        )


def test_a_difference_beyond_the_noise_is_worse() -> None:
    assert is_worse(figures(worse=0.15, noise=0.2)) == [True, True]
    assert is_worse(figures(worse=-0.15, noise=0.2)) == [False, False]
    assert is_worse(figures(worse=0.05)) == [True, True]


def test_what_is_too_small_passes() -> None:
    assert is_worse(figures(worse=0.5 * gate.MARGIN)) == [False, False]
    assert is_worse(figures(worse=0.03, noise=0.2)) == [False, False]


def test_noise_of_a_platform_rarely_fails() -> None:
    alarms = [any(is_worse(figures(noise=0.3, seed=seed))) for seed in range(300)]
    assert np.mean(alarms) <= 4 * gate.ERROR  # two measures


def test_new_runs_need_new_figures() -> None:
    with pytest.raises(ValueError, match="make gate-update"):
        gate.compare({}, figures())


def test_figures_are_written_with_bounds(tmp_path: Path) -> None:
    path = tmp_path / "gate.json"
    gate.write_figures(figures(noise=0.1), path)
    assert gate.read_figures(path) == figures(noise=0.1)
    low, mean, high = json.loads(path.read_text())["means with 99 % bounds"]["order"]
    assert low < mean < high < -0.9


def test_every_run_has_a_stored_figure() -> None:
    named = {
        f"{measure} {run}"
        for run in gate.runs_of(gate.SEEDS)
        for measure in (["study"] if run.is_study else ["order", "pick"])
    }
    assert gate.read_figures().keys() == named


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_search_is_not_worse_than_stored() -> None:
    runs = gate.runs_of(gate.QUICK_SEEDS, with_studies=False)
    found = gate.compare(gate.read_figures(), gate.measured(runs))
    print(*found, sep="\n")
    assert {verdict.measure for verdict in found} == {"order", "pick"}
    assert not [str(verdict) for verdict in found if verdict.is_worse]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name", ["random ranks", "acquisition upside down", "a tenth of the steps"]
)
def test_a_sabotage_is_caught(name: str) -> None:
    assert any(verdict.is_worse for verdict in verdicts(name))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["other seeds", "rounding errors"])
def test_another_draw_is_no_sabotage(name: str) -> None:
    found = verdicts(name)
    assert all(verdict.changed for verdict in found)
    assert not any(verdict.is_worse for verdict in found)


def test_sabotages_leave_nothing_behind() -> None:
    from dre_plugins.engine import get_preset
    from dre_plugins.recommend import search
    from dre_plugins.recommend.proposers import ensemble

    before = (get_preset("default"), ensemble.ACQUISITIONS, search.N_ROUNDS)
    for sabotage in SABOTAGES.values():
        with sabotage():
            pass
    assert (get_preset("default"), ensemble.ACQUISITIONS, search.N_ROUNDS) == before
