"""Calls that hold their thread or task until something outside has happened, and what of their arguments bounds them.

Rules ask `BLOCKING` for what holds a thread; the tree of limits takes all of `WAITS` as leaves.
"""

from __future__ import annotations

from dataclasses import dataclass

VERBS = ("get", "post", "put", "patch", "delete", "head", "options")
SLEEP = "time.sleep"


@dataclass(frozen=True, slots=True)
class Wait:
    """How a call that waits takes its limit, in seconds.

    `keyword` is None where it takes none. `default` holds where none is given; `each_read` where the limit is on
    each read or phase, so that nothing bounds the whole.
    """

    layer: str  # "process", "request", "statement", "gdal", "wait", "sleep"
    keyword: str | None = "timeout"
    position: int | None = None
    default: float | None = None
    each_read: bool = False


def _each(wait: Wait, base: str, names: tuple[str, ...]) -> dict[str, Wait]:
    return {f"{base}.{name}": wait for name in names}


_SLEEPS = {
    SLEEP: Wait("sleep", "secs", 0),
    "asyncio.sleep": Wait("sleep", "delay", 0),
    "anyio.sleep": Wait("sleep", "delay", 0),
    "trio.sleep": Wait("sleep", "seconds", 0),
}
_PROCESSES = (
    _each(Wait("process"), "subprocess", ("run", "call", "check_call", "check_output"))
    | _each(Wait("process", None), "subprocess", ("getoutput", "getstatusoutput"))
    | _each(Wait("process", None), "asyncio.Process", ("wait", "communicate"))
    | {
        "subprocess.Popen.wait": Wait("process", position=0),
        "subprocess.Popen.communicate": Wait("process", position=1),
        "os.system": Wait("process", None),
    }
)
_READS = Wait("request", each_read=True)
_HTTPX = Wait("request", each_read=True, default=5.0)  # of httpx, for each phase
_AIOHTTP = Wait("request", default=300.0)  # of aiohttp, in all
_URLLIB3_POOLS = ("PoolManager", "ProxyManager", "HTTPConnectionPool", "HTTPSConnectionPool")
_REQUESTS = (
    _each(_READS, "requests", (*VERBS, "request"))
    | _each(_READS, "requests.Session", (*VERBS, "send"))
    | {
        "requests.Session.request": Wait("request", position=8, each_read=True),
        "urllib.request.urlopen": Wait("request", position=2, each_read=True),
        "urllib.request.OpenerDirector.open": Wait("request", position=2, each_read=True),
        "urllib.request.urlretrieve": Wait("request", None),
        "urllib3.request": _READS,
    }
    | {
        f"urllib3.{pool}.{name}": _READS
        for pool in _URLLIB3_POOLS
        for name in ("request", "urlopen", "request_encode_url", "request_encode_body")
    }
    | {
        f"{base}.{verb}": _HTTPX
        for base in ("httpx", "httpx.Client", "httpx.AsyncClient")
        for verb in (*VERBS, "request", "stream")
    }
    | _each(_AIOHTTP, "aiohttp.ClientSession", (*VERBS, "request"))
    | {"aiohttp.request": _AIOHTTP}
)
# A statement's limit is the session's: no argument says it.
_DATABASES = (
    _each(Wait("statement", None), "psycopg2.cursor", ("execute", "executemany", "copy_expert"))
    | _each(Wait("statement", None), "psycopg.Connection", ("execute",))
    | _each(Wait("statement", None), "psycopg.Cursor", ("execute", "executemany"))
    | _each(Wait("statement", None), "sqlalchemy.Connection", ("execute",))
    | _each(Wait("statement", None), "sqlalchemy.orm.Session", ("execute", "scalars", "scalar"))
)
CONNECTS = frozenset({"psycopg2.connect", "psycopg.connect"})
DATABASES = frozenset(_DATABASES) | CONNECTS
_ASYNC_DATABASES = (
    _each(Wait("statement", None), "psycopg.AsyncConnection", ("execute",))
    | _each(Wait("statement", None), "psycopg.AsyncCursor", ("execute", "executemany"))
    | _each(Wait("statement", None), "sqlalchemy.ext.asyncio.AsyncConnection", ("execute",))
    | _each(Wait("statement", None), "sqlalchemy.ext.asyncio.AsyncSession", ("execute", "scalars", "scalar"))
    | _each(Wait("statement"), "asyncpg.Connection", ("execute", "fetch", "fetchrow", "fetchval", "executemany"))
    | _each(Wait("statement"), "asyncpg.Pool", ("execute", "fetch", "fetchrow", "fetchval", "executemany"))
)
# Waits for other threads and processes: where they take a timeout.
THREADS: dict[str, int | None] = {
    "queue.Queue.get": 1, "queue.SimpleQueue.get": 1, "queue.Queue.join": None, "multiprocessing.Queue.get": 1,
    "threading.Event.wait": 0, "threading.Thread.join": 0, "multiprocessing.Process.join": 0,
    "concurrent.futures.Future.result": 0, "concurrent.futures.wait": 1,
}  # fmt: skip
_THREADS = {
    name: Wait("wait", None if name == "queue.Queue.join" else "timeout", place) for name, place in THREADS.items()
}
LOCKS = frozenset({"fcntl.flock", "fcntl.lockf", "filelock.FileLock.acquire"})
_LOCKS = dict.fromkeys(LOCKS, Wait("wait", None)) | {"filelock.FileLock.acquire": Wait("wait", position=0)}

