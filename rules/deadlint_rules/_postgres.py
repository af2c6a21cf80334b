"""What opens a session with PostgreSQL, and what limit on its statements the opening call itself gives."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from deadlint.index.resolve import Resolver
from deadlint.index.scopes import Scope
from deadlint.index.values import (
    NONE,
    UNKNOWN,
    Const,
    Mapping,
    Member,
    Parameter,
    Result,
    Template,
    Value,
    Values,
)
from deadlint.site import Argument, Site

from deadlint_rules import _sql

Driver = Literal["psycopg", "psycopg2", "asyncpg", "sqlalchemy", "sqlalchemy-async", "pandas", "gdal"]
Holds = Literal["connection", "pool", "engine", "query", "source"]


@dataclass(frozen=True, slots=True)
class Maker:
    """A call that opens sessions, and where it takes what it connects to."""

    driver: Driver
    holds: Holds
    dsn: tuple[str, int]


MAKERS: dict[str, Maker] = {
    "psycopg.connect": Maker("psycopg", "connection", ("conninfo", 0)),
    "psycopg.AsyncConnection.connect": Maker("psycopg", "connection", ("conninfo", 0)),
    "psycopg2.connect": Maker("psycopg2", "connection", ("dsn", 0)),
    "asyncpg.connect": Maker("asyncpg", "connection", ("dsn", 0)),
    "asyncpg.create_pool": Maker("asyncpg", "pool", ("dsn", 0)),
    "sqlalchemy.create_engine": Maker("sqlalchemy", "engine", ("url", 0)),
    "sqlalchemy.ext.asyncio.create_async_engine": Maker("sqlalchemy-async", "engine", ("url", 0)),
    "geopandas.read_postgis": Maker("pandas", "query", ("con", 1)),
    "geopandas.GeoDataFrame.from_postgis": Maker("pandas", "query", ("con", 1)),
    "osgeo.ogr.Open": Maker("gdal", "source", ("utf8_path", 0)),
    "ogr.Open": Maker("gdal", "source", ("utf8_path", 0)),
    "osgeo.gdal.Open": Maker("gdal", "source", ("utf8_path", 0)),
    "osgeo.gdal.OpenEx": Maker("gdal", "source", ("utf8_path", 0)),
    "gdal.Open": Maker("gdal", "source", ("utf8_path", 0)),
    "gdal.OpenEx": Maker("gdal", "source", ("utf8_path", 0)),
    "fiona.open": Maker("gdal", "source", ("fp", 0)),
    "rasterio.open": Maker("gdal", "source", ("fp", 0)),
    "geopandas.read_file": Maker("gdal", "source", ("filename", 0)),
    "pyogrio.read_dataframe": Maker("gdal", "source", ("path_or_buffer", 0)),
}
for _pool in ("ConnectionPool", "AsyncConnectionPool", "NullConnectionPool", "AsyncNullConnectionPool"):
    MAKERS[f"psycopg_pool.{_pool}"] = Maker("psycopg", "pool", ("conninfo", 0))
for _pool in ("SimpleConnectionPool", "ThreadedConnectionPool"):
    MAKERS[f"psycopg2.pool.{_pool}"] = Maker("psycopg2", "pool", ("dsn", 2))
for _read in ("read_sql", "read_sql_query", "read_sql_table"):
    MAKERS[f"pandas.{_read}"] = Maker("pandas", "query", ("con", 1))

# Words that a file has where one of these calls may stand in it.
WORDS = (
    ("psycopg", "onnect"), ("psycopg_pool",), ("asyncpg", "connect"), ("asyncpg", "create_pool"),
    ("create_engine", "sqlalchemy"), ("create_engine", "sqlmodel"), ("create_async_engine", "sqlalchemy"),
    ("read_postgis", "postgres"), ("from_postgis", "postgres"), ("read_sql", "postgres"),
    ("PG:", "ogr"), ("PG:", "gdal"), ("PG:", "fiona"), ("PG:", "rasterio"), ("PG:", "geopandas"),
)  # fmt: skip


class Known(Enum):
    """Whether a call gives a limit."""

    NO = "no"
    YES = "yes"
    PERHAPS = "perhaps"  # unknown `**kwargs`, options from elsewhere


@dataclass(frozen=True, slots=True)
class Given:
    """The limit that a call gives its sessions; `value` is its text, `node` the argument that holds it."""

    known: Known
    value: str = ""
    node: ast.expr | None = None

    @property
    def zero(self) -> bool:
        """Whether PostgreSQL takes the value for 0."""
        return self.known is Known.YES and _sql.is_none(self.value)


NOTHING = Given(Known.NO)
PERHAPS = Given(Known.PERHAPS)


def maker(site: Site) -> Maker:
    """What the site's call opens."""
    return MAKERS[site.name]


