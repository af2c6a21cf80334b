"""DL503: a handler that drops a cancellation or an expiry and goes on as if nothing had happened."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deadlint.index.scopes import Scope, dotted
from deadlint.index.values import External, Function, Member
from deadlint.model import Fix, Level
from deadlint.rule import Rule
from deadlint.site import Report, Site

from deadlint_rules._async_limits import CANCELLED, SCOPES, TIMEOUTS, is_coroutine
from deadlint_rules._kill_paths import BROAD, caught_names
from deadlint_rules._processes import site_at
from deadlint_rules._swallowing import goes_on, is_silent, raised_again, suppressed, swallower

if TYPE_CHECKING:
    from deadlint.index.module import Module

_SCOPES = frozenset(name for name in SCOPES if name.startswith(("asyncio.", "async_timeout.")))
# The end of a deadline that is not the call's own: of a budget, or of an orchestrator.
_DEADLINES = frozenset(
    {
        "deadlint_budget.DeadlineExceeded", "deadlint_budget.Cancelled", "celery.exceptions.SoftTimeLimitExceeded",
        "billiard.exceptions.SoftTimeLimitExceeded", "airflow.exceptions.AirflowTaskTimeout",
        "airflow.sdk.exceptions.AirflowTaskTimeout", "dagster.DagsterExecutionInterruptedError",
    }
)  # fmt: skip
Catcher = ast.Try | ast.TryStar | ast.With | ast.AsyncWith


class CancellationSwallowed(Rule):
    """A cancellation or an expiry is caught and dropped, and the code goes on as if the work were done.

    ## What it does
    Looks at handlers and `contextlib.suppress` in coroutines that catch `CancelledError` (by name, with
    `BaseException`, or with a bare `except`) around an `await` and do not raise again: default where a loop goes on
    with its next turn, or a limit is around; strict where other code of the function follows.

    Also at silent handlers of `DeadlineExceeded`, Celery's `SoftTimeLimitExceeded` and their like, and of the
    `TimeoutError` of `asyncio.wait_for` and `timeout` around work, with other code behind them. Silent is what DL104
    calls so: it passes, continues, logs or sleeps, and nothing else tells the difference.

    Clean: waiting for a task that the function has cancelled itself, a handler that returns or breaks, and the
    `TimeoutError` of a wait for an event, a queue or a condition, which is a way to sleep.

    ## Why it is bad
    A cancellation is delivered once. Measured: a coroutine under `asyncio.timeout(1)` that swallows it leaves the
    block normally, with `expired()` true and no `TimeoutError`; `wait_for` of one returned its result after 4.0 s. A
    loop that swallows it can be ended only with its process. A Prefect task with `except BaseException` in it
    succeeded after 5 s, and a Celery task returned a result after its hard limit. What follows works on what the
    interrupted step left half done.

    ## Example
    ```python
    import asyncio


    async def watch(queue, render):
        while True:
            try:
                await render(await queue.get())
            except asyncio.CancelledError:
                pass
    ```

    ## Use instead
    ```python
    import asyncio


    async def watch(queue, render):
        while True:
            try:
                await render(await queue.get())
            except asyncio.CancelledError:
                raise
    ```

    ## Fix safety
    Unsafe: what was swallowed reaches callers that never saw it. `raise` takes the place of `pass` or `continue` at
    the end of a silent handler, or is added behind its log line; only for handlers of that exception alone.

    ## Options
    None.

    ## References
    - [asyncio: task cancellation](https://docs.python.org/3/library/asyncio-task.html#task-cancellation)
    """

    code = "DL503"
    name = "cancellation-swallowed"
    since = "0.1.0"
    calls = _SCOPES
    words = (
        ("CancelledError", "async def"),
        ("except BaseException", "async def"),
        ("except:", "async def"),
        ("DeadlineExceeded",),
        ("SoftTimeLimitExceeded",),
        ("AirflowTaskTimeout",),
        ("DagsterExecutionInterruptedError",),
        ("TimeoutError", "wait_for("),
        ("TimeoutError", "timeout("),
    )

    def check(self, site: Site) -> Iterator[Report]:
        """A silent handler of the `TimeoutError` of one limit."""
        work = _work(site)
        node = swallower(site, _catches_timeout) if work is not None else None
        if node is None or work is None:
            return
        only = isinstance(node, ast.ExceptHandler) and _all_of(node, TIMEOUTS, site.module, site.scope)
        yield site.report(
            f"when the limit is over {work} is cancelled, and the code goes on as if it had done its work",
            "raise, return, or note the failure where the caller looks",
            level=Level.STRICT,
            node=node,
            related=(site.related(site.call, "the limit that expires"),),
            fix=_fix(node, site.module) if only else None,
        )

    def check_module(self, module: Module) -> Iterator[Report]:
        """Handlers of cancellations and deadlines, which no call stands for."""
        text = module.source.text
        cancels = "CancelledError" in text or ("async def" in text and ("BaseException" in text or "except:" in text))
        deadlines = any(name.rpartition(".")[2] in text for name in _DEADLINES)
        if not cancels and not deadlines:
            return
        for scope in _functions(module):
            for statement in scope.blocks:
                if isinstance(statement, Catcher):
                    if cancels and is_coroutine(scope):
                        yield from _cancellation(statement, scope, module)
                    if deadlines and isinstance(statement, ast.Try):
                        yield from _deadline(statement, scope, module)


def _functions(module: Module) -> Iterator[Scope]:
    return (module.walker.walk(scope) for scope in module.scope.everything() if scope.kind in ("function", "module"))


# --- cancellation ----------------------------------------------------------------------------------------------


def _cancellation(node: Catcher, scope: Scope, module: Module) -> Iterator[Report]:
    """A handler or `suppress` of `CancelledError` that goes on."""
    if not _awaits_work(node.body) or _cancels_itself(scope, node):
        return
    place: ast.ExceptHandler | Catcher = node
    silent = True
    if isinstance(node, ast.Try | ast.TryStar):
        handler = next((h for h in node.handlers if _catches_cancellation(h, module, scope)), None)
        if handler is None or any(isinstance(n, ast.Raise | ast.Return | ast.Break) for n in _inside(handler.body)):
            return
        silent = goes_on(handler.body)
        named = handler.type is not None and bool(caught_names(handler.type, module, scope) & CANCELLED)
        if not silent and not named:
            return  # a broad handler that hands the exception on: to a future, a list, a callback
        place = handler
    elif not any(
        caught_names(caught, module, scope) & (CANCELLED | {"builtins.BaseException"})
        for item in node.items
        for caught in suppressed(item.context_expr, module, scope)
    ):
        return
    follows = _what_follows(node, module)
    if follows is None or (follows.once and (not silent or _is_told(node, place, scope, module))):
        return
    if follows.once and follows.level is Level.STRICT and scope.name.startswith("test"):
        return  # a test that ends what it looks at by a cancellation of its own
    only = isinstance(place, ast.ExceptHandler) and silent and _all_of(place, CANCELLED, module, scope)
    yield Report(
        place,
        follows.message,
        "raise it again when the clean-up is done",
        follows.level if silent else Level.STRICT,
        fix=_fix(place, module) if only and isinstance(place, ast.ExceptHandler) else None,
    )


def _catches_cancellation(handler: ast.ExceptHandler, module: Module, scope: Scope) -> bool:
    if handler.type is None:
        return True
    return bool(caught_names(handler.type, module, scope) & (CANCELLED | {"builtins.BaseException"}))


def _is_told(node: Catcher, place: ast.ExceptHandler | Catcher, scope: Scope, module: Module) -> bool:
    """Whether what follows can tell that the work was cut short."""
    if any(isinstance(n, ast.Return | ast.Raise | ast.Break) for n in _inside(node.body)):
        return True  # success leaves; what follows is for the rest
    call = next((n for n in _inside(node.body) if isinstance(n, ast.Call)), None)
    if call is None or not isinstance(place, ast.ExceptHandler):
        return False
    return not is_silent(place, site_at(module, call, scope, ""))


@dataclass(frozen=True, slots=True)
class _Follows:
    """What goes on after a cancellation was swallowed; `once` where that is not the next turn of a loop."""

    message: str
    level: Level = Level.STRICT
    once: bool = True


def _what_follows(node: Catcher, module: Module) -> _Follows | None:
    """What goes on when a cancellation was swallowed in `node`; None where that is nothing."""
    inner: ast.AST = node
    behind = _behind(node, module)
    for above in module.ancestors(node):
        match above:
            case ast.While(test=test):
                endless = isinstance(test, ast.Constant) and bool(test.value)
                if endless and any(isinstance(n, ast.Return | ast.Break) for n in _inside(behind)):
                    return None  # another way out is looked at behind the handler
                level = Level.DEFAULT if endless and not _has_exit(above, node) else Level.STRICT
                what = "a cancellation is swallowed and the loop goes on: nothing but its own end can stop it"
                return _Follows(what, level, once=False)
            case ast.For() | ast.AsyncFor():
                return _Follows("a cancellation is swallowed and the loop goes on with its next turn", once=False)
            case ast.AsyncWith(items=items) if any(_is_scope(item.context_expr, module) for item in items):
                what = "the cancellation of the limit around is swallowed here: no `TimeoutError` will follow"
                return _Follows(what, Level.DEFAULT)
            case ast.Try(finalbody=final) | ast.TryStar(finalbody=final) if inner in final:
                return None  # clean-up: what follows was on its way out
            case ast.ExceptHandler():
                return None
        inner = above
        behind = [*behind, *_behind(above, module)] if isinstance(above, ast.stmt) else behind
    if not goes_on(behind) and not all(isinstance(s, ast.Return) for s in behind):
        return _Follows("a cancellation is swallowed and the function goes on as if nothing had happened")
    return None


def _has_exit(loop: ast.While, node: Catcher) -> bool:
    """Whether a loop looks at something else that ends it, outside of what the handler guards."""
    guarded = {id(n) for n in ast.walk(node)}
    for inner in _inside(loop.body):
        if isinstance(inner, ast.Return | ast.Break | ast.Raise) and id(inner) not in guarded:
            return True
    return any(isinstance(n, ast.Return | ast.Break) for n in _inside(node.body))


def _is_scope(expression: ast.expr, module: Module) -> bool:
    return isinstance(expression, ast.Call) and any(t.name in _SCOPES for t in module.targets(expression))


def _behind(node: ast.stmt | Catcher, module: Module) -> list[ast.stmt]:
    """The statements behind one in the same block."""
    parent = module.walker.parents.get(node)
    if parent is None:  # at the top of a function or module
        scope = next((s for s in _functions(module) if node in s.blocks), None)
        parent = scope.node if scope is not None else None
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and node in block:
            return block[block.index(node) + 1 :]
    return []


def _inside(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of statements, those in nested functions left out."""
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            pending.extend(ast.iter_child_nodes(node))


_ENDING = re.compile(
    r"cancel|stop|clos|shut|disconnect|terminat|kill|clean|teardown|unload|join|exit|dispose", re.IGNORECASE
)


_LIMIT = re.compile(r"timeout|move_on_|fail_after|fail_at")


def _awaits_work(body: list[ast.stmt]) -> bool:
    """Whether a coroutine is awaited that is made here: waiting for a task that exists is no work of this function."""
    for node in _inside(body):
        match node:
            case ast.Await(value=ast.Call(func=func)):
                name = func.attr if isinstance(func, ast.Attribute) else dotted(func)
                if name in ("gather", "wait", "shield", "wait_for") or _ENDING.search(name):
                    continue
                return True
            case ast.AsyncWith(items=items) if any(not _LIMIT.search(ast.unparse(i.context_expr)) for i in items):
                return True
            case ast.AsyncFor():
                return True
    return False


def _cancels_itself(scope: Scope, node: Catcher) -> bool:
    """Whether the function has cancelled something before: what comes back is what it asked for."""
    end = node.body[-1].end_lineno or node.lineno
    return any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr in ("cancel", "uncancel", "cancelling")
        and call.lineno <= end
        for call in scope.calls
    )


