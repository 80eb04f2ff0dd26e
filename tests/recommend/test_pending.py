"""What running trials and batches cost, counted in fits and in fantasies."""

from typing import Any

import numpy as np
import pytest
from presets import FAST, of_steps
from spies import spy

from dre_plugins.engine.surrogate import DeepRankingEnsemble
from dre_plugins.recommend import TrialState
from dre_plugins.recommend.lists import MAX_FANTASIES, select_fantasies
from dre_plugins.recommend.recommender import N_TOGETHER
from dre_plugins.recommend.search import NEAR, is_distant, min_distance
from dre_plugins.recommend.settings import Settings
from dre_plugins.space import Float, Integer
from dre_plugins.study import AskTell
from dre_plugins.universal.processes import Processes

N_COMPLETE = 20


@pytest.fixture
def fit(monkeypatch: pytest.MonkeyPatch) -> Any:
    return spy(monkeypatch, DeepRankingEnsemble, "fit")


def sizes_of(fit: Any) -> list[int]:
    """Return how many trials each fit of the ensemble was given."""
    return [call.args[1].features.shape[2] for call in fit.call_args_list]


def study_with(n_running: int, **settings: Any) -> AskTell:
    study = AskTell({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}, seed=0, **settings)
    for x, y in np.random.default_rng(0).random((N_COMPLETE + n_running, 2)).tolist():
        is_running = len(study.trials) >= N_COMPLETE
        value = None if is_running else (x - 0.3) ** 2 + y
        study.add({"x": x, "y": y}, value, state=TrialState.RUNNING if is_running else None)
    return study


def configurations_of(batch: list[tuple[int, dict[str, Any]]]) -> list[dict[str, Any]]:
    return [configuration for _, configuration in batch]


@pytest.mark.usefixtures("few_candidates")
def test_of_many_running_trials_few_are_believed(fit, monkeypatch) -> None:
    conditioned = spy(monkeypatch, Processes, "conditioned")
    study = study_with(5 * MAX_FANTASIES, settings=FAST)
    batch = study.ask_batch(2)  # of the ensemble and of the universal prior
    assert study.stats["fallbacks"] == 0
    assert set(sizes_of(fit)) == {N_COMPLETE, N_COMPLETE + MAX_FANTASIES}
    sizes = [call.args[1].shape[1] for call in conditioned.call_args_list]
    assert max(sizes) == N_COMPLETE + MAX_FANTASIES + 1
    running = [trial.configuration for trial in study.trials[:-2]]
    assert not any(configuration in running for configuration in configurations_of(batch))


def test_those_are_believed_where_a_search_would_look_again() -> None:
    units = np.random.default_rng(0).random((4 * MAX_FANTASIES, 3))
    kept = select_fantasies(units, lambda coordinates: coordinates[:, 0])
    best = np.sort(units[:, 0])[-MAX_FANTASIES // 2 :]
    assert len(kept) == MAX_FANTASIES
    assert set(best) <= set(kept[:, 0])
    assert kept[:, 0].min() == units[:, 0].min()  # and a spread of the rest
    few = units[:MAX_FANTASIES]
    assert select_fantasies(few, lambda _: pytest.fail("ranked")) is few


def test_configurations_of_all_running_trials_are_left_alone() -> None:
    study = AskTell({"i": Integer(1, 40), "j": Integer(1, 10)}, seed=0)
    for i in range(1, 41):
        for j in range(1, 11):
            is_running = i < 40 and i * j > 5
            if i < 40:
                state = TrialState.RUNNING if is_running else None
                study.add({"i": i, "j": j}, None if is_running else i * j, state=state)
    left = configurations_of(study.ask_batch(10))
    assert sorted(configuration["j"] for configuration in left) == [*range(1, 11)]
    assert {configuration["i"] for configuration in left} == {40}


@pytest.mark.usefixtures("few_candidates")
def test_a_batch_has_a_fit_for_each_of_the_first_and_then_shares_them(fit) -> None:
    study = study_with(0, settings=FAST)
    batch = configurations_of(study.ask_batch(4 * N_TOGETHER))
    assert len({tuple(configuration.values()) for configuration in batch}) == 4 * N_TOGETHER
    assert study.stats["fallbacks"] == 0
    # A fit of what is observed, then of fantasies: once before each of the first ones, but not
    # before the last, which is the universal prior's; then two for each further part.
    assert fit.call_count == N_TOGETHER - 1 + 3 * 2
    assert max(sizes_of(fit)) == N_COMPLETE + 3 * N_TOGETHER
    study_with(0, settings=FAST).ask_batch(2 * MAX_FANTASIES)  # as of many running trials
    assert max(sizes_of(fit)) == N_COMPLETE + MAX_FANTASIES


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["universal", None])
def test_a_batch_begins_like_a_smaller_one(prior) -> None:
    settings = Settings(preset=of_steps(10))  # all but the length of fits is the default
    small, large, again = (study_with(0, prior=prior, settings=settings) for _ in range(3))
    begun = large.ask_batch(2 * N_TOGETHER + 1)
    assert begun[:N_TOGETHER] == small.ask_batch(N_TOGETHER)
    assert begun == again.ask_batch(2 * N_TOGETHER + 1)


@pytest.mark.parametrize("prior", ["universal", None])
def test_suggestions_of_one_fit_are_spread(prior) -> None:
    """Without a minimal distance, the best candidates of one fit would be nearly the same."""
    batch = configurations_of(study_with(0, prior=prior, settings=FAST).ask_batch(2 * N_TOGETHER))
    points = np.array([[*configuration.values()] for configuration in batch])[N_TOGETHER:]
    between = np.linalg.norm(points[:, None] - points[None], axis=-1)
    # 512 points in the unit square are about 0.04 from their neighbours.
    assert (between + np.eye(len(points))).min() > 0.005


def test_choices_of_one_fit_are_repeated_where_no_candidate_is_left() -> None:
    study = AskTell({"x": ["a", "b"]}, seed=0, allow_duplicates=True, settings=FAST)
    for number in range(N_COMPLETE):
        study.add({"x": "ab"[number % 2]}, float(number % 2))
    study.ask_batch(N_TOGETHER + 4)
    assert study.stats["fallbacks"] == 0


def test_each_choice_takes_its_neighbours_out_of_the_pool() -> None:
    line = np.linspace(0.0, 1.0, 101, dtype=np.float32)[:, None]
    assert np.isclose(min_distance(line), NEAR * 0.01)
    assert np.flatnonzero(~is_distant(line, line[[0, 50]], 0.025)).tolist() == [
        *range(3),
        *range(48, 53),
    ]
    assert is_distant(line, line[:0], 0.025).all()
    # Of a table nothing but the choice itself is near.
    table = np.eye(5, dtype=np.float32)
    assert is_distant(table, table[:1], min_distance(table)).tolist() == [False] + 4 * [True]
    assert min_distance(table[:1]) == 0.0