def given(site: Site) -> Given:
    """The limit on statements that the opening call gives."""
    if any(isinstance(arg, ast.Starred) for arg in site.call.args):
        return PERHAPS
    match maker(site):
        case Maker(driver="psycopg", holds="pool"):
            return _first(_dsn(site), _within(site.argument("kwargs"), _options_of))
        case Maker(driver="psycopg" | "psycopg2"):
            return _first(_options(site.argument("options")), _dsn(site))
        case Maker(driver="asyncpg"):
            return _first(_server_settings(site.argument("server_settings")), _command(site), _dsn(site))
        case Maker(driver="sqlalchemy" | "sqlalchemy-async"):
            return _first(_connect_args(site), _dsn(site), _elsewhere(site))
    return _dsn(site)


def _first(*found: Given) -> Given:
    """The first that gives a limit; else one that perhaps does."""
    for known in (Known.YES, Known.PERHAPS):
        for one in found:
            if one.known is known:
                return one
    return NOTHING


def _options(argument: Argument) -> Given:
    """`options="-c statement_timeout=…"`."""
    return _in_texts(argument.values, argument.node)


def _in_texts(values: Values, node: ast.expr | None) -> Given:
    found = NOTHING
    for value in values:
        text = text_of(value)
        if value == NONE:
            continue
        if text is None:
            found = _first(found, PERHAPS)
        else:
            limit = _sql.in_options(text)
            # What is unknown in a text of options may be the limit itself.
            if limit is None and _sql.HOLE in text:
                found = _first(found, PERHAPS)
            elif limit is not None:
                found = _first(found, Given(Known.YES, limit, node))
    return found


def _options_of(mapping: Mapping) -> Given:
    values = mapping.get("options")
    return NOTHING if values is None else _in_texts(values, None)


def _server_settings(argument: Argument) -> Given:
    return _within(argument, _setting_of)


def _setting_of(mapping: Mapping) -> Given:
    values = mapping.get(_sql.STATEMENT)
    if values is None:
        return NOTHING
    match values:
        case (Const(value=value),) if isinstance(value, str | int | float):
            return Given(Known.YES, str(value))
    return Given(Known.YES)


def _within(argument: Argument, look: object) -> Given:
    """What a dict that is an argument gives; perhaps something where it is not known."""
    assert callable(look)
    found = NOTHING
    for value in argument.values:
        match value:
            case Mapping(open=is_open):
                inner = look(value)
                found = _first(found, inner, PERHAPS if is_open and inner.known is Known.NO else NOTHING)
            case Const(value=None):
                continue
            case _:
                found = _first(found, PERHAPS)
    return Given(found.known, found.value, argument.node) if found.known is Known.YES else found


def _command(site: Site) -> Given:
    """asyncpg's `command_timeout`: the driver cancels on the server."""
    argument = site.argument("command_timeout")
    values = tuple(v for v in argument.values if v != NONE)
    if not values:
        return NOTHING
    if all(isinstance(v, Parameter) for v in values) or UNKNOWN in values:
        return PERHAPS
    return Given(Known.YES)


def _connect_args(site: Site) -> Given:
    def look(mapping: Mapping) -> Given:
        settings = mapping.get("server_settings")
        command = mapping.get("command_timeout")
        return _first(
            _options_of(mapping),
            NOTHING if settings is None else _server_settings(Argument(settings)),
            NOTHING if command in (None, (NONE,)) else Given(Known.YES),
        )

    return _within(site.argument("connect_args"), look)


