"""What the tests look with: services, servers, marked processes, a clock to wind."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

REQUIRED = os.environ.get("DEADLINT_REQUIRE_SERVICES") == "1"
PG_BIN = Path("/usr/lib/postgresql/15/bin")


def missing(what: str, how: str) -> None:
    """Skip with a word on how to get `what`; a failure where services are required."""
    words = f"{what} is missing: {how}"
    if REQUIRED:
        pytest.fail(f"{words} (DEADLINT_REQUIRE_SERVICES=1)", pytrace=False)
    pytest.skip(words)


def need_module(name: str, how: str = "") -> Any:
    """The module, or a skip that says how to get it."""
    try:
        return import_module(name)
    except ImportError:
        missing(f"the Python package {name}", how or f"pip install {name.split('.', maxsplit=1)[0]}")


def need_program(name: str, package: str) -> str:
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        missing(f"the program {name}", f"apt-get install {package}")
    assert found is not None
    return found


class WoundClock:
    """A clock that goes on when told to, and when slept with."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    advance = sleep


# --- processes ---------------------------------------------------------------------------------------------


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


def pids_with(mark: str) -> list[int]:
    """The live processes whose command line has `mark` in it."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if mark.encode() in command and alive(int(entry.name)):
                found.append(int(entry.name))
    return found


def eventually(true: Callable[[], bool], within: float = 2.0) -> bool:
    """Whether `true()` becomes so; for what another process does in its own time."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.01)
    return true()


class Mark:
    """A number of seconds to sleep that no other process sleeps: what a test's own sleepers are known by."""

    def __init__(self, seconds: int) -> None:
        self.sleep = f"{seconds}"

    def pids(self) -> list[int]:
        return pids_with(f"sleep\0{self.sleep}")

    def count(self) -> int:
        return len(self.pids())


# --- HTTP --------------------------------------------------------------------------------------------------


class Server:
    """A TCP server on loopback that runs `talk(connection)` in a thread for each connection."""

    def __init__(self, talk: Callable[[socket.socket], None]) -> None:
        self._talk = talk
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.connections = 0
        self.open = 0
        self.stopping = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                conn, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._one, args=(conn,), daemon=True).start()

    def _one(self, conn: socket.socket) -> None:
        self.open += 1
        try:
            with conn:
                self._talk(conn)
        except OSError:
            pass
        finally:
            self.open -= 1

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def close(self) -> None:
        self.stopping.set()
        self._listening.close()


# --- PostgreSQL --------------------------------------------------------------------------------------------


class Cluster:
    """A PostgreSQL cluster in a temporary folder, on loopback."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self.dsn = f"host=127.0.0.1 port={port} user=deadlint dbname=postgres"
        self.url = f"postgresql://deadlint@127.0.0.1:{port}/postgres"

    def psql(self, sql: str) -> str:
        done = subprocess.run(
            [PG_BIN / "psql", "-XAt", self.url, "-c", sql],
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
        return done.stdout.strip()

    def running(self, text: str) -> int:
        """How many backends run a statement with `text` in it: the server's own witness."""
        return int(
            self.psql(
                "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() "
                f"AND backend_type = 'client backend' AND query LIKE '%{text}%'"
            )
        )


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def as_user(args: list[Any]) -> list[Any]:
    """initdb and postgres refuse to run as root: the `postgres` user of the package does."""
    if os.getuid() != 0:
        return args
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *args]


@contextmanager
def private_cluster() -> Iterator[Cluster]:
    """A PostgreSQL of our own, in a temporary folder, on loopback."""
    if not (PG_BIN / "initdb").exists():
        missing(
            "PostgreSQL 15",
            "apt-get install postgresql-15-postgis-3 (with create_main_cluster = false in "
            "/etc/postgresql-common/createcluster.conf)",
        )
    folder = Path(tempfile.mkdtemp(prefix="deadlint-pg-"))
    if os.getuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    data, port = folder / "data", free_port()
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "timeout": 60}
    try:
        command = [PG_BIN / "initdb", "-A", "trust", "-U", "deadlint", "-D", data, "--no-sync"]
        subprocess.run(as_user(command), check=True, cwd=folder, **quiet)
        options = (
            f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off "
            "-c max_connections=60"
        )
        command = [PG_BIN / "pg_ctl", "-D", data, "-o", options, "-l", folder / "log", "-w", "start"]
        subprocess.run(as_user(command), check=True, cwd=folder, **quiet)
        yield Cluster(folder, port)
    finally:
        # Immediate: a backend that is deaf inside GEOS ignores a polite end.
        command = [PG_BIN / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"]
        subprocess.run(as_user(command), cwd=folder, check=False, **quiet)
        shutil.rmtree(folder, ignore_errors=True)
