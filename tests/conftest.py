"""What holds for all tests."""

import gc
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# On a busy machine two threads of small products wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Studies of tests are not for the developer's own memory.
os.environ.pop("DRE_MEMORY", None)
# What Ray sets when it begins here (2.60): a process that already forks drivers would not know it.
os.environ.setdefault("RAY_AUTH_MODE", "token")

# How long an example takes depends on what else the machine does; pytest-timeout is the limit. A
# commit passes always or never: new examples are what `make fuzz` and `make properties` look for.
settings.register_profile("dre_plugins", deadline=None, derandomize=True)
# `make fuzz`: a hundred times as many, so that one file of a kind is damaged in 10 000 ways.
settings.register_profile("fuzz", deadline=None, max_examples=10_000)
settings.load_profile("dre_plugins")

FEW_CANDIDATES = {"adapters", "cli", "memory", "properties", "reliability"}


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of `slower.txt`, unless tests are named, which always run.

    They and the slow ones have ten minutes, unless a mark or the command line says otherwise.
    """
    is_named = any("::" in argument for argument in config.args)
    slower = {*Path(__file__).with_name("slower.txt").read_text().split()}
    for item in items:
        if item.nodeid.split("[")[0] in slower and not is_named:
            item.add_marker("slower")
        marks = {mark.name for mark in item.iter_markers()}
        if marks & {"slow", "slower"} and not marks & {"timeout"}:
            if config.getoption("timeout") is None:
                item.add_marker(pytest.mark.timeout(600))


def pytest_collection_finish() -> None:
    """Let garbage collections pass over what the imports made."""
    gc.collect()
    gc.freeze()


class _Forwarding(logging.Handler):
    """Pass on the records of a logger that does not propagate, also from within a test on."""

    def __init__(self, logger: logging.Logger, to: logging.Handler) -> None:
        super().__init__()
        self.logger, self.to = logger, to

    def emit(self, record: logging.LogRecord) -> None:
        # Newer versions of pytest handle loggers themselves that never propagated.
        if not self.logger.propagate and self.to not in self.logger.handlers:
            self.to.handle(record)


@pytest.fixture(autouse=True)
def _records_of_frameworks(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Let `caplog` receive the records of the loggers of frameworks."""
    ours = logging.getLogger("optuna.dre_plugins")  # `_quiet_optuna` silences only Optuna's
    ours.setLevel(logging.WARNING)
    for name in ("ray", "syne_tune"):  # a cluster or a benchmark makes them silent
        logging.getLogger(name).setLevel(logging.NOTSET)
    handlers = [_Forwarding(logging.getLogger(name), caplog.handler) for name in ("optuna", "ray")]
    for handler in handlers:
        handler.logger.addHandler(handler)
    yield
    ours.setLevel(logging.NOTSET)
    for handler in handlers:
        handler.logger.removeHandler(handler)


@pytest.fixture(autouse=True)
def _one_thread_of_torch() -> Iterator[None]:
    """Reset torch to one thread, so that no later test of this process computes with several."""
    yield
    torch = sys.modules.get("torch")
    if torch is not None and torch.get_num_threads() != 1:
        torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _quiet_optuna() -> Iterator[None]:
    optuna = sys.modules.get("optuna")
    if optuna is None:
        yield
        return
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(level)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep experiments of Syne Tune apart from those of the user."""
    monkeypatch.setenv("SYNETUNE_FOLDER", str(tmp_path))
    return tmp_path


@pytest.fixture
def few_candidates(request: pytest.FixtureRequest) -> Iterator[None]:
    """Search fewer candidates, by the same code, but in tests marked slow or `whole_search`."""
    from dre_plugins.recommend import search

    less = {"N_REFERENCE": 64, "N_SOBOL": 64, "N_CHILDREN": 32, "N_ROUNDS": 2}
    with pytest.MonkeyPatch.context() as patch:  # of its own, as tests undo the usual one
        if not {"slow", "whole_search"} & {mark.name for mark in request.node.iter_markers()}:
            for name, value in less.items():
                patch.setattr(search, name, value)
        yield


@pytest.fixture(autouse=True)
def _few_candidates(request: pytest.FixtureRequest) -> None:
    """Search few candidates in folders where a search is called and not what is tested."""
    if request.path.relative_to(Path(__file__).parent).parts[0] in FEW_CANDIDATES:
        request.getfixturevalue("few_candidates")


@pytest.fixture
def small_priors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let priors of few past tasks be small networks, which are trained in a tenth of a second."""
    from small_priors import let_them_be_small

    let_them_be_small(monkeypatch.setattr)