def _elsewhere(site: Site) -> Given:
    """A creator, or a pool made before: their connections are judged where they are made."""
    for name in ("creator", "async_creator", "pool"):
        argument = site.argument(name)
        if argument.values and argument.values != (NONE,):
            return PERHAPS
    return NOTHING


def _dsn(site: Site) -> Given:
    """A limit in the DSN or URL, where that can be read. One that cannot be read gives none."""
    argument = _dsn_argument(site)
    found = NOTHING
    for text in _texts(argument.values, site.module.resolver, site.scope):
        limit = _sql.in_options(text)
        if limit is not None:
            found = _first(found, Given(Known.YES, limit, argument.node))
    return found


def _dsn_argument(site: Site) -> Argument:
    name, position = maker(site).dsn
    return site.argument(name, position)


def behind_pgbouncer(site: Site) -> bool:
    """Whether what a call connects to is pgbouncer: its usual port, or a host that is called so."""
    port = site.argument("port").constant
    if port is not None and str(port.value) == "6432":
        return True
    hosts = [text_of(v) or "" for v in site.argument("host").values]
    texts = [*hosts, *_texts(_dsn_argument(site).values, site.module.resolver, site.scope)]
    return any(re.search(r":6432\b|port=6432\b|pgbouncer", text, re.I) for text in texts)


# What stands for options that are not known: they may hold a limit.
_SOME_LIMIT = f"statement_timeout={_sql.HOLE}"


def _texts(values: Values, resolver: Resolver, scope: Scope) -> Iterator[str]:
    """The texts of connection strings and URLs, also of those that functions put together."""
    for value in values:
        match value:
            case Const(str()) | Template():
                yield text_of(value) or ""
            case Parameter(default=default):
                yield from _texts(default, resolver, scope)
            case Result(
                name="psycopg.conninfo.make_conninfo" | "psycopg2.extensions.make_dsn", call=ast.Call() as call
            ):
                where = value.scope or scope
                yield from _made(call, resolver, where)
            case Result(name="sqlalchemy.URL.create" | "sqlalchemy.URL", call=ast.Call() as call):
                yield from _made(call, resolver, value.scope or scope)
            case Result(name="sqlalchemy.make_url", call=ast.Call(args=[first, *_])):
                yield from _texts(resolver.evaluate(first, value.scope or scope), resolver, value.scope or scope)
            case Result(name=name, receiver=Result() as url, call=ast.Call() as call) if name in _QUERY_CHANGES:
                yield from _texts((url,), resolver, scope)
                yield from _query(call, resolver, value.scope or scope)


_QUERY_CHANGES = frozenset(
    f"{made}.{method}"
    for made in ("sqlalchemy.make_url", "sqlalchemy.URL.create", "sqlalchemy.URL")
    for method in ("set", "update_query_dict", "update_query_pairs", "update_query_string")
)


def _query(call: ast.Call, resolver: Resolver, scope: Scope) -> Iterator[str]:
    """What changes the query of a URL."""
    for node in (*call.args[:1], *(k.value for k in call.keywords if k.arg in ("query", "query_parameters"))):
        for value in resolver.evaluate(node, scope):
            match value:
                case Mapping(open=False):
                    yield from (text_of(v) or _SOME_LIMIT for v in value.get("options") or ())
                case Const(str()) | Template():
                    yield text_of(value) or ""
                case _:
                    yield _SOME_LIMIT


def _made(call: ast.Call, resolver: Resolver, scope: Scope) -> Iterator[str]:
    for argument in call.args[:1]:
        yield from _texts(resolver.evaluate(argument, scope), resolver, scope)
    for keyword in call.keywords:
        for value in resolver.evaluate(keyword.value, scope):
            match value:
                case Mapping() if keyword.arg == "query":
                    for inner in value.get("options") or ():
                        yield text_of(inner) or _SOME_LIMIT
                case _ if keyword.arg == "query" and value != NONE:
                    yield _SOME_LIMIT
                case Const(str()) | Template() if keyword.arg == "options":
                    yield text_of(value) or ""
                case _ if keyword.arg in ("options", None):
                    yield _SOME_LIMIT


