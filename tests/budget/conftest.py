"""Fixtures for the tests of `deadlint_budget`."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from budget_witness import PG_BIN, Cluster, Mark, Server, WoundClock, as_user, free_port, missing


@pytest.fixture
def clock() -> WoundClock:
    return WoundClock()


_marks = iter(range(40_000_000 + os.getpid() * 100, 900_000_000))


@pytest.fixture
def mark() -> Iterator[Mark]:
    made = Mark(next(_marks))
    yield made
    left = made.pids()
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left, f"the test left processes behind: {left}"


@pytest.fixture
def took() -> Callable[..., Any]:
    """`with took(at_least, at_most):` asserts how long a block takes; a busy machine is granted half a second more."""

    @contextmanager
    def timed(at_least: float, at_most: float) -> Iterator[None]:
        began = time.monotonic()
        yield
        seconds = time.monotonic() - began
        busy = os.getloadavg()[0] > (os.cpu_count() or 1)
        assert at_least <= seconds <= at_most + 0.5 * busy, f"took {seconds:.3f} s, not {at_least} to {at_most}"

    return timed


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[socket.socket], None]], Server]]:
    servers: list[Server] = []

    def start(talk: Callable[[socket.socket], None]) -> Server:
        servers.append(Server(talk))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
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
