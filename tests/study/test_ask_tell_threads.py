"""A study that several threads ask and tell."""

import copy
import pickle
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from presets import TINY

from dre_plugins import Settings
from dre_plugins.recommend.trials import TrialState
from dre_plugins.space import Float
from dre_plugins.study.ask_tell import AskTell

N_THREADS = 8
GRID = {"a": ["x", "y", "z"], "b": [*range(12)], "c": [True, False]}  # 72 configurations


@pytest.fixture(autouse=True)
def _eager_threads() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def study_of(space: Any = GRID, n_startup_trials: int = 999, **options: Any) -> AskTell:
    settings = Settings(preset=TINY)
    return AskTell(space, seed=0, n_startup_trials=n_startup_trials, settings=settings, **options)


@pytest.mark.parametrize("n_startup_trials", [999, 60])
def test_numbers_are_given_once_and_a_space_is_used_up(n_startup_trials: int) -> None:
    study = study_of(n_startup_trials=n_startup_trials, prior=None)
    together = Barrier(N_THREADS)

    def work() -> list[int]:
        numbers = []
        together.wait()
        while not study.is_exhausted:
            number, configuration = study.ask()
            assert study.is_running(number)
            assert study.explain(number).source != "unknown"
            study.report(number, 1, 0.5)
            study.tell(number, float(configuration["b"]))
            numbers.append(number)
        return numbers

    with ThreadPoolExecutor(N_THREADS) as pool:
        found = [future.result() for future in [pool.submit(work) for _ in range(N_THREADS)]]
    numbers = [number for part in found for number in part]
    assert sorted(numbers) == [*range(len(numbers))]
    assert 72 <= len(numbers) < 72 + N_THREADS  # each may have looked before the last was asked
    trials = study.trials
    asked = {tuple(sorted(trial.configuration.items())) for trial in trials}
    assert len(asked) == 72 and all(trial.state is TrialState.COMPLETE for trial in trials)
    assert study.stats["suggestions"] == len(numbers) and study.best.value == 0.0


def test_what_is_enqueued_is_asked_for_once() -> None:
    study = study_of({"x": Float(0.0, 1.0)})
    for place in range(200):
        study.enqueue({"x": place / 1000})
    together = Barrier(N_THREADS)

    def work(_: int) -> list[tuple[int, float]]:
        together.wait()
        return [(number, c["x"]) for n in range(25) for number, c in study.ask_batch(1 + n % 2)]

    with ThreadPoolExecutor(N_THREADS) as pool:
        asked = [pair for part in pool.map(work, range(N_THREADS)) for pair in part]
    asked.sort()
    assert [number for number, _ in asked] == [*range(N_THREADS * 37)]
    assert [x for _, x in asked[:200]] == [place / 1000 for place in range(200)]
    assert study.stats["enqueued"] == 200


def test_a_study_is_copied_whole_while_others_ask() -> None:
    study = study_of({"x": Float(0.0, 1.0)})

    def work() -> None:
        for _ in range(60):
            number, _ = study.ask()
            study.tell(number, 1.0)

    with ThreadPoolExecutor(N_THREADS) as pool:
        working = [pool.submit(work) for _ in range(N_THREADS)]
        copies = []
        while not all(future.done() for future in working):
            copies.append(pickle.loads(pickle.dumps(study)))
            copies.append(copy.deepcopy(study))
        for future in working:
            future.result()
    assert len(copies) > 2
    for copied in copies:
        n = len(copied.trials)
        assert copied.stats["suggestions"] == n
        assert all(copied.explain(number).source != "unknown" for number in range(n))
        assert copied.ask()[0] == n
