"""What hung or left processes behind does neither after deadlint's fixes, and works as before where nothing hangs.

Each call runs as it is and fixed at the same time, in processes of their own. The limits are those of the pipelines,
set to less than a second.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.pipelines.conftest import PROGRAMS, Start
from tests.pipelines.project import Project, contents
from tests.pipelines.running import Outcome, Running
from tests.pipelines.server import Server
from tests.services import need_program

LIMIT_S = 0.6
LATE_S = 0.75  # for a machine that is busy with other tests; an idle one needs 0.1
HELD_S = 1.5  # what still runs by then is held: its limit is long over
AMPLE_S = 60.0


# The limits of each module, those that fixes give a name to among them.
LIMITS = {
    "mosaic.rasters": ("WARP_LIMIT_S", "OVERVIEW_LIMIT_S", "COG_LIMIT_S", "PROCESS_LIMIT_S", "TO_BYTES_PROCESS_LIMIT_S"),
    "mosaic.vectors": ("FETCH_LIMIT_S", "BURN_LIMIT_S"),
    "tiles.download": ("TILE_LIMIT_S", "HTTP_LIMIT_S"),
    "tiles.catalogue": ("SEARCH_LIMIT_S", "HTTP_LIMIT_S"),
}


@dataclass(frozen=True)
class Call:
    """A call of a module of the pipelines. `wrong` is the program or the server that does not behave."""

    module: str
    call: str
    wrong: str = ""

    def limited(self, seconds: float) -> str:
        """The code before the call that gives its limits so many seconds."""
        package, _, name = self.module.partition(".")
        limits = "".join(f"{name}.{limit} = {seconds}\n" for limit in LIMITS[self.module])
        return f"from {package} import {name}\n{limits}"

    def __str__(self) -> str:
        """What pytest calls a test of it."""
        return self.call.partition("(")[0] + (f"-{self.wrong}" if self.wrong else "")


RASTERS, VECTORS, DOWNLOAD, CATALOGUE = LIMITS
WARP = "rasters.warp('scene.tif', Path('out.tif'), 3857)"
TO_BYTES = "rasters.to_bytes(Path('a.tif'), Path('b.tif'))"
ADD_OVERVIEWS = "rasters.add_overviews(Path('mosaic.tif'))"
TO_COG = "rasters.to_cog(Path('a.vrt'), Path('b.tif'))"
BURN = "vectors.burn(Path('region.gpkg'), Path('mask.tif'))"
FETCH = "vectors.fetch_boundary('https://example.org/a b.json', Path('region.gpkg'))"

LEAVES_A_TREE = [
    Call(RASTERS, WARP, "gdalwarp"),
    Call(RASTERS, ADD_OVERVIEWS, "gdaladdo"),
    Call(VECTORS, FETCH, "curl"),
    Call(VECTORS, FETCH, "ogr2ogr"),
]
HOLDS_THE_CALLER = [
    # No limit at all.
    Call(RASTERS, TO_BYTES, "gdal_translate"),
    # `kill(); communicate()`, and a grandchild that holds the pipe.
    Call(RASTERS, TO_COG, "rio"),
    # The end of `with Popen` waits.
    Call(VECTORS, BURN, "gdal_rasterize"),
]
TILE = "download.tile(URL + '/{z}/{x}/{y}.png', 1, 2, 3)"
ARCHIVE = "download.archive(URL + '/osm.mbtiles', Path('osm.mbtiles'))"
LEGEND = "download.legend(URL + '/legend.png', Path('legend.png'))"
ZOOM_RANGE = "download.zoom_range(URL + '/osm')"
COLLECTIONS = "catalogue.Catalogue(URL).collections()"
SEARCH = "catalogue.Catalogue(URL).search('roads', (5, 45, 9, 50))"

BAD_SERVERS = [
    Call(DOWNLOAD, TILE, "slow-body"),
    # Not `archive`: it streams without a budget, and its fix is only shown.
    Call(DOWNLOAD, LEGEND, "slow-body"),
    Call(DOWNLOAD, ZOOM_RANGE, "silent"),
    Call(CATALOGUE, COLLECTIONS, "silent"),
    Call(CATALOGUE, SEARCH, "slow-headers"),
]
Pair = Callable[..., list[Running]]


@pytest.fixture
def both(start: Start, before: Project, after: Project) -> Pair:
    """Begin a call in both projects: `both(code, call, **environment)`."""

    def begin(code: str, call: str, **environment: str) -> list[Running]:
        return start(code, call, before, after, **environment)

    return begin


def eventually(true: Callable[[], bool], within: float = 3.0) -> bool:
    """Whether it becomes true; for what other processes do in their own time."""
    end = time.monotonic() + within
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def stopped_in_time(running: Running) -> Outcome:
    """How a call ended, which was soon after its limit and with an error that says so."""
    outcome = running.outcome(LIMIT_S + HELD_S)
    assert outcome is not None, "the fixed call is held"
    assert LIMIT_S - 0.1 <= outcome.seconds <= LIMIT_S + LATE_S
    assert "DeadlineExceeded" in outcome.raised, (outcome, running.stderr)
    return outcome


@pytest.mark.parametrize("call", LEAVES_A_TREE, ids=str)
def test_no_process_survives(call: Call, both: Pair, with_programs: dict[str, str]) -> None:
    was, now = both(call.limited(LIMIT_S), call.call, **{**with_programs, "STANDIN_STUCK": call.wrong})
    ended = was.outcome(LIMIT_S + HELD_S)
    assert ended is not None
    assert was.works()
    outcome = now.outcome(LIMIT_S + HELD_S)
    assert outcome is not None
    assert outcome.seconds <= LIMIT_S + LATE_S
    assert now.descendants() == {}
    # What handled the old exception handles the new one.
    assert outcome.raised == () or "TimeoutExpired" in outcome.raised


@pytest.mark.parametrize("call", HOLDS_THE_CALLER, ids=str)
def test_the_caller_is_not_held_by_a_process(call: Call, both: Pair, with_programs: dict[str, str]) -> None:
    was, now = both(call.limited(LIMIT_S), call.call, **{**with_programs, "STANDIN_STUCK": call.wrong})
    assert "TimeoutExpired" in stopped_in_time(now).raised
    assert now.descendants() == {}
    assert was.outcome(HELD_S - LIMIT_S) is None
    assert was.descendants() != {}


@pytest.mark.parametrize(
    ("call", "number"),
    [
        (LEAVES_A_TREE[0], signal.SIGINT),
        (LEAVES_A_TREE[0], signal.SIGTERM),
        (HOLDS_THE_CALLER[2], signal.SIGINT),
        (HOLDS_THE_CALLER[2], signal.SIGTERM),
    ],
    ids=str,
)
def test_a_stop_reaches_the_children_alike(
    call: Call, number: signal.Signals, both: Pair, with_programs: dict[str, str]
) -> None:
    """A child in a session of its own does not get what the group of its parent gets."""
    was, now = both(call.limited(AMPLE_S), call.call, **{**with_programs, "STANDIN_STUCK": call.wrong})
    assert eventually(was.works)
    assert eventually(now.works)
    was.stop(number)
    now.stop(number)
    assert eventually(lambda: not was.descendants())
    assert eventually(lambda: not now.descendants())


@pytest.mark.parametrize("call", BAD_SERVERS, ids=str)
def test_the_caller_is_not_held_by_a_server(call: Call, both: Pair, server: Server) -> None:
    was, now = both(f"{call.limited(LIMIT_S)}URL = '{server.url}/{call.wrong}'", call.call)
    stopped_in_time(now)
    assert was.outcome(HELD_S - LIMIT_S) is None


# What a module does, call after call, each whatever became of the one before.
ALL_OF_A_MODULE = {
    RASTERS: [WARP, TO_BYTES, ADD_OVERVIEWS, TO_COG],
    VECTORS: [FETCH, BURN],
    DOWNLOAD: [TILE, ARCHIVE, LEGEND, ZOOM_RANGE],
    CATALOGUE: [COLLECTIONS, SEARCH],
}
ATTEMPT = """
def attempt(call):
    try:
        return call()
    except Exception as error:
        return [kind.__name__ for kind in type(error).__mro__], str(error)
