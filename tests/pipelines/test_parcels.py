"""The parcels in a real PostGIS: what waits for a lock, or goes on without its client, has an end on the server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.pipelines.conftest import Start
from tests.pipelines.project import Project
from tests.pipelines.running import Running
from tests.services import Cluster, missing, need_module

LIMIT_S = 1
LATE_S = 1.0  # the server counts from the statement on, and is on the same busy machine
HELD_S = 2.0

CONFIGURED = "statement = { value = 300 }"
TABLES = """
    CREATE TABLE parcels (
        number text PRIMARY KEY, municipality text NOT NULL, geom geometry(Polygon, 25832) NOT NULL
    );
    CREATE INDEX parcels_geom_idx ON parcels USING gist (geom);
"""
LOAD = "from parcels import load; load.UNION_LIMIT_S = 1"
MAINTAIN = "from parcels import maintain"
REPORT = "from parcels import report"
PARCELS = """[
    ("1/1", "Aue", "POLYGON((0 0, 0 100, 100 100, 100 0, 0 0))"),
    ("1/2", "Aue", "POLYGON((100 0, 100 100, 200 100, 200 0, 100 0))"),
    ("1/3", "Aue", "POLYGON((150 0, 150 100, 250 100, 250 0, 150 0))"),
]"""


class Database:
    """The database of the pipelines."""

    def __init__(self, cluster: Cluster) -> None:
        self.environment = cluster.environment
        self._cluster = cluster
        cluster.psql("CREATE DATABASE gis")
        if self.psql("SELECT 1 FROM pg_available_extensions WHERE name = 'postgis'") != "1":
            missing("PostGIS", "apt-get install postgresql-15-postgis-3")
        self.psql(f"CREATE EXTENSION postgis; {TABLES}")

    def psql(self, sql: str) -> str:
        """What the server answers."""
        return self._cluster.psql(sql, "gis")

    def busy(self) -> int:
        """How many statements of others run or wait."""
        count = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'gis' AND state = 'active' AND pid"
        return int(self.psql(f"{count} NOT IN (pg_backend_pid(), {self._locker})"))

    _locker = 0

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock on the parcels that a migration takes."""
        psycopg = need_module("psycopg")
        with psycopg.connect(f"host=127.0.0.1 port={self._cluster.port} user=deadlint dbname=gis") as conn:
            conn.execute("LOCK TABLE parcels IN ACCESS EXCLUSIVE MODE")
            self._locker = conn.info.backend_pid
            yield


@pytest.fixture(scope="module")
def after(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The pipelines fixed, with a configuration that limits statements to a second."""
    project = Project(tmp_path_factory.mktemp("parcels") / "basemap")
    configuration = project.folder / "pyproject.toml"
    text = configuration.read_text()
    assert text.count(CONFIGURED) == 1
    configuration.write_text(text.replace(CONFIGURED, f"statement = {{ value = {LIMIT_S} }}"))
    project.check("--fix", "--unsafe-fixes")
    return project


@pytest.fixture(scope="session")
def drivers() -> None:
    """What the pipelines import; asked for before a cluster is made."""
    for name in ("psycopg", "sqlalchemy"):
        need_module(name)


@pytest.fixture(scope="session")
def database(drivers: None, cluster: Cluster) -> Database:
    """A database with an empty table."""
    return Database(cluster)


@pytest.fixture(autouse=True)
def empty(database: Database) -> None:
    """Begin without parcels and without what an earlier test left on the server."""
    database.psql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'gis' AND pid <> pg_backend_pid()"
    )
    database.psql("TRUNCATE parcels")


def stopped_in_time(running: Running) -> None:
    """The server has ended the statement soon after its limit."""
    outcome = running.outcome(LIMIT_S + LATE_S + 1)
    assert outcome is not None, "the fixed call is held"
    assert "statement timeout" in outcome.words or "DeadlineExceeded" in outcome.raised, outcome
    assert LIMIT_S - 0.1 <= outcome.seconds <= LIMIT_S + LATE_S, outcome


@pytest.mark.parametrize(
    ("code", "call"),
    [(LOAD, f"load.load({PARCELS})"), (MAINTAIN, "maintain.overlaps()"), (REPORT, "report.hectares()")],
    ids=["load", "overlaps", "hectares"],
)
def test_nothing_waits_on_the_server_for_ever(
    code: str, call: str, start: Start, before: Project, after: Project, database: Database
) -> None:
    with database.locked():
        was, now = start(code, call, before, after, **database.environment)
        stopped_in_time(now)
        assert was.outcome(HELD_S - LIMIT_S) is None
        was.kill()
        assert database.busy() == 1  # it goes on without its client, and would take its turn


def test_the_limit_of_the_union_was_an_error(start: Start, before: Project, after: Project, database: Database) -> None:
    code = f"{LOAD}; load.load({PARCELS})"
    was, now = start(code, "load.outline('Aue')", before, after, **database.environment)
    refused, worked = was.outcome(30), now.outcome(30)
    assert refused is not None
    assert "SyntaxError" in refused.raised  # psycopg's: the server takes no parameter in SET
    assert worked is not None
    assert worked.raised == (), worked
    assert "POLYGON" in worked.value
    with database.locked():
        [now] = start(LOAD, "load.outline('Aue')", after, **database.environment)
        stopped_in_time(now)
        assert database.busy() == 0


def test_what_worked_works_alike(start: Start, before: Project, after: Project, database: Database) -> None:
    calls = f"load.load({PARCELS}), maintain.reindex(), maintain.overlaps(), report.hectares()"
    results = []
    for project in (before, after):
        database.psql("TRUNCATE parcels")
        [running] = start(f"{LOAD}; {MAINTAIN}; {REPORT}", f"({calls})", project, **database.environment)
        outcome = running.outcome(30)
        assert outcome is not None
        results.append((outcome.value, database.psql("SELECT number, municipality, ST_AsText(geom) FROM parcels")))
        assert results[-1][0] == "(3, None, [('1/2', '1/3')], {'Aue': 3.0})", (outcome, running.stderr)
    assert results[0] == results[1]
