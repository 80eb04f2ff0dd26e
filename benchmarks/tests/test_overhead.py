"""What a suggestion costs apart from its fit, and what of it stays in memory."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import optuna
import pytest

from dre_bench import overhead


def test_every_sampler_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    level = optuna.logging.get_verbosity()
    overhead.main(["--trials", "12", "--spaces", "conditional", "--repeats", "1", "--study", "0"])
    optuna.logging.set_verbosity(level)
    row = capsys.readouterr().out.splitlines()[-1].split()
    assert row[:2] == ["conditional", "12"]
    without_model, _, with_model, random = map(float, row[2:])
    assert 0.0 < random < without_model < with_model


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read on Linux")
def test_memory_grows_by_less_than_20_mib_in_2000_trials_and_the_storage() -> None:
    n_trials = 220
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        _, _, grown = process.submit(overhead.study_totals, "dre, 2 steps", n_trials).result()
    # In 2000 trials Optuna's storage takes some 10 MiB by itself.
    assert grown < 30.0 * (n_trials - overhead.N_WARM) / 2000 + 1.0
