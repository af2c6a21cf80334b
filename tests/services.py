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

REQUIRED = os.environ.get("DEADLINT_REQUIRE_SERVICES") == "1"
PG_BIN = Path("/usr/lib/postgresql/15/bin")


def missing(what: str, how: str) -> NoReturn:
    """Skip with a word on how to get `what`; a failure where services are required."""
    words = f"{what} is missing: {how}"
    if REQUIRED:
        pytest.fail(f"{words} (DEADLINT_REQUIRE_SERVICES=1)", pytrace=False)
    pytest.skip(words)


def need_module(name: str, how: str = "pip install -e '.[test]'") -> Any:
    """The module, or a skip that says how to get it."""
    try:
        return import_module(name)
    except ImportError:
        missing(f"the Python package {name}", how)


def need_program(name: str, package: str) -> str:
    """The path of the program; `package` is what Debian calls it."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    return shutil.which(name, path=path) or missing(f"the program {name}", f"apt-get install {package}")


class Cluster:
    """A PostgreSQL cluster in a temporary folder, on loopback."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self.dsn = f"host=127.0.0.1 port={port} user=deadlint dbname=postgres"
        self.url = f"postgresql://deadlint@127.0.0.1:{port}/postgres"
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

    def running(self, text: str) -> int:
        """How many backends run a statement with `text` in it: the server's own witness."""
        return int(
            self.psql(
                "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() "
                f"AND backend_type = 'client backend' AND query LIKE '%{text}%'"
            )
        )


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
    data, port = folder / "data", free_port()
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off -c max_connections=60"
    try:
        _pg("initdb", "-A", "trust", "-U", "deadlint", "-D", data, "--no-sync", folder=folder)
        _pg("pg_ctl", "-D", data, "-o", options, "-l", folder / "log", "-w", "start", folder=folder)
        yield Cluster(folder, port)
    finally:
        # Immediate: a backend that is deaf inside GEOS ignores a polite end.
        _pg("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop", folder=folder, check=False)
        shutil.rmtree(folder, ignore_errors=True)


def _pg(program: str, *arguments: str | Path, folder: Path, check: bool = True) -> None:
    quiet = subprocess.DEVNULL
    command = as_user([PG_BIN / program, *arguments])
    subprocess.run(command, cwd=folder, check=check, stdout=quiet, stderr=quiet, timeout=60)


def as_user(command: list[Any]) -> list[Any]:
    """initdb and postgres refuse to run as root: the `postgres` user of the package does."""
    if os.getuid() != 0:
        return command
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *command]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
