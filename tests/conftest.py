"""Services that tests of several folders use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.services import Cluster, private_cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL of our own, with nothing in it."""
    with private_cluster() as made:
        yield made
