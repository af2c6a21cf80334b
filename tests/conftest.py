"""Services that tests of several folders use."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.services import Cluster, private_cluster

if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    # Under nohup, children would inherit that SIGHUP is ignored, and some tests are about what it does to them.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL of our own, with nothing in it."""
    with private_cluster() as made:
        yield made
