"""Whose child it is: who else may kill and reap a process that a function waits for."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deadlint.index.scopes import Binding, Scope, dotted
from deadlint.index.values import Function
from deadlint.site import Site

from deadlint_rules._kill_paths import Names

if TYPE_CHECKING:
    from deadlint.index.module import Module

_KILLS = re.compile(
    r"^(kill|terminate|send_signal|killpg|stop|close|interrupt|.*kill.*|.*terminat.*|.*stop.*)$", re.IGNORECASE
)
_REAPS = frozenset({"wait", "communicate"})


@dataclass(frozen=True, slots=True)
class Owner:
    """What those who have the child besides this function do to it."""

    kills: bool
    reaps: bool


NOBODY = Owner(False, False)
SOMEBODY = Owner(True, True)  # out of sight


def owner_of(site: Site, key: str) -> Owner:
    """Who else has the child `key` of the function that `site` stands in."""
    scope = site.scope
    head, _, rest = key.partition(".")
    function = site.function
    if scope.kind == "module" or function is None:
        return _elsewhere(site.module, Names(frozenset({key})), scope)
    home = site.module.resolver.scope_binding(head, scope)
    if home is not function:
        return SOMEBODY if home is None else _elsewhere(site.module, Names(frozenset({key})), function)
    parameters = {p.arg for p in function.parameters()}
    if rest:
        return _of_class(site.module, function, key) if head in parameters else SOMEBODY
    if head in parameters or _lent(site, function, head):
        return SOMEBODY  # the caller's, or that of the context manager which gives it
    return SOMEBODY if _escapes(function, key) else NOBODY


def _lent(site: Site, function: Scope, name: str) -> bool:
    """Whether a `with` over a function of the project gives the child, and ends it at its exit."""
    for binding in function.bindings.get(name, ()):
        match binding:
            case Binding(kind="enter", value=ast.Call(func=func)):
                for value in site.values(func):
                    if isinstance(value, Function) and site.module.resolver.walked(value.scope).yields:
                        return True
    return False


def _of_class(module: Module, function: Scope, key: str) -> Owner:
    """What other methods of the class do to `self.key`."""
    head, _, rest = key.partition(".")
    owner = function.owner
    first = next(function.parameters(), None)
    if owner is None or first is None or first.arg != head:
        return SOMEBODY
    kills = reaps = False
    for base in module.resolver.mro(owner):
        if not isinstance(base, Scope):
            continue
        for method in base.functions:
            parameter = next(method.parameters(), None)
            if method is function or parameter is None:
                continue
            found = _done_in(module, method, Names(frozenset({f"{parameter.arg}.{rest}"})))
            kills, reaps = kills or found.kills, reaps or found.reaps
    return Owner(kills, reaps)


def _elsewhere(module: Module, names: Names, function: Scope) -> Owner:
    """What the rest of the file does to a child that it sees under the same name."""
    kills = reaps = False
    for scope in module.scope.everything():
        if scope is not function:
            found = _done_in(module, scope, names)
            kills, reaps = kills or found.kills, reaps or found.reaps
    return Owner(kills, reaps)


def _done_in(module: Module, scope: Scope, names: Names) -> Owner:
    """Whether a function ends or reaps the child."""
    module.resolver.walked(scope)
    kills = reaps = False
    for call in scope.calls:
        if names.mentions(call):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else dotted(call.func)
            kills = kills or bool(_KILLS.match(name))
            reaps = reaps or name in _REAPS
    return Owner(kills, reaps)


def _escapes(function: Scope, key: str) -> bool:
    """Whether a local child is returned, stored or put into a collection."""
    for node in function.returns:
        if _holds(node, key):
            return True
    for statement in function.blocks:
        match statement:
            case ast.Assign(targets=targets, value=value) if _holds(value, key):
                if any(isinstance(t, ast.Attribute | ast.Subscript) for t in targets):
                    return True
    for call in function.calls:
        if (
            isinstance(call.func, ast.Attribute)
            and call.func.attr
            in (
                "append",
                "add",
                "put",
                "put_nowait",
                "setdefault",
            )
            and any(_holds(a, key) for a in call.args)
        ):
            return True
    return key in function.outer_names


def _holds(node: ast.expr, key: str) -> bool:
    """Whether an expression is the child itself or a display that holds it."""
    match node:
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return any(_holds(item, key) for item in items)
        case ast.Dict(values=items):
            return any(_holds(item, key) for item in items)
        case ast.Call(args=args, func=func) if (
            dotted(func)[:1].isupper() or dotted(func).rpartition(".")[2][:1].isupper()
        ):
            return any(_holds(a, key) for a in args)
    return dotted(node) == key


def handed_over(module: Module, scope: Scope, names: Names) -> bool:
    """Whether the function registers the child's end with someone: a timer, a thread, an exit stack, `atexit`."""
    return any(_registers(call, module, scope, names) for call in scope.calls)


def _registers(call: ast.Call, module: Module, scope: Scope, names: Names) -> bool:
    given = [*call.args, *(k.value for k in call.keywords)]
    if any(_is_end(argument, names) for argument in given):
        return True
    if len(given) < 2 or not any(names.mentions(argument) for argument in given):
        return False
    return any(_ends_what_it_gets(argument, module, scope) for argument in given)


def _is_end(argument: ast.expr, names: Names) -> bool:
    """`proc.kill`, or a lambda that ends the child."""
    match argument:
        case ast.Attribute(value=base, attr="kill" | "terminate"):
            return names.is_child(base)
        case ast.Lambda(body=ast.Call() as call):
            return names.mentions(call) and bool(_KILLS.match(_last(call.func)))
    return False


def _ends_what_it_gets(argument: ast.expr, module: Module, scope: Scope) -> bool:
    """Whether an argument is a function that ends a process which it is given."""
    name = dotted(argument).rpartition(".")[2]
    if not name or name.startswith("SIG"):
        return False
    if _KILLS.match(name):
        return True
    for value in module.resolver.evaluate(argument, scope):
        if isinstance(value, Function):
            calls = module.resolver.walked(value.scope).calls
            return any(_last(c.func) in ("kill", "killpg", "terminate") for c in calls)
    return False


def _last(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else dotted(func)
