"""The limit that really holds at a place: its own, or a shorter one around it, in this file or another."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from deadlint.graph import Around
from deadlint.index import limits
from deadlint.index.candidates import Wanted
from deadlint.index.limits import Limit
from deadlint.model import Span

if TYPE_CHECKING:
    from deadlint.index.module import Module
    from deadlint.index.scopes import Scope
    from deadlint.site import Site

_NAMES = frozenset(name.rpartition(".")[2] for name in limits.INNER)
# Limits that are delivered at an `await`: they do not end what blocks, nor what runs in a thread.
_COOPERATIVE = ("asyncio.", "async_timeout.", "anyio.", "trio.")


@dataclass(frozen=True, slots=True)
class Held:
    """A place that a limit is on, or that waits: its own limit, and those around it, the shortest first."""

    span: Span
    what: str  # as it is written: `requests.get`, or the name of a function
    own: Limit | None
    around: tuple[Around, ...] = ()
    budget: str | None = None  # the budget that is in scope
    written: bool = True  # whether its own limit stands there as a number

    @property
    def effective(self) -> Around | None:
        """The shortest limit of a known length; None where there is none."""
        known = [one for one in self.around if one.limit.seconds is not None and one.limit.seconds > 0]
        if self.own is not None and self.own.seconds is not None and self.own.seconds > 0:
            known.insert(0, Around(self.own))
        return min(known, key=lambda one: one.limit.seconds or 0.0, default=None)


def held_in(module: Module) -> tuple[Held, ...]:
    """Every place of a module that has a limit, its own or one around it, in the order of the source."""
    found = [*_calls(module), *_functions(module.scope, module)]
    return tuple(sorted(found, key=lambda one: one.span))


def _calls(module: Module) -> Iterator[Held]:
    for site in module.sites_of(Wanted(_NAMES)):
        target = next((one for one in site.targets if one.name in limits.INNER), None)
        if target is None:
            continue
        there = replace(site, name=target.name)
        own = limits.of_call(there)
        around = _shortest(one for one in site.around if _ends(one, there))
        if own is not None or around:
            what = ast.unparse(site.call.func)
            yield Held(module.span(site.call), what, own, around, site.budget, own is None or _written(there))


def _functions(scope: Scope, module: Module) -> Iterator[Held]:
    for function in scope.functions:
        own = _shortest(Around(limit) for limit in limits.on_function(function, module))
        for one in own:
            around = [other for other in module.graph.around_function(function) if other not in own]
            yield Held(one.limit.span, function.name, one.limit, _shortest(iter(around)))
    for inner in (*scope.functions, *scope.classes):
        yield from _functions(inner, module)


def _shortest(found: Iterator[Around]) -> tuple[Around, ...]:
    """Each limit once, by the shortest way to it; those of unknown length last."""
    nearest: dict[Limit, Around] = {}
    for one in found:
        if one.limit not in nearest or len(one.path) < len(nearest[one.limit].path):
            nearest[one.limit] = one
    return tuple(sorted(nearest.values(), key=lambda one: (one.limit.seconds is None, one.limit.seconds or 0.0)))


def _ends(around: Around, site: Site) -> bool:
    """Whether a limit around a call can end it."""
    if not around.limit.name.startswith(_COOPERATIVE):
        return True
    parent = site.module.walker.parents.get(site.call)
    awaited = isinstance(parent, ast.Await | ast.AsyncWith | ast.withitem) or _handed_on(site.call, parent)
    return awaited and all(step.direct for step in around.path)


def _handed_on(call: ast.Call, parent: ast.AST | None) -> bool:
    """Whether a coroutine is given to another call, such as `wait_for`."""
    return isinstance(parent, ast.Call) and call in parent.args


def _written(site: Site) -> bool:
    """Whether the limit of a call is a number in its own arguments."""
    return any(isinstance(argument, ast.Constant) for argument in _timeouts(site.call))


def _timeouts(call: ast.Call) -> Iterator[ast.expr]:
    for keyword in call.keywords:
        if keyword.arg in ("timeout", "delay", "seconds", "want", "when"):
            yield keyword.value
    yield from (argument for argument in call.args if isinstance(argument, ast.Constant))


def seconds(value: float) -> str:
    """A number of seconds as people write it: `900 s`, `1,200 s`, `0.5 s`."""
    return f"{value:,.10g} s"


def name_of(limit: Limit) -> str:
    """What a limit is called in short: `build_tile` of "task `build_tile`"."""
    quoted = limit.label.split("`")
    return quoted[1] if len(quoted) > 2 else limit.label
