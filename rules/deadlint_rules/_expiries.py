"""Which calls may end because a limit is over, and what catches that."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from deadlint.index import limits
from deadlint.index.values import NONE, Const, number
from deadlint.site import Site

from deadlint_rules._async_limits import CANCELLED, SCOPES, TIMEOUTS, is_coroutine
from deadlint_rules._blocking import BLOCKING, DATABASES
from deadlint_rules._http import VERBS
from deadlint_rules._kill_paths import BROAD, EXPIRY, caught_names
from deadlint_rules._limits import HELPERS, seconds
from deadlint_rules._processes import Given, limit_given

if TYPE_CHECKING:
    from deadlint.index.module import Module
    from deadlint.index.scopes import Scope

# Waits that raise when their own timeout is over, and where they take it.
_WAITS = {
    "concurrent.futures.Future.result": 0, "concurrent.futures.as_completed": 1, "queue.Queue.get": 1,
    "queue.Queue.put": 2, "multiprocessing.Queue.get": 1, "psutil.Process.wait": 0,
}  # fmt: skip
# Clients that have a limit where none is given: 5 s, 300 s.
_LIMITED_CLIENTS = frozenset(
    f"{client}.{verb}"
    for client in ("httpx.Client", "httpx.AsyncClient", "aiohttp.ClientSession")
    for verb in (*VERBS, "request", "stream")
)
_ASYNCPG = re.compile(r"^asyncpg\.(Connection|Pool)\.(execute|executemany|fetch|fetchrow|fetchval)$")
_BUDGET = frozenset(f"deadlint_budget.Budget.{name}" for name in ("check", "slice", "sleep", "units"))
# Scopes whose end is no exception, and what only makes a limit.
_SILENT = frozenset({"anyio.move_on_after", "trio.move_on_after", "deadlint_budget.Budget.of"})
# Limits that raise in the middle of a function, wherever it is.
_RAISING = frozenset(
    {
        "prefect.task", "prefect.flow", "airflow.decorators.task", "timeout_decorator.timeout",
        "wrapt_timeout_decorator.timeout", "func_timeout.func_set_timeout", "stopit.ThreadingTimeout",
        "eventlet.Timeout", "gevent.Timeout",
    }
)  # fmt: skip
_SOFT = frozenset(limits.CELERY_TASKS)
# The names of what the end of a limit raises, in any library.
_NAMED = re.compile(
    r"(Timeout|TimeoutError|TimeoutExpired|TimeoutException|DeadlineExceeded|TimeLimitExceeded|QueryCanceled(Error)?)$"
)
# Its base classes, which are caught for other reasons as well.
_BASES = re.compile(r"(RequestException|HTTPError|TransportError|RequestError|URLError|OSError|IOError|queue\.Empty)$")


def expiring(call: ast.Call, module: Module) -> str | None:
    """How messages call a call that raises when a limit of its own is over; None where it has none."""
    site = module.site(call)
    for target in site.targets if site is not None else ():
        assert site is not None
        there = replace(site, name=target.name, targets=(target,))
        if _has_limit(there):
            return _shown(there)
    return None


def _has_limit(site: Site) -> bool:
    name = site.name
    if name in _SILENT:
        return False
    if name in limits.INNER and limits.of_call(site) is not None:
        return True
    if name in HELPERS | _BUDGET:
        return True
    if name in _WAITS:
        return limit_given(site, "timeout", _WAITS[name]) is Given.YES
    if name in _LIMITED_CLIENTS:
        return site.argument("timeout").values != (NONE,)
    if _ASYNCPG.match(name):
        return limit_given(site) is Given.YES or "command_timeout" in site.module.source.text
    return name in DATABASES and ".connect" not in name and "statement_timeout" in site.module.source.text


def _shown(site: Site) -> str:
    text = ast.unparse(site.call.func)
    text = text if len(text) <= 40 and text.isprintable() else site.name
    form = site.argument("want" if site.name.startswith("deadlint_budget.") else "timeout")
    value = number(form.constant) if isinstance(form.constant, Const) else None
    return f"`{text}`" if value is None else f"`{text}` ({seconds(value)})"


def interrupted(node: ast.expr, scope: Scope, module: Module) -> str | None:
    """The limit around a wait of the function that raises in the middle of it, in words; None where none does."""
    match node:
        case ast.Await():
            awaits = is_coroutine(scope)
        case ast.Call():
            site = module.site(node)
            awaits = False
            if site is None or not any(t.name in BLOCKING for t in site.targets):
                return None
        case _:
            return None
    for one in module.graph.around(node, scope):
        limit = one.limit
        raising = limit.name in _RAISING or (limit.name in _SOFT and "soft_time_limit" in module.source.text)
        if raising or (awaits and limit.name in SCOPES - _SILENT and all(step.direct for step in one.path)):
            amount = f" ({seconds(limit.seconds)})" if limit.seconds is not None else ""
            return f"{limit.label}{amount}"
    return None


def names_a_timeout(caught: ast.expr | None, module: Module, scope: Scope) -> bool:
    """Whether an `except` names the end of a limit, and not only what it has in common with other errors."""
    if caught is None:
        return False
    names = caught_names(caught, module, scope)
    return bool(names & (TIMEOUTS | EXPIRY | CANCELLED)) or any(_NAMED.search(name) for name in names)


def catches_a_timeout(caught: ast.expr | None, module: Module, scope: Scope) -> bool:
    """Whether an `except` catches the end of a limit, by name or with much else."""
    if caught is None or names_a_timeout(caught, module, scope):
        return True
    names = caught_names(caught, module, scope)
    return bool(names & BROAD) or any(_BASES.search(name) for name in names)


def calls_in(body: list[ast.stmt]) -> Iterator[ast.Call]:
    """The calls in statements, those in nested functions left out."""
    for node in nodes_in(body):
        if isinstance(node, ast.Call):
            yield node


def nodes_in(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of statements, in the order of the source, those in nested functions left out."""
    pending: list[ast.AST] = list(reversed(body))
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            pending.extend(reversed(list(ast.iter_child_nodes(node))))


def leaves(body: list[ast.stmt]) -> bool:
    """Whether a block does not go on with what follows it."""
    match body[-1]:
        case ast.Raise() | ast.Return() | ast.Continue() | ast.Break():
            return True
        case ast.Expr(value=ast.Call(func=func)):
            return ast.unparse(func) in ("sys.exit", "os._exit", "exit")
        case ast.If(body=yes, orelse=no) if no:
            return leaves(yes) and leaves(no)
    return False
