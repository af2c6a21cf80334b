"""The settings that a check runs under, after configuration files and command line are merged."""

from __future__ import annotations

from dataclasses import dataclass, field

from deadlint.model import Level

# Programs that run for minutes or hours: a child without a limit is a fault for nearly every reader.
LONG_RUNNING = (
    "gdal*", "ogr*", "nearblack", "pdal", "entwine", "untwine", "osm2pgsql", "osmium", "osmosis", "osmconvert",
    "osmfilter", "imposm", "imposm3", "raster2pgsql", "shp2pgsql", "psql", "pg_dump", "pg_dumpall", "pg_restore", "rio",
    "rsync", "saga_cmd", "otbcli*", "otbApplicationLauncherCommandLine", "qgis_process", "gpt", "grass", "grass7*",
    "grass8*", "tippecanoe", "tile-join", "pmtiles", "whitebox_tools", "aria2c", "wget", "curl",
)  # fmt: skip
# Programs that have no children of their own: killing the direct child ends all of it.
LEAF = ("gdal*", "ogr*", "nearblack", "ffmpeg", "ffprobe", "exiftool", "raster2pgsql", "shp2pgsql")
# Programs that only read and have no children: a kill leaves nothing behind.
READ_ONLY = (
    "gdalinfo", "ogrinfo", "gdalsrsinfo", "gdallocationinfo", "gdal info", "gdal raster info", "gdal vector info",
    "gdal mdim info", "gdal dataset identify", "exiftool", "ffprobe", "file", "stat",
)  # fmt: skip
TESTS = ("**/test_*.py", "**/*_test.py", "**/conftest.py", "**/tests/**", "**/test/**", "**/testing/**")
# Directories that hold no source of the project: version control, environments, caches, what a build makes.
EXCLUDE = (
    ".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", "__pypackages__", ".tox", ".nox",
    "build/", "dist/", "site-packages/", ".eggs", "*.egg-info", ".direnv", ".pixi", ".mypy_cache",
    ".pytest_cache", ".ruff_cache", ".ipynb_checkpoints", ".deadlint_cache",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wrappers:
    """The project's own functions that take care of a limit, as dotted names (`pkg.module.function`).

    `requests` are request functions that set a default timeout, `sessions` classes or factories whose sessions do,
    `processes` functions that stop the whole group on expiry.
    """

    requests: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Constants:
    """Names and values (source text) of the constants that fixes use where a number is needed."""

    http: tuple[str, str] = ("HTTP_LIMIT_S", "30")
    process: tuple[str, str] = ("PROCESS_LIMIT_S", "3600")
    statement: tuple[str, str] = ("STATEMENT_LIMIT_S", "60")
    cleanup: tuple[str, str] = ("CLEANUP_LIMIT_S", "20")


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user decided. Patterns are gitignore-like; programs are `fnmatch` patterns of a base name."""

    select: tuple[str, ...] = ()  # empty: every rule
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    level: Level = Level.DEFAULT
    exclude: tuple[str, ...] = EXCLUDE
    notebooks: bool = True  # whether those are looked for
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    src: tuple[str, ...] = ("src",)  # below `root`: where the project's packages are imported from, beside that
    tests: tuple[str, ...] = TESTS
    long_running: tuple[str, ...] = LONG_RUNNING
    leaf: tuple[str, ...] = LEAF
    read_only: tuple[str, ...] = READ_ONLY
    wrappers: Wrappers = field(default_factory=Wrappers)
    constants: Constants = field(default_factory=Constants)
    helpers: str = "deadlint_budget"
    helpers_are_own: bool = False  # `helpers` is set, or the project depends on deadlint: the import is safe
    server_statement_timeout: bool = False
    baseline: str | None = None  # the absolute path of the file with the findings that are known
    root: str = "."  # the directory that holds the configuration; patterns are relative to it
