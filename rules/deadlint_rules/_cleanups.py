"""Whether a call stands in what is done because a limit is over: a handler, a `finally`, behind one kept by hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from deadlint.index.scopes import dotted
from deadlint.site import Site

from deadlint_rules._expiries import calls_in, catches_a_timeout, expiring, names_a_timeout
from deadlint_rules._kill_paths import late_test


class Place(Enum):
    """Where a clean-up stands."""

    HANDLER = "the handler"  # of the expiry, by name
    BROAD = "the broad handler"  # of much else too
    FINALLY = "the `finally`"
    AFTER = "the end"  # of a limit that is kept by hand


@dataclass(frozen=True, slots=True)
class Cleanup:
    """What is done after the expiry of a limit: the statements, and the limit in words where it is known."""

    place: Place
    body: list[ast.stmt]
    limit: str
    origin: ast.expr | ast.stmt | ast.ExceptHandler | None  # what expires


def cleanup_of(site: Site) -> Cleanup | None:
    """The clean-up that a call is part of, the nearest; None where it is none."""
    inner: ast.AST = site.call
    for node in site.ancestors():
        found = _at(node, inner, site)
        if found is not None:
            return found
        inner = node
    return None


def _at(node: ast.AST, inner: ast.AST, site: Site) -> Cleanup | None:
    match node:
        case ast.ExceptHandler(type=caught, body=body) if inner in body:
            around = site.module.walker.parents.get(node)
            tried = around.body if isinstance(around, ast.Try | ast.TryStar) else []
            timed = _timed(tried, site)
            if names_a_timeout(caught, site.module, site.scope):
                return Cleanup(Place.HANDLER, body, timed[0] if timed else "", timed[1] if timed else node)
            if timed and catches_a_timeout(caught, site.module, site.scope):
                return Cleanup(Place.BROAD, body, *timed)
        case ast.Try(body=tried, finalbody=final) | ast.TryStar(body=tried, finalbody=final) if inner in final:
            timed = _timed(tried, site)
            return Cleanup(Place.FINALLY, final, *timed) if timed else None
        case ast.While(test=test, orelse=body) if inner in body and _asks_clock(test, site):
            return Cleanup(Place.AFTER, body, "", node)
        case ast.If(test=test, body=body) if inner in body and _is_late(test, site):
            return Cleanup(Place.AFTER, body, "", node)
    return None


def _timed(body: list[ast.stmt], site: Site) -> tuple[str, ast.expr] | None:
    """The first call of a block that may end by its limit."""
    for call in calls_in(body):
        limit = expiring(call, site.module)
        if limit is not None:
            return limit, call
    return None


def _asks_clock(test: ast.expr, site: Site) -> bool:
    return any(_is_late(part, site) or _is_in_time(part, site) for part in _parts(test))


def _parts(test: ast.expr) -> Iterator[ast.expr]:
    match test:
        case ast.BoolOp(values=values):
            for value in values:
                yield from _parts(value)
        case _:
            yield test


def _is_late(test: ast.expr, site: Site) -> bool:
    match test:
        case ast.Attribute(attr="expired"):
            return True
        case ast.Call(func=ast.Attribute(attr="expired")):
            return True
    return late_test(test, site.module, site.scope) is True


def _is_in_time(test: ast.expr, site: Site) -> bool:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _is_late(operand, site)
    return late_test(test, site.module, site.scope) is False


_ENDING = frozenset(
    {
        "set", "cancel", "kill", "terminate", "stop", "shutdown", "close", "put", "put_nowait", "killpg", "send_signal",
        "abort", "interrupt", "request_stop", "notify_all", "requestInterruption",
    }
)  # fmt: skip


def told_to_end(site: Site, words: frozenset[str] = _ENDING) -> bool:
    """Whether something was told to end before the call, in its function: an event set, a sentinel put, a kill."""
    place = (site.call.lineno, site.call.col_offset)
    for call in site.scope.calls:
        if (call.lineno, call.col_offset) < place:
            name = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)
            if name in words:
                return True
    return False