# --- deadlines -------------------------------------------------------------------------------------------------


def _deadline(node: ast.Try, scope: Scope, module: Module) -> Iterator[Report]:
    """A silent handler of the end of a budget or of an orchestrator's limit."""
    for handler in node.handlers:
        names = caught_names(handler.type, module, scope) if handler.type is not None else set()
        found = sorted(names & _DEADLINES)
        if not found:
            continue
        call = next((n for s in node.body for n in ast.walk(s) if isinstance(n, ast.Call)), None)
        if call is None or not is_silent(handler, site_at(module, call, scope, "")):
            return
        follows = _goes_on_behind(node, module)
        if follows is None:
            return
        yield Report(
            handler,
            f"`{found[0].rpartition('.')[2]}` is swallowed and {follows}, though the time is over",
            "raise it again, or return what is done",
            fix=_fix(handler, module) if _all_of(handler, _DEADLINES, module, scope) else None,
        )
        return


def _goes_on_behind(node: ast.Try, module: Module) -> str | None:
    if any(isinstance(above, ast.While | ast.For | ast.AsyncFor) for above in module.ancestors(node)):
        return "the loop goes on"
    return "the function goes on" if not goes_on(_behind(node, module)) else None


# --- limits on single calls ------------------------------------------------------------------------------------


