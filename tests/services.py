"""What the tests need of the machine, and a skip that says how to get it where it is missing.

With DEADLINT_REQUIRE_SERVICES=1 a missing service is a failure.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import pytest

PG_BIN = Path("/usr/lib/postgresql/15/bin")


def missing(what: str, how: str) -> NoReturn:
    """Skip with a word on how to get `what`; a failure where services are required."""
    words = f"{what} is missing: {how}"
    if os.environ.get("DEADLINT_REQUIRE_SERVICES") == "1":
        pytest.fail(f"{words} (DEADLINT_REQUIRE_SERVICES=1)", pytrace=False)
    pytest.skip(words)


def need_module(name: str) -> Any:
    """The module."""
    try:
        return import_module(name)
    except ImportError:
        missing(f"the Python package {name}", "pip install -e '.[test]'")


def need_program(name: str, package: str) -> str:
    """The path of the program; `package` is what Debian calls it."""
    return shutil.which(name) or missing(f"the program {name}", f"apt-get install {package}")


class Cluster:
    """A PostgreSQL cluster in a temporary folder, on loopback."""

    def __init__(self, port: int) -> None:
        self.port = port
        # What libpq reads where a connection string does not say it.
        self.environment = {"PGHOST": "127.0.0.1", "PGPORT": str(port), "PGUSER": "deadlint"}

    def psql(self, sql: str, database: str = "postgres") -> str:
        """What SQL answers, unaligned and without headings."""
        command: list[str | Path] = [PG_BIN / "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", sql]
        done = subprocess.run(
            command,
            env={**os.environ, **self.environment},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=60,
        )
        return str(done.stdout).strip()


@contextmanager
def private_cluster() -> Iterator[Cluster]:
    """A cluster that is made for this and gone afterwards."""
    if not (PG_BIN / "initdb").exists():
        missing(
            "PostgreSQL 15",
            "apt-get install postgresql-15-postgis-3 (with create_main_cluster = false in "
            "/etc/postgresql-common/createcluster.conf)",
        )
    folder = Path(tempfile.mkdtemp(prefix="deadlint-pg-"))
    if os.getuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    data, port = folder / "data", _free_port()
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
    try:
        _pg("initdb", "-A", "trust", "-U", "deadlint", "-D", data, "--no-sync", folder=folder)
        _pg("pg_ctl", "-D", data, "-o", options, "-l", folder / "log", "-w", "start", folder=folder)
        yield Cluster(port)
    finally:
        # Immediate: a backend that is deaf inside GEOS ignores a polite end.
        _pg("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop", folder=folder, check=False)
        shutil.rmtree(folder, ignore_errors=True)


def _pg(program: str, *arguments: str | Path, folder: Path, check: bool = True) -> None:
    command: list[str | Path] = [PG_BIN / program, *arguments]
    if os.getuid() == 0:
        # initdb and postgres refuse to run as root: the `postgres` user of the package does.
        command = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *command]
    quiet = subprocess.DEVNULL
    subprocess.run(command, cwd=folder, check=check, stdout=quiet, stderr=quiet, timeout=60)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
