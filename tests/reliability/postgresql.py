"""A PostgreSQL server of the tests' own, which may be killed and started again."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
# PostgreSQL refuses to run as root; Debian's package makes this user.
USER = "postgres" if os.geteuid() == 0 else None
PATIENCE = 60.0


def binary(name: str) -> str | None:
    """Return the path of one of PostgreSQL's programs, which Debian keeps out of the PATH."""
    return shutil.which(name, path=os.pathsep.join([os.environ["PATH"], *map(str, BINARIES)]))


def missing() -> str | None:
    """Say what is missing to run a server, None if nothing is."""
    if binary("initdb") is None or binary("postgres") is None:
        return "needs PostgreSQL: apt install postgresql"
    if find_spec("psycopg2") is None:
        return "needs psycopg2: pip install psycopg2-binary"
    return None


class Server:
    """Run a server in a folder of its own; used as a context, it is removed in the end."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="dre-postgresql-"))
        if USER is not None:
            shutil.chown(self._folder, USER)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"postgresql+psycopg2://optuna@127.0.0.1:{self._port}/postgres"

    def __enter__(self) -> Server:
        command = [binary("initdb"), "-D", self._data, "-U", "optuna", "-A", "trust", "--no-sync"]
        subprocess.run(command, check=True, capture_output=True, user=USER, cwd=self._folder)
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        """Start and wait until connections are taken."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                # The first one after a kill may find that others have not gone yet.
                self._process = self._started()
            if self._is_ready():
                return
            time.sleep(0.2)
        raise TimeoutError(f"PostgreSQL did not start: {(self._folder / 'log').read_text()}")

    def kill(self) -> None:
        """Kill the server as a power cut would: no connection is closed, nothing is flushed."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def _data(self) -> str:
        return str(self._folder / "data")

    def _started(self) -> subprocess.Popen[bytes]:
        arguments = ["-D", self._data, "-k", str(self._folder), "-p", str(self._port)]
        arguments += ["-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200"]
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                [binary("postgres") or "", *arguments],
                user=USER,
                stdout=log,
                stderr=log,
                cwd=self._folder,
            )

    def _is_ready(self) -> bool:
        import psycopg2

        place = {"host": "127.0.0.1", "port": self._port, "user": "optuna", "dbname": "postgres"}
        try:
            psycopg2.connect(**place, connect_timeout=2).close()
        except psycopg2.OperationalError:
            return False
        return True