# Coroutines of libraries that do something, and whose result or effect is missing when they are cancelled.
_WORK = re.compile(
    r"^(httpx\.AsyncClient|aiohttp\.ClientSession|asyncpg\.(Connection|Pool)|psycopg\.Async(Connection|Cursor)"
    r"|sqlalchemy\.ext\.asyncio\.Async(Connection|Session))\.(?!(close|aclose|release|rollback)$)\w+$"
    r"|^asyncio\.to_thread$|^asyncio\.AbstractEventLoop\.run_in_executor$"
)
_WAITING = re.compile(
    r"wait|poll|sleep|listen|drain|ping|heartbeat|recv|read|next|get|receive|ready|flush|probe|discover|scan|sync",
    re.IGNORECASE,
)


def _work(site: Site) -> str | None:
    """The work that a limit is around, in words; None where there is none, or it is only a wait."""
    if site.name == "asyncio.wait_for":
        first = site.call.args[0] if site.call.args else None
        return _named_work(first, site) if isinstance(first, ast.Call) else None
    statement = site.statement
    if not isinstance(statement, ast.AsyncWith):
        return None
    works = [_named_work(n.value, site) for n in _inside(statement.body) if isinstance(n, ast.Await)]
    return works[0] if works and None not in works else None


def _named_work(node: ast.expr, site: Site) -> str | None:
    if not isinstance(node, ast.Call):
        return None
    text = ast.unparse(node.func)
    last = text.rpartition(".")[2]
    for value in site.values(node.func):
        match value:
            case External(name=name) | Member(name=name) if _WORK.search(name):
                return f"`{text}`" if len(text) <= 40 and text.isprintable() else f"`{name}`"
            case Function(scope=scope) if (
                is_coroutine(scope) and not _WAITING.search(last) and not _ENDING.search(last)
            ):
                return f"`{text}`" if len(text) <= 40 and text.isprintable() else f"`{last}`"
    return None


def _catches_timeout(caught: ast.expr, module: Module, scope: Scope) -> bool:
    names = caught_names(caught, module, scope)
    return bool(names & (TIMEOUTS | BROAD))


def _all_of(handler: ast.ExceptHandler, wanted: frozenset[str], module: Module, scope: Scope) -> bool:
    return handler.type is not None and caught_names(handler.type, module, scope) <= wanted


def _fix(node: ast.AST, module: Module) -> Callable[[], Fix | None]:
    def made() -> Fix | None:
        return raised_again(node, module) if isinstance(node, ast.ExceptHandler) else None

    return made
