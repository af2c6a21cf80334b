"""What hung ends with the budget after `deadlint migrate`, and what worked works as before.

Each flow runs as it is and migrated, at the same time, with real programs, a real database and a real server.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.pipelines.conftest import Start
from tests.pipelines.project import PIPELINES, Project
from tests.pipelines.running import Outcome, Running
from tests.pipelines.server import Server
from tests.services import Cluster, missing, need_module, need_program

ATLAS = PIPELINES.parent / "migrate"
ENTRIES = (
    "mosaic.flows:build_mosaic", "parcels.dag:load_parcels", "tiler.tasks:publish_tile", "harvest.main:harvest"
)  # fmt: skip
DEADLINE_S = 1.5
RESERVE_S = 0.5
LATE_S = 1.5  # for a machine that is busy with other tests, and Python's imports
HELD_S = 1.5  # what still runs so long after the deadline is held
AMPLE_S = 60.0
COMMAND_LIMIT_S = 60

Pair = Callable[..., list[Running]]


def migrate(project: Project, entry: str, *options: str) -> subprocess.CompletedProcess[str]:
    """`deadlint migrate` as a person runs it in the project's folder."""
    command = [sys.executable, "-m", "deadlint", "migrate", "--entry", entry, "--deadline", "7200", "--reserve", "720"]
    return subprocess.run(
        [*command, *options],
        cwd=project.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=COMMAND_LIMIT_S,
    )


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The flows as they are."""
    return Project(tmp_path_factory.mktemp("plain") / "atlas", ATLAS)


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The flows, each with a budget."""
    project = Project(tmp_path_factory.mktemp("migrated") / "atlas", ATLAS)
    for entry in ENTRIES:
        done = migrate(project, entry, "--write")
        assert done.returncode == 0, done.stderr
    return project


@pytest.fixture
def both(start: Start, plain: Project, migrated: Project) -> Pair:
    """Begin a call of `module` in both: `both(module, call, deadline, code, **environment)`."""

    def begin(module: str, call: str, deadline: float, code: str = "", **environment: str) -> list[Running]:
        package, _, name = module.rpartition(".")
        limits = f"{name}.DEADLINE_S = {deadline}\n{name}.RESERVE_S = {min(RESERVE_S, deadline / 4)}\n"
        return start(f"from {package} import {name}\n{limits}{code}", call, plain, migrated, **environment)

    return begin


def value(running: Running) -> str:
    """What a call returned that ended well and left nothing behind."""
    outcome = running.outcome(AMPLE_S)
    assert outcome is not None
    assert outcome.raised == (), running.stderr
    assert running.descendants() == {}
    return outcome.value


def stopped(now: Running) -> Outcome:
    """How a migrated call ended, which was with its deadline, and with nothing left behind."""
    outcome = now.outcome(DEADLINE_S + LATE_S)
    assert outcome is not None, "the migrated call is held"
    assert "DeadlineExceeded" in outcome.raised, (outcome, now.stderr)
    assert DEADLINE_S - RESERVE_S - 0.3 <= outcome.seconds <= DEADLINE_S + LATE_S
    assert now.descendants() == {}
    return outcome


def held(was: Running) -> None:
    """The call as it was goes on when the migrated one has long ended."""
    assert was.outcome(HELD_S) is None


def parts(running: Running) -> list[str]:
    """The unfinished outputs that a call has left in its folder."""
    return [path.name for path in running.folder.rglob("*") if ".part-" in path.name]


def test_a_second_migration_changes_nothing(migrated: Project) -> None:
    before = migrated.files()
    for entry in ENTRIES:
        assert migrate(migrated, entry, "--diff").stdout == ""
        assert "Nothing to change" in migrate(migrated, entry, "--write").stderr
    assert migrated.files() == before


def test_their_own_tests_pass_before_and_after(plain: Project, migrated: Project) -> None:
    for project in (plain, migrated):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"],
            cwd=project.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_LIMIT_S,
        )
        assert done.returncode == 0, done.stdout
        assert "4 passed" in done.stdout


def test_nothing_else_is_found_in_what_is_migrated(plain: Project, migrated: Project) -> None:
    """No fault is born, and those that a budget mends are gone."""
    was, now = (project.check(select="DL1,DL2,DL3,DL4,DL6").count for project in (plain, migrated))
    assert not now - was
    assert {"DL101", "DL103", "DL202", "DL301"} & was.keys()
    assert not {"DL101", "DL102", "DL103", "DL301", "DL402", "DL404", "DL405", "DL411"} & now.keys()


# --- mosaic: GDAL's programs ---------------------------------------------------------------------------------------

MOSAIC = "mosaic.flows"


@pytest.fixture
def scene(tmp_path: Path) -> str:
    """A small raster."""
    target = tmp_path / "scene.tif"
    need_program("gdalwarp", "gdal-bin")
    command = [need_program("gdal_create", "gdal-bin"), "-of", "GTiff", "-outsize", "64", "64", "-burn", "7"]
    place = ["-a_srs", "EPSG:4326", "-a_ullr", "7", "48", "8", "47", str(target)]
    subprocess.run([*command, *place], check=True, capture_output=True, timeout=COMMAND_LIMIT_S)
    return str(target)


def test_a_mosaic_is_the_same(both: Pair, scene: str) -> None:
    was, now = both(MOSAIC, f"flows.build_mosaic([{scene!r}], Path('.'))", AMPLE_S)
    assert value(was) == value(now)
    assert parts(now) == []
    assert (now.folder / "mosaic.tif").exists()


