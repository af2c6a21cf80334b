"""What must be closed, how that is done, and what a function does with it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deadlint.index.scopes import dotted

from deadlint_rules._http import VERBS
from deadlint_rules._processes import called_names

if TYPE_CHECKING:
    from deadlint.site import Site


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of resource: what messages call it, its closing methods, and what a lost one costs.

    `given_back` are functions and methods that take it to close it. `collected` says that the garbage collector
    closes it with the function's frame.
    """

    what: str
    cost: str
    closing: frozenset[str] = frozenset({"close"})
    given_back: frozenset[str] = frozenset()
    collected: bool = True
    path: bool = False  # a name on disk, which is handed around without being handed over
    enters: bool = True  # whether `with` over it closes it


_SESSION = Kind("the session", "its sockets stay open as long as anything refers to this frame")
_RESPONSE = Kind("the response", "its connection stays taken until it is collected")
_CONNECTION = Kind("the connection", "its transaction and locks stay on the server until it is collected")
_CURSOR = Kind("the cursor", "what it holds on the server stays until it is collected")
_ASYNC_CLIENT = Kind(
    "the client", "nothing but the end of the process closes its connections", frozenset({"close", "aclose"}),
    collected=False,
)  # fmt: skip
_ASYNC_CONNECTION = Kind(
    "the connection", "its transaction and locks stay on the server until the process ends",
    frozenset({"close", "terminate"}), collected=False,
)  # fmt: skip
_BORROWED = Kind(
    "the connection", "the pool never gets it back", frozenset(), frozenset({"putconn", "release"}), collected=False,
    enters=False,
)  # fmt: skip
_DIRECTORY = Kind(
    "the directory", "it stays on disk", frozenset(), frozenset({"rmtree", "removedirs", "rmdir", "remove_tree"}),
    collected=False, path=True, enters=False,
)  # fmt: skip

KINDS: dict[str, Kind] = {
    "requests.Session": _SESSION,
    "httpx.Client": _SESSION,
    "httpx.AsyncClient": _ASYNC_CLIENT,
    "aiohttp.ClientSession": _ASYNC_CLIENT,
    "http.client.HTTPConnection": _SESSION,
    "http.client.HTTPSConnection": _SESSION,
    "urllib.request.urlopen": _RESPONSE,
    "socket.create_connection": _SESSION,
    "ftplib.FTP": Kind("the session", "its socket stays open until it is collected", frozenset({"close", "quit"})),
    "smtplib.SMTP": Kind("the session", "its socket stays open until it is collected", frozenset({"close", "quit"})),
    # `with` over psycopg2's and sqlite3's connections is a transaction.
    "psycopg2.connect": Kind(_CONNECTION.what, _CONNECTION.cost, enters=False),
    "psycopg.connect": _CONNECTION,
    "psycopg.AsyncConnection.connect": _ASYNC_CONNECTION,
    "asyncpg.connect": _ASYNC_CONNECTION,
    "sqlalchemy.Engine.connect": _CONNECTION,
    "sqlalchemy.Engine.raw_connection": _CONNECTION,
    "sqlalchemy.orm.Session": _CONNECTION,
    "sqlalchemy.orm.sessionmaker.__call__": _CONNECTION,
    "sqlalchemy.ext.asyncio.AsyncEngine.connect": _ASYNC_CONNECTION,
    "sqlalchemy.ext.asyncio.AsyncSession": _ASYNC_CONNECTION,
    "psycopg2.connection.cursor": _CURSOR,
    "psycopg.Connection.cursor": _CURSOR,
    "asyncpg.Pool.acquire": _BORROWED,
    "tempfile.mkdtemp": _DIRECTORY,
    "tempfile.TemporaryDirectory": Kind(
        "the directory", "it stays on disk until it is collected", frozenset({"cleanup"})
    ),
}
for _pool in ("psycopg_pool.ConnectionPool", "psycopg_pool.AsyncConnectionPool", "psycopg_pool.NullConnectionPool",
              "psycopg2.pool.SimpleConnectionPool", "psycopg2.pool.ThreadedConnectionPool"):  # fmt: skip
    KINDS[f"{_pool}.getconn"] = _BORROWED
STREAMS = frozenset(f"{base}.{verb}" for base in ("requests", "requests.Session") for verb in (*VERBS, "request"))
CURSORS = frozenset(name for name, kind in KINDS.items() if kind is _CURSOR)
for _name in STREAMS:
    KINDS[_name] = _RESPONSE

