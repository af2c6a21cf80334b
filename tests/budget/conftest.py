"""Fixtures for the tests of `deadlint_budget`."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from budget_witness import Cluster, Mark, Server, WoundClock, missing, private_cluster


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
        # A shell in a loop starts another sleeper: its group goes with it, where that is not ours.
        with suppress(ProcessLookupError):
            group = os.getpgid(pid)
            os.kill(pid, signal.SIGKILL)
            if group != os.getpgid(0):
                os.killpg(group, signal.SIGKILL)
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
def geos_cluster() -> Iterator[Cluster]:
    """A cluster of its own: a backend that is cut off inside GEOS can crash, and take its cluster through a restart."""
    with private_cluster() as made:
        if made.psql("SELECT count(*) FROM pg_available_extensions WHERE name = 'postgis'") != "1":
            missing("PostGIS", "apt-get install postgresql-15-postgis-3")
        made.psql("CREATE EXTENSION postgis")
        yield made