def test_a_mosaic_of_a_silent_server_ends(both: Pair, server: Server, scene: str) -> None:
    scenes = [scene, f"/vsicurl/{server.url}/silent/scene.tif"]
    was, now = both(MOSAIC, f"flows.build_mosaic({scenes}, Path('.'))", DEADLINE_S)
    stopped(now)
    held(was)
    assert was.descendants() != {}
    assert parts(now) == []


def test_a_mosaic_that_waits_for_an_upload_ends(both: Pair, scene: str) -> None:
    Path(scene).with_suffix(".uploading").touch()
    was, now = both(MOSAIC, f"flows.build_mosaic([{scene!r}], Path('.'))", DEADLINE_S)
    outcome = now.outcome(DEADLINE_S + LATE_S)
    assert outcome is not None
    assert "TimeoutError" in outcome.raised, outcome
    held(was)


# --- parcels: PostGIS, a download, ogr2ogr -------------------------------------------------------------------------

PARCELS = "parcels.dag"
TABLES = """
    CREATE EXTENSION postgis;
    CREATE TABLE parcels (name text, geom geometry(Polygon, 4326));
    CREATE TABLE municipalities (name text, geom geometry(MultiPolygon, 4326));
"""


@pytest.fixture(scope="module")
def dsn(cluster: Cluster) -> str:
    """A database with empty tables."""
    need_module("psycopg")
    need_program("ogr2ogr", "gdal-bin")
    cluster.psql("CREATE DATABASE atlas")
    if cluster.psql("SELECT 1 FROM pg_available_extensions WHERE name = 'postgis'", "atlas") != "1":
        missing("PostGIS", "apt-get install postgresql-15-postgis-3")
    cluster.psql(TABLES, "atlas")
    return cluster.dsn.replace("dbname=postgres", "dbname=atlas")


@contextmanager
def locked(dsn: str, table: str) -> Iterator[None]:
    """Hold the lock on a table that a change of its columns takes."""
    psycopg = need_module("psycopg")
    with psycopg.connect(dsn) as conn:
        conn.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield


def test_parcels_are_the_same(
    start: Start, plain: Project, migrated: Project, server: Server, dsn: str, cluster: Cluster
) -> None:
    for project in (plain, migrated):  # one after the other: they write the same tables
        call = f"dag.load_parcels('{server.url}/good/region.geojson', '.', {dsn!r})"
        [running] = start("from parcels import dag", call, project)
        assert value(running) == "1"
        assert cluster.psql("SELECT name FROM municipalities", "atlas") == "Plains"


@pytest.mark.parametrize("table", ["parcels", "municipalities"])
def test_parcels_behind_a_lock_end_on_the_server_too(
    both: Pair, server: Server, dsn: str, cluster: Cluster, table: str
) -> None:
    with locked(dsn, table):
        was, now = both(PARCELS, f"dag.load_parcels('{server.url}/good/region.geojson', '.', {dsn!r})", DEADLINE_S)
        stopped(now)
        held(was)
        assert cluster.running(f"DELETE FROM {table}") == 1  # of the call as it was


def test_parcels_of_a_slow_server_end(both: Pair, server: Server, dsn: str) -> None:
    was, now = both(PARCELS, f"dag.load_parcels('{server.url}/slow-body/x', '.', {dsn!r})", DEADLINE_S)
    stopped(now)
    held(was)


# --- tiler: GDAL's programs, an upload ------------------------------------------------------------------------------

TILER = "tiler.tasks"


@pytest.fixture
def mercator(scene: str, tmp_path: Path) -> str:
    """The raster in the projection of tiles."""
    target = tmp_path / "mercator.tif"
    subprocess.run(
        ["gdalwarp", "-q", "-t_srs", "EPSG:3857", scene, str(target)], check=True, timeout=COMMAND_LIMIT_S
    )
    return str(target)


def test_a_tile_is_the_same(both: Pair, server: Server, mercator: str) -> None:
    need_module("requests")
    was, now = both(TILER, f"tasks.publish_tile({mercator!r}, 9, 266, 178, '{server.url}/good', '.')", AMPLE_S)
    assert value(was) == value(now) == repr(f"{server.url}/good/9/266/178.tif")
    tiles = [(running.folder / "9-266-178.tif").read_bytes() for running in (was, now)]
    assert tiles[0] == tiles[1]


@pytest.mark.parametrize("manner", ["slow-headers", "slow-body"])
def test_an_upload_to_a_slow_server_ends(both: Pair, server: Server, mercator: str, manner: str) -> None:
    need_module("requests")
    was, now = both(TILER, f"tasks.publish_tile({mercator!r}, 9, 266, 178, '{server.url}/{manner}', '.')", DEADLINE_S)
    stopped(now)
    held(was)


# --- harvest: asyncio, threads, ogr2ogr -----------------------------------------------------------------------------

HARVEST = "harvest.main"


def test_a_harvest_is_the_same(both: Pair, server: Server) -> None:
    need_module("httpx")
    need_program("ogr2ogr", "gdal-bin")
    call = f"asyncio.run(main.harvest(['{server.url}/good'], '.'))"
    was, now = both(HARVEST, call, AMPLE_S, "import asyncio")
    assert value(was) == value(now) == repr({f"{server.url}/good": 1})
    assert (now.folder / "roads.gpkg").exists()
    assert parts(now) == []


def test_a_harvest_of_a_slow_server_ends(both: Pair, server: Server) -> None:
    need_module("httpx")
    call = f"asyncio.run(main.harvest(['{server.url}/slow-body'], '.'))"
    was, now = both(HARVEST, call, DEADLINE_S, "import asyncio")
    stopped(now)
    held(was)
