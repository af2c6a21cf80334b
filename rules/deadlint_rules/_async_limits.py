"""What the rules about asyncio ask alike: which limits of an event loop are around a call, and how they expire."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deadlint.graph import Around
from deadlint.index import limits
from deadlint.site import Site

from deadlint_rules._kill_paths import BROAD, caught_names

if TYPE_CHECKING:
    from deadlint.index.module import Module
    from deadlint.index.scopes import Scope

# Limits that a coroutine only feels where it awaits: they cancel it there.
SCOPES = frozenset(
    {
        "asyncio.wait_for", "asyncio.timeout", "asyncio.timeout_at", "async_timeout.timeout", "anyio.fail_after",
        "anyio.move_on_after", "trio.fail_after", "trio.move_on_after",
    }
)  # fmt: skip
# So is the limit of an `async def` that is a task or flow of these.
_DECORATORS = frozenset({"prefect.task", "prefect.flow"})
TIMEOUTS = frozenset(
    {
        "builtins.TimeoutError", "asyncio.TimeoutError", "asyncio.exceptions.TimeoutError", "asyncio.TimeoutExpired",
        "concurrent.futures.TimeoutError",
    }
)  # fmt: skip
CANCELLED = frozenset(
    {
        "asyncio.CancelledError", "asyncio.exceptions.CancelledError", "concurrent.futures.CancelledError",
        "anyio.get_cancelled_exc_class", "trio.Cancelled",
    }
)  # fmt: skip


def is_coroutine(scope: Scope | None) -> bool:
    """Whether a function is an `async def`."""
    return scope is not None and isinstance(scope.definition, ast.AsyncFunctionDef)


def around(site: Site) -> Iterator[Around]:
    """The limits of an event loop around a call, the nearest first; none that only a thread or task lies under."""
    for one in site.around:
        if all(step.direct for step in one.path) and (
            one.limit.name in SCOPES or (one.limit.name in _DECORATORS and not one.path and is_coroutine(site.function))
        ):
            yield one


@dataclass(frozen=True, slots=True)
class AsyncExpiry:
    """How the nearest limit around an asyncio wait expires: as `TimeoutError` out of `wait_for` or behind its `async
    with`, as `CancelledError` inside of that, and where a caller has it."""

    module: Module
    inside: ast.AST | None  # the `with`, where the limit is one of this function
    everywhere: bool  # a caller's limit

    def times(self, call: ast.Call, scope: Scope) -> bool:
        """Whether the limit is around a wait."""
        if self.everywhere or (self.inside is not None and self.inside in self.module.ancestors(call)):
            return True
        return any(limit.name in SCOPES for limit in limits.lexical(call, scope, self.module))

    def reaches(self, place: ast.AST, caught: ast.expr | None, scope: Scope) -> bool:
        """Whether a handler or `suppress` that stands at `place` catches the expiry."""
        if caught is None:
            return True
        names = caught_names(caught, self.module, scope)
        cancels = self.everywhere or (self.inside is not None and self.inside in self.module.ancestors(place))
        if cancels:
            return bool(names & CANCELLED) or "builtins.BaseException" in names
        return bool(names & (TIMEOUTS | BROAD)) or any(n.endswith("TimeoutError") for n in names)


def expiry_of(site: Site, nearest: Around) -> AsyncExpiry:
    """How the limit around an asyncio wait expires."""
    if nearest.path or nearest.limit.name in _DECORATORS:
        return AsyncExpiry(site.module, None, everywhere=True)
    return AsyncExpiry(site.module, scope_statement(site, nearest), everywhere=False)


def scope_statement(site: Site, nearest: Around) -> ast.With | ast.AsyncWith | None:
    """The `with` around the call that sets a limit of this function; None where a `wait_for` sets it."""
    for node in site.ancestors():
        if isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                if site.module.span(item.context_expr) == nearest.limit.span:
                    return node
    return None
