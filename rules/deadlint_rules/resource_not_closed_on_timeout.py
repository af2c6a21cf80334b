"""DL506: a resource that stays open when a limit is over."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deadlint.index.scopes import Scope
from deadlint.index.values import Const
from deadlint.model import Level
from deadlint.rule import Rule
from deadlint.site import Report, Site

from deadlint_rules._closing_fixes import in_finally
from deadlint_rules._expiries import catches_a_timeout, expiring, interrupted, leaves, nodes_in
from deadlint_rules._resources import CURSORS, KINDS, STREAMS, Kind, uses_of
from deadlint_rules._swallowing import suppressed

if TYPE_CHECKING:
    from deadlint.index.module import Module


class ResourceNotClosedOnTimeout(Rule):
    """A session, connection, response or temporary directory stays open when a limit is over.

    ## What it does
    Looks at what a function makes for itself and must close: sessions of requests, httpx, aiohttp, `http.client`,
    `ftplib` and `smtplib`, responses with `stream=True` and of `urlopen`, connections of psycopg, psycopg2, asyncpg and
    SQLAlchemy, those taken from a pool, cursors, and directories of `tempfile.mkdtemp`. Reported where a call with a
    limit stands between the making and the closing, or a limit that raises is around, and neither a `with`, a
    `finally` nor a handler of that expiry closes it.

    Strict where the function closes it nowhere, and the garbage collector does. Clean is what is returned, stored,
    handed to another function, or registered to be closed; and a cursor whose connection is made beside it.

    ## Why it is bad
    The end of a limit is an exception at a place where nobody expects one, so the `close()` behind it is not reached.
    Measured: a connection of psycopg2 that a `TimeoutError` left behind stayed *idle in transaction*, with its locks,
    for as long as the exception was kept (in a future, a list of errors, `sys.last_exc`); a pool of five gave
    *connection pool exhausted* after five such timeouts; `aiohttp.ClientSession` only warns when it is collected, and
    nothing ever removes a directory of `mkdtemp`.

    ## Example
    ```python
    import psycopg2
    import requests


    def load(dsn, url):
        connection = psycopg2.connect(dsn)
        rows = requests.get(url, timeout=10).json()
        connection.cursor().executemany("INSERT INTO tiles VALUES (%s)", rows)
        connection.commit()
        connection.close()
    ```

    ## Use instead
    ```python
    import psycopg2
    import requests


    def load(dsn, url):
        connection = psycopg2.connect(dsn)
        try:
            rows = requests.get(url, timeout=10).json()
            connection.cursor().executemany("INSERT INTO tiles VALUES (%s)", rows)
            connection.commit()
        finally:
            connection.close()
    ```

    ## Fix safety
    Safe for `close()`: nothing changes but on the way out. Unsafe for a directory, which somebody may look at after a
    failure, for what a pool is given back, and for `await`, which a cancelled coroutine should not do for long. The
    `finally` is written where the making and the closing are statements of one block and nothing between them holds a
    text of several lines.

    ## Options
    None.

    ## References
    - [contextlib.closing](https://docs.python.org/3/library/contextlib.html#contextlib.closing)
    - [psycopg2: with connections](https://www.psycopg.org/docs/usage.html#with-statement): `with conn` does not close
    """

    code = "DL506"
    name = "resource-not-closed-on-timeout"
    since = "0.1.0"
    calls = frozenset(KINDS)
    words = (
        ("requests", "ession("), ("aiohttp", "ClientSession("), ("sqlalchemy", "ession(", "close("), ("stream=True",),
        ("httpx", "Client("), ("http.client", "Connection("), ("urlopen", "close("), ("create_connection", "close("),
        ("ftplib",), ("smtplib",), ("psycopg2", "connect("), ("psycopg", "connect("), ("asyncpg", "connect("),
        ("sqlalchemy", ".connect("), ("raw_connection",), ("getconn",), ("asyncpg", "acquire"), ("mkdtemp", "rmtree"),
        ("TemporaryDirectory", "cleanup("),
    )  # fmt: skip

    def check(self, site: Site) -> Iterator[Report]:
        kind = KINDS[site.name]
        name = _name_of(site)
        if not name or site.scope.kind != "function" or not _is_one(site):
            return
        uses = uses_of(name, kind, site)
        if uses.escapes or (not uses.closes and not _worth_closing(site, kind)):
            return
        lost = _lost(site, uses.closes)
        if lost is None or (site.name in CURSORS and _connection_is_said(site)):
            return
        yield _report(site, name, kind, uses.closes, lost)


def _name_of(site: Site) -> str:
    """The local name that is given what the call makes."""
    node: ast.AST = site.call
    parent = site.module.walker.parents.get(node)
    if isinstance(parent, ast.Await):
        node, parent = parent, site.module.walker.parents.get(parent)
    match parent:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is node:
            return name
        case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is node:
            return name
    return ""


def _is_one(site: Site) -> bool:
    return site.name not in STREAMS or site.argument("stream").constant == Const(True)


def _worth_closing(site: Site, kind: Kind) -> bool:
    """Whether something that the function closes nowhere is worth a word: a path may be meant to stay."""
    return not kind.path and not site.name.endswith(("urlopen", "TemporaryDirectory")) and site.name not in CURSORS


@dataclass(frozen=True, slots=True)
class _Lost:
    """What ends the function before the resource is closed: the place, and the limit in words."""

    node: ast.expr
    limit: str


def _lost(site: Site, closes: list[ast.Call]) -> _Lost | None:
    """The first wait behind the making whose expiry leaves the resource open."""
    function = site.function
    if function is None or not isinstance(function.node, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    module = site.module
    begin = (site.call.end_lineno or 0, site.call.end_col_offset or 0)
    ends = max(((c.lineno, c.col_offset) for c in closes), default=None)
    for node in nodes_in(function.node.body):
        if not isinstance(node, ast.Call | ast.Await) or (isinstance(node, ast.Await) and node.value in closes):
            continue
        place = (node.lineno, node.col_offset)
        if place <= begin or node in closes or (ends is not None and place >= ends) or _apart(node, site):
            continue
        limit = expiring(node, module) if isinstance(node, ast.Call) else None
        limit = limit or interrupted(node, function, module)
        if limit is not None and not _closed_on_the_way(node, closes, function, module):
            return _Lost(node, limit)
    return None


def _apart(node: ast.expr, site: Site) -> bool:
    """Whether a wait stands in another branch than the making, so that both never happen in one run."""
    above: dict[ast.AST, ast.AST] = {}
    inner: ast.AST = site.call
    for one in site.module.ancestors(site.call):
        above[one] = inner
        inner = one
    below: ast.AST = node
    for one in site.module.ancestors(node):
        other = above.get(one)
        if other is not None:
            match one:
                case ast.If(body=body, orelse=orelse):
                    return _one_in_each(other, below, body, orelse)
                case ast.Try(body=body, handlers=handlers):
                    # A handler runs where the making may have failed: what it does is another story.
                    return other in body and below in handlers
            return False
        below = one
    return False


def _one_in_each(one: ast.AST, other: ast.AST, body: list[ast.stmt], orelse: list[ast.stmt]) -> bool:
    return (one in body and other in orelse) or (one in orelse and other in body)


def _closed_on_the_way(node: ast.AST, closes: list[ast.Call], function: Scope, module: Module) -> bool:
    """Whether the exception of a wait meets something that closes, or that goes on to where that is done."""
    inner: ast.AST = node
    for above in module.ancestors(node):
        match above:
            case ast.Try(body=body, handlers=handlers, finalbody=final) if inner not in final:
                if _holds(final, closes):
                    return True
                if inner in body:
                    for handler in handlers:
                        if catches_a_timeout(handler.type, module, function):
                            if _holds(handler.body, closes) or not leaves(handler.body):
                                return True
                            break
            case ast.With(items=items) | ast.AsyncWith(items=items) if any(
                suppressed(item.context_expr, module, function) for item in items
            ):
                return True
        inner = above
    return False


def _holds(body: list[ast.stmt], calls: list[ast.Call]) -> bool:
    return any(node in calls for node in nodes_in(body))


def _connection_is_said(site: Site) -> bool:
    """Whether the connection of a cursor is made in the same function, and so is what must be closed."""
    receiver = site.target.receiver
    call = getattr(receiver, "call", None)
    return isinstance(call, ast.Call) and site.module.walker.scope_of.get(call) is site.scope


def _report(site: Site, name: str, kind: Kind, closes: list[ast.Call], lost: _Lost) -> Report:
    related = [site.related(lost.node, f"may end by its limit: {lost.limit}")]
    if closes:
        shown = ast.unparse(closes[-1].func)
        what = f"`{name}` stays open when {lost.limit} is over: `{shown}` is not reached, and {kind.cost}"
        related.append(site.related(closes[-1], "closed here on the way that ends well"))
    else:
        what = f"`{name}` stays open when {lost.limit} is over: nothing here closes it, and {kind.cost}"
    return site.report(
        what,
        _remedy(name, kind, closes),
        level=Level.DEFAULT if closes or not kind.collected else Level.STRICT,
        related=tuple(related),
        fix=(lambda: in_finally(site, closes[0])) if len(closes) == 1 else None,
    )


def _remedy(name: str, kind: Kind, closes: list[ast.Call]) -> str:
    if kind.path:
        return "use `with tempfile.TemporaryDirectory() as …:`, or remove it in a `finally`"
    if closes and kind.given_back:
        return "give it back in a `finally`"
    return f"close it in a `finally`, or use `with contextlib.closing({name}):`"