def text_of(value: Value) -> str | None:
    """The text that a value is, with `HOLE` for what is unknown in it; None where it is no text."""
    match value:
        case Const(str() as text):
            return text
        case Template():
            return value.text(_sql.HOLE)
    return None


# --- URLs of engines -------------------------------------------------------------------------------------------

_SCHEME = re.compile(rf"([A-Za-z][\w.]*)(?:\+([\w{_sql.HOLE}]+))?:")
_POSTGRES = frozenset({"postgresql", "postgres", "postgis"})
# Drivers that write the values into the statement themselves, and those that leave it to the server.
CLIENT_SIDE = frozenset({"psycopg2", "psycopg2cffi", "psycopg2_async"})
SERVER_SIDE = frozenset({"psycopg", "psycopg_async", "asyncpg", "pg8000"})


@dataclass(frozen=True, slots=True)
class Url:
    """What can be read of a database URL: whether it is PostgreSQL's (None: cannot be read), and the driver."""

    postgres: bool | None
    driver: str = ""


UNREADABLE = Url(None)
NOT_POSTGRES = Url(False)


def url(site: Site) -> Url:
    """What can be read of the URL that the site's call takes."""
    found = read_url(_dsn_argument(site).values, site.module.resolver, site.scope)
    return NOT_POSTGRES if found.postgres is None and _is_sqlite(site) else found


def _is_sqlite(site: Site) -> bool:
    """Whether the arguments for the driver are those of SQLite alone."""
    match site.argument("connect_args").values:
        case (Mapping() as mapping,):
            return any(name == "check_same_thread" for name, _ in mapping.entries)
    return False


def read_url(values: Values, resolver: Resolver, scope: Scope) -> Url:
    """One answer for all values: PostgreSQL only where each of them is."""
    found = {_url(value, resolver, scope) for value in values}
    if len(found) == 1:
        return found.pop()
    if any(one.postgres is None for one in found) or not found:
        return UNREADABLE
    kinds = {one.postgres for one in found}
    drivers = {one.driver for one in found}
    if kinds == {True, False}:
        return UNREADABLE
    return Url(kinds.pop(), drivers.pop() if len(drivers) == 1 else _sql.HOLE)


def _url(value: Value, resolver: Resolver, scope: Scope) -> Url:
    match value:
        case Const(str()) | Template():
            return _scheme(text_of(value) or "")
        case Parameter(default=default) if default:
            return read_url(default, resolver, scope)
        case Parameter(scope=function, name=name) if resolver.arguments_of is not None:
            passed = resolver.for_scope(function).arguments_of
            values = passed(function, name) if passed is not None else ()
            return read_url(values, resolver, scope) if values and value not in values else UNREADABLE
        case Result(name="sqlalchemy.make_url", call=ast.Call(args=[first, *_])):
            where = value.scope or scope
            return read_url(resolver.evaluate(first, where), resolver, where)
        case Result(name="sqlalchemy.URL.create" | "sqlalchemy.URL", call=ast.Call() as call):
            where = value.scope or scope
            named = [k.value for k in call.keywords if k.arg == "drivername"]
            for node in (*call.args[:1], *named):
                return read_url(tuple(_with_colon(v) for v in resolver.evaluate(node, where)), resolver, where)
        case Result(receiver=Result() as receiver) | Member(receiver=Result() as receiver):
            return _url(receiver, resolver, scope)  # `url.set(…)`, `url.render_as_string()`
    return UNREADABLE


def _with_colon(value: Value) -> Value:
    text = text_of(value)
    return UNKNOWN if text is None else Const(f"{text}:")


def _scheme(text: str) -> Url:
    found = _SCHEME.match(text.strip())
    if found is None:
        return UNREADABLE
    return Url(found[1].lower() in _POSTGRES, found[2] or "")


def is_source(site: Site) -> bool:
    """Whether a dataset's name is certainly one of PostgreSQL: `PG:dbname=gis`."""
    values = _dsn_argument(site).values
    return bool(values) and all((text_of(v) or "").lstrip().upper().startswith("PG:") for v in values)
