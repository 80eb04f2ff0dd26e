"""The paper's and the thesis's studies (slow)."""

import re
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from presets import DEFAULT, of_steps
from small_spaces import history_of

from dre_plugins.recommend import Recommender, RecommenderSettings
from dre_plugins.recommend.settings import Settings
from dre_plugins.space import Float, SearchSpace
from dre_plugins.study import AskTell

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

EXAMPLES = Path(__file__).parent.parent / "examples"
QUICK = of_steps(50)


def run(name: str, *arguments: str) -> str:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_the_sinusoids_optimum_within_8_observations(tmp_path: Path) -> None:
    picture = tmp_path / "sinusoid.png"
    found = re.search(
        r"best after (\d+) observations: x = ([+-][\d.]+)",
        run("sinusoid.py", "--picture", str(picture)),
    )
    assert found is not None
    assert int(found[1]) <= 8 and float(found[2]) == 0.0
    assert picture.stat().st_size > 10_000


@pytest.mark.long  # CI runs the example as such
def test_the_sorting_study() -> None:
    rows = re.findall(r"^ *(\d+) +(\d+) +([\d.]+)", run("sorting.py"), flags=re.MULTILINE)
    in_range = {(int(epochs), int(size)): float(share) for epochs, size, share in rows}
    assert in_range[1000, 100] >= 0.98
    assert in_range[1000, 3] >= 0.95
    assert 0.65 <= in_range[100, 3] <= 0.95  # the thesis has .77, with a spread of about .2


@pytest.mark.long
def test_2000_suggestions_leave_no_memory_behind() -> None:
    space = SearchSpace({f"x{i}": Float(0.0, 1.0) for i in range(5)})
    history = history_of(50, space, lambda c: sum(c.values()))
    tiny = of_steps(1, scorer=replace(DEFAULT.scorer, n_members=2, hidden=(8,)))
    recommender = Recommender(space, RecommenderSettings(preset=tiny), seed=0)

    def peak_megabytes(indices: range) -> float:
        for index in indices:
            recommender.suggest(history, index=index)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    warm = peak_megabytes(range(200))
    assert peak_megabytes(range(200, 2200)) - warm < 20


def test_8_workers_do_better_than_random_search() -> None:
    space = {f"x{i}": Float(-1.0, 1.0) for i in range(4)}

    def best_of_96(seed: int, n_startup_trials: int) -> float:
        study = AskTell(
            space, seed=seed, settings=Settings(preset=QUICK), n_startup_trials=n_startup_trials
        )
        for _ in range(12):
            for number, configuration in study.ask_batch(8):
                study.tell(number, sum((x - 0.3) ** 2 for x in configuration.values()))
        return float(study.best.value or 0.0)

    model = [best_of_96(seed, 16) for seed in range(2)]
    random = [best_of_96(seed, 96) for seed in range(2)]
    assert np.mean(model) < 0.5 * np.mean(random), (model, random)