"""


def everything(module: str) -> Call:
    """Every call of a module, in one."""
    return Call(module, f"[{', '.join(f'attempt(lambda: {call})' for call in ALL_OF_A_MODULE[module])}]")


@dataclass(frozen=True)
class Effects:
    """All that a call has done that can be seen; what was printed and which programs were run is in files."""

    value: str
    raised: tuple[str, ...]
    words: str
    files: dict[str, bytes]


def effects(running: Running) -> Effects:
    """What a call has done, once it has ended."""
    outcome = running.outcome(30)
    assert outcome is not None
    assert running.descendants() == {}
    return Effects(outcome.value, outcome.raised, outcome.words, contents(running.folder))


@pytest.mark.parametrize("fails", [False, True], ids=["works", "fails"])
@pytest.mark.parametrize("module", [RASTERS, VECTORS])
def test_programs_end_alike(module: str, fails: bool, both: Pair, with_programs: dict[str, str]) -> None:
    call = everything(module)
    world = {**with_programs, "STANDIN_FAILS": " ".join(set(PROGRAMS) - {"curl"}) if fails else ""}
    was, now = map(effects, both(ATTEMPT + call.limited(AMPLE_S), call.call, **world))
    assert was == now
    assert was.raised == ()
    assert ("CalledProcessError" in was.value) is fails
    assert any(name.startswith("log.") for name in was.files)


@pytest.mark.parametrize("manner", ["good", "gone"])
@pytest.mark.parametrize("module", [DOWNLOAD, CATALOGUE])
def test_requests_end_alike(module: str, manner: str, both: Pair, server: Server) -> None:
    call = everything(module)
    was, now = map(effects, both(f"{ATTEMPT}{call.limited(AMPLE_S)}URL = '{server.url}/{manner}'", call.call))
    assert was == now
    assert was.raised == ()
    assert ("HTTPError" in was.value) is (manner == "gone")


def test_the_flow_works_alike(both: Pair, with_programs: dict[str, str]) -> None:
    code = "from mosaic import flow; Path('s2').mkdir(); Path('out').mkdir()"
    was, now = map(effects, both(code, "flow.build_mosaic(['s2/t32.tif', 's2/t33.tif'], Path('out'))", **with_programs))
    assert was == now
    assert was.raised == ()
    assert was.files["log.gdalwarp"].count(b"\n") == 2


def test_with_the_real_gdal(both: Pair, server: Server) -> None:
    """A download that never begins, into the real `ogr2ogr`; then one that works."""
    need_program("curl", "curl")
    need_program("ogr2ogr", "gdal-bin")
    stuck, works = (
        Call(VECTORS, f"vectors.fetch_boundary('{server.url}/{manner}/region.geojson', Path('region.gpkg'))")
        for manner in ("silent", "good")
    )
    was, now = both(stuck.limited(LIMIT_S), stuck.call)
    assert was.outcome(LIMIT_S + HELD_S) is not None
    assert {command.split()[0] for command in was.descendants().values()} >= {"curl", "ogr2ogr"}
    stopped_in_time(now)
    assert now.descendants() == {}
    for running in both(works.limited(AMPLE_S), works.call):
        outcome = running.outcome(AMPLE_S)
        assert outcome is not None
        assert outcome.raised == (), running.stderr
        assert b"Plains" in (running.folder / "region.gpkg").read_bytes()