# --- GDAL in process -------------------------------------------------------------------------------------------

# Old code has the module at the top level, and so have the tools that GDAL ships.
GDAL_MODULES = ("osgeo.gdal", "gdal")
# Functions that take everything as keywords, or an object of the class `…Options`.
_UTILITIES = (
    "Warp", "Translate", "BuildVRT", "Rasterize", "VectorTranslate", "DEMProcessing", "Grid", "Nearblack", "Footprint",
    "MultiDimTranslate",
)  # fmt: skip
# Functions with a callback among their parameters, and its position (GDAL 3.6, its Python bindings).
_FUNCTIONS = {
    "ReprojectImage": 7, "RasterizeLayer": 7, "Polygonize": 5, "FPolygonize": 5, "FillNodata": 5, "SieveFilter": 6,
    "ComputeProximity": 3, "ContourGenerate": 9, "ContourGenerateEx": 3,
}  # fmt: skip
# Methods of what these return.
_DATASETS = (
    "Open", "OpenEx", "Dataset", "Warp", "Translate", "BuildVRT", "GetDriverByName.Create",
    "GetDriverByName.CreateCopy",
)  # fmt: skip
_DRIVERS = ("GetDriverByName", "Driver")

GDAL_UTILITIES = frozenset(f"{module}.{name}" for module in GDAL_MODULES for name in _UTILITIES)
# GDAL 3.11 and later: `gdal.Run("raster", "convert", …)`, `gdal.Algorithm("raster", "convert").Run()`.
GDAL_ALGORITHMS = frozenset(f"{module}.{name}" for module in GDAL_MODULES for name in ("Run", "Algorithm.Run"))
# The position of the callback, which is all that can stop such a call.
GDAL: dict[str, int | None] = (
    dict.fromkeys(GDAL_UTILITIES)
    | {f"{module}.{name}": place for module in GDAL_MODULES for name, place in _FUNCTIONS.items()}
    | {f"{module}.{name}.BuildOverviews": 2 for module in GDAL_MODULES for name in _DATASETS}
    | {f"{module}.{name}.CreateCopy": 4 for module in GDAL_MODULES for name in _DRIVERS}
    | {name: 0 if name.endswith("Algorithm.Run") else None for name in GDAL_ALGORITHMS}
)

# --- all of them -----------------------------------------------------------------------------------------------

WAITS: dict[str, Wait] = (
    _SLEEPS
    | _PROCESSES
    | _REQUESTS
    | _DATABASES
    | _ASYNC_DATABASES
    | _THREADS
    | _LOCKS
    | dict.fromkeys(GDAL, Wait("gdal", None))
)