# What takes a resource only for as long as the call lasts.
_BORROWING = frozenset(
    {
        "pandas.read_sql", "pandas.read_sql_query", "pandas.read_sql_table", "geopandas.read_postgis",
        "geopandas.GeoDataFrame.from_postgis", "psycopg2.extras.execute_values", "psycopg2.extras.execute_batch",
        "psycopg2.extras.register_uuid", "psycopg2.extras.register_hstore", "psycopg2.extras.register_json",
        "builtins.print", "builtins.str", "builtins.repr", "builtins.len", "builtins.list", "builtins.next",
        "builtins.isinstance", "builtins.bool", "builtins.hasattr", "json.load", "json.loads", "pickle.load",
        "shutil.copyfileobj", "deadlint_budget.statement_timeout", "deadlint_budget.http.get",
        "deadlint_budget.http.request", "xml.etree.ElementTree.parse",
    }
)  # fmt: skip
_BORROWING_METHODS = frozenset(
    {"to_sql", "to_postgis", "debug", "info", "warning", "error", "exception", "execute", "append_row"}
)
# What closes it when a block or the process is left.
_REGISTERING = frozenset(
    {
        "closing", "aclosing", "enter_context", "enter_async_context", "push", "push_async_exit", "callback",
        "push_async_callback", "register", "finalize", "addCleanup", "addfinalizer", "add_cleanup",
    }
)  # fmt: skip


@dataclass
class Uses:
    """What a function does with one resource. `escapes`: it may be closed elsewhere, or by a block."""

    closes: list[ast.Call] = field(default_factory=list)
    escapes: bool = False


def uses_of(name: str, kind: Kind, site: Site) -> Uses:
    """How the function of `site` uses the resource that it calls `name`."""
    found = Uses()
    function = site.function
    if function is None:
        return Uses(escapes=True)
    if name in function.outer_names or any(b.kind not in ("assign",) for b in function.bindings.get(name, ())):
        return Uses(escapes=True)
    for node in _mentions(name, function.node):
        if site.module.walker.scope_of.get(_call_above(node, site), function) is not function and _nested(node, site):
            return Uses(escapes=True)
        _judge(node, kind, site, found)
        if found.escapes:
            break
    return found


def _mentions(name: str, root: ast.AST) -> Iterator[ast.Name]:
    for node in ast.walk(root):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            yield node


def _call_above(node: ast.AST, site: Site) -> ast.Call:
    current: ast.AST | None = node
    while current is not None and not isinstance(current, ast.Call):
        current = site.module.walker.parents.get(current)
    return current if isinstance(current, ast.Call) else site.call


def _nested(node: ast.AST, site: Site) -> bool:
    """Whether a node stands in a function or lambda inside of the site's own function."""
    *_, last = (node, *site.module.ancestors(node))
    above = site.module.walker.parents.get(last)
    assert site.function is not None
    return above is not None and above is not site.function.node


def _judge(node: ast.Name, kind: Kind, site: Site, found: Uses) -> None:
    parents = site.module.walker.parents
    parent = parents.get(node)
    match parent:
        case ast.Attribute(attr=attr):
            above = parents.get(parent)
            called = isinstance(above, ast.Call) and above.func is parent
            if attr in kind.closing or attr in ("close", "aclose", "cleanup"):
                if called and isinstance(above, ast.Call):
                    found.closes.append(above)
                else:
                    found.escapes = True  # `atexit.register(conn.close)`
            elif isinstance(above, ast.withitem):
                found.escapes = True
        case ast.withitem():
            found.escapes = found.escapes or kind.enters
        case ast.Call() if node in parent.args:
            _judge_argument(parent, kind, site, found)
        case ast.keyword():
            call = parents.get(parent)
            if isinstance(call, ast.Call) and not kind.path:
                _judge_argument(call, kind, site, found)
        case ast.Return() | ast.Yield() | ast.YieldFrom() | ast.Assign() | ast.AnnAssign() | ast.NamedExpr():
            found.escapes = True
        case ast.List() | ast.Tuple() | ast.Set() | ast.Dict() | ast.Starred() | ast.DictComp() | ast.ListComp():
            found.escapes = True
        case ast.IfExp() | ast.BoolOp() if not isinstance(parents.get(parent), ast.If | ast.While | ast.Assert):
            found.escapes = True


def _judge_argument(call: ast.Call, kind: Kind, site: Site, found: Uses) -> None:
    last = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func).rpartition(".")[2]
    if last in kind.given_back:
        found.closes.append(call)
    elif last in _REGISTERING:
        found.escapes = True
    elif not kind.path and last not in _BORROWING_METHODS:
        names = called_names(site.module, call, site.scope)
        found.escapes = not (names and names <= _BORROWING)
