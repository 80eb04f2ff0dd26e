"""All Python that is shown on pages and in notebooks runs, with fewer trials."""

import gc
import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from pages import FILE_NAME, NOTEBOOKS, PAGES, blocks_of, name_of

from dre_plugins.engine.settings import PRESETS, FittingSettings

RUN_PAGES = [page for page in [*PAGES, *NOTEBOOKS] if blocks_of(page)]

# Ten start-up trials and one of the model; in real tuners a trial is a process.
FEWER = {
    "n_trials": 11,
    "n_steps": 50,
    "num_samples": 1,
    "max_num_trials_finished": 1,
    "n_workers": 1,
}
ARGUMENT = re.compile(rf"\b({'|'.join(FEWER)})=(\d+)")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore"),  # warnings of frameworks about themselves
    pytest.mark.skipif(
        not all(map(find_spec, ("optuna", "ray", "syne_tune", "matplotlib"))),
        reason="pages use every framework",
    ),
]


def fewer_trials(code: str) -> str:
    """Return the code with smaller numbers in what sets its length."""
    return ARGUMENT.sub(lambda found: f"{found[1]}={min(int(found[2]), FEWER[found[1]])}", code)


@pytest.fixture(scope="module")
def _cluster() -> Iterator[None]:
    """Start a small cluster, which Tuners find; by themselves they would take the machine."""
    import ray

    ray.init(
        "local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    yield
    ray.shutdown()


@pytest.fixture(autouse=True)
def _small_surrogate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fit for a few steps: what is asked is whether the code runs, not how well it searches."""
    few = FittingSettings(n_steps=10, learning_rate=0.02)
    fits = dict.fromkeys(("from_random", "from_prior"), few)
    monkeypatch.setitem(PRESETS, "default", replace(PRESETS["default"], **fits))


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """Collect what a page leaves, such as trials of a tuner that still run.

    Python warns of these wherever it collects them, and elsewhere a warning is a failure.
    """
    yield
    gc.collect()


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    import matplotlib.pyplot as plt
    import optuna

    plt.switch_backend("Agg")
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    plt.close("all")
    optuna.logging.set_verbosity(level)


def pages_to_run() -> list[object]:
    """Return the pages; the one that is about Ray alone is marked, as its tuner takes a minute."""
    return [
        pytest.param(page, marks=pytest.mark.ray) if page.stem == "ray" else page
        for page in RUN_PAGES
    ]


@pytest.mark.parametrize("page", pages_to_run(), ids=name_of)
def test_the_blocks_of_a_page_run(page: Path, tmp_path, monkeypatch, request) -> None:
    blocks = blocks_of(page)
    if any("from ray" in block for block in blocks):
        request.getfixturevalue("_cluster")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SYNETUNE_FOLDER", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))  # where Ray keeps results
    for source in PAGES:  # a script that one page shows may be used on another
        for block in blocks_of(source):
            if name := FILE_NAME.match(block):
                (tmp_path / name[1]).write_text(block, encoding="utf-8")
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks:
        if FILE_NAME.match(block):
            continue
        exec(compile(fewer_trials(block), name_of(page), "exec"), names)
