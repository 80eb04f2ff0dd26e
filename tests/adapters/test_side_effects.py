"""Suggestions change nothing that is the user's, and need no network."""

import random
import shutil
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
import side_effects
import torch
from presets import TINY
from side_effects import RUNS, changes, snapshot

WORKER = str(Path(side_effects.__file__))


@pytest.fixture
def unusual_state() -> Iterator[None]:
    """Set what a user may have set, none of it as it is by default."""
    generator = torch.get_rng_state()
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
    torch.manual_seed(17)  # noqa: TID251
    np.random.seed(18)  # noqa: NPY002
    random.seed(19)
    torch.set_num_threads(2)
    torch.set_default_dtype(torch.float64)
    with torch.device("meta"), torch.inference_mode(), np.errstate(all="raise"):
        yield
    torch.set_default_dtype(torch.float32)
    torch.set_rng_state(generator)
    np.random.set_state(numpy_state)  # noqa: NPY002
    random.setstate(python_state)


def without_sockets(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Refuse sockets and look-ups, and note who asked for one."""
    asked: list[str] = []

    def refused(name: str) -> Any:
        def refuse(*arguments: Any, **_: Any) -> NoReturn:
            asked.append(f"{name}{arguments} {''.join(traceback.format_stack()[-9:-1])}")
            raise OSError("there is no network")

        return refuse

    for name in ("socket", "create_connection", "getaddrinfo", "gethostbyname", "socketpair"):
        monkeypatch.setattr(socket, name, refused(name))
    return asked


@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore:.*experimental")
@pytest.mark.parametrize("name", RUNS)
def test_suggestions_change_nothing(name: str, unusual_state: None, monkeypatch) -> None:
    # What is imported at its first use is no matter of ours.
    import_module("scipy.stats")
    import_module("threadpoolctl")
    framework = pytest.importorskip(RUNS[name][0])
    if name == "optuna":
        framework.logging.set_verbosity(framework.logging.ERROR)
        framework.create_study()
    asked = without_sockets(monkeypatch)
    assert changes(name, TINY) == []
    assert asked == []


@pytest.mark.parametrize(
    "change",
    [
        lambda: torch.rand(1, device="cpu"),
        lambda: np.random.random(),  # noqa: NPY002
        lambda: random.random(),
        lambda: torch.set_num_threads(1),
        lambda: torch.set_default_dtype(torch.float32),
        lambda: OPENED.append(open(__file__)),
    ],
)
def test_a_change_is_seen(change: Any, unusual_state: None) -> None:
    before = snapshot()
    change()
    assert snapshot() != before
    while OPENED:
        OPENED.pop().close()


OPENED: list[Any] = []


def _isolated() -> list[str] | None:
    """Return what runs a command without any network interface, if that is permitted here."""
    if shutil.which("unshare") is None:
        return None
    for options in (["-n"], ["-rn"]):
        command = ["unshare", *options]
        if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
            return command
    return None


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_all_frameworks_without_a_network_interface() -> None:
    command = _isolated()
    if command is None:
        pytest.skip("network namespaces are not permitted here (unshare -n)")
    code = (
        f"import runpy, sys; sys.path[:0] = {sys.path!r}; "
        f"runpy.run_path({WORKER!r}, run_name='__main__')"
    )
    interfaces = subprocess.run([*command, "cat", "/proc/net/dev"], capture_output=True, text=True)
    names = {line.split(":")[0].strip() for line in interfaces.stdout.splitlines()[2:]}
    assert names <= {"lo"}
    done = subprocess.run(
        [*command, sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines and all(line.endswith(" []") for line in lines), done.stdout
