"""Functions of a project that stand before a request: what they hand on of the timeout that they are given."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from deadlint.index.values import Function
from deadlint.site import Site, targets_of

from deadlint_rules import _http, _http_sessions

if TYPE_CHECKING:
    from deadlint.index.module import Module
    from deadlint.index.scopes import Scope


def request_of(function: Scope, module: Module) -> Site | None:
    """The request to which a function hands its own `**kwargs`, as they came; None where there is none."""
    known = _known(module)
    if function not in known:
        known[function] = None  # for whoever comes round to it again
        known[function] = _request_of(function, module)
    return known[function]


@lru_cache(maxsize=1)
def _known(module: Module) -> dict[Scope, Site | None]:
    """What was found for one module: where each of a hundred functions calls all others, once is enough."""
    return {}


def _request_of(function: Scope, module: Module) -> Site | None:
    kwarg = _own_kwargs(function)
    if kwarg is None or _takes_timeout(function):
        return None
    if _http_sessions.sets_timeout(function) or _is_configured(function, module):
        return None
    for call in module.resolver.walked(function).calls:
        if not _spreads(call, kwarg):
            continue
        values = module.resolver.evaluate(call.func, function)
        for target in targets_of(values):
            site = Site(module, call, function, (target,), target.name)
            if target.name in _http.REQUESTS and _http_sessions.default_of(site) is _http_sessions.Default.NO:
                return site
        for value in values:
            if isinstance(value, Function) and value.scope is not function:
                found = request_of(value.scope, module)
                if found is not None:
                    return found
    return None


def drops_timeout(site: Site) -> bool:
    """Whether the call hands on `**kwargs` in which there cannot be a timeout, since the function takes it apart."""
    function = site.function
    kwarg = _own_kwargs(function) if function is not None else None
    if function is None or kwarg is None or not _takes_timeout(function) or _http_sessions.writes_timeout(function):
        return False
    spreads = [k.value for k in site.call.keywords if k.arg is None]
    return len(spreads) == 1 and _spreads(site.call, kwarg)


def calls_itself(site: Site, function: Scope) -> bool:
    """Whether the call is of the function itself, and not of something that it is handed to."""
    values = site.values(site.call.func)
    return any(isinstance(value, Function) and value.scope is function for value in values)


def configured(site: Site) -> bool:
    """Whether the call stands in a function that is configured as one that sets a default."""
    scope: Scope | None = site.function
    while scope is not None:
        if _is_configured(scope, site.module):
            return True
        scope = scope.parent
    return False


def _is_configured(function: Scope, module: Module) -> bool:
    return _http_sessions.is_named(function, module, module.settings.wrappers.requests)


def _own_kwargs(function: Scope) -> str | None:
    if isinstance(function.node, ast.FunctionDef | ast.AsyncFunctionDef) and function.node.args.kwarg is not None:
        return function.node.args.kwarg.arg
    return None


def _takes_timeout(function: Scope) -> bool:
    return any(parameter.arg == "timeout" for parameter in function.parameters())


def _spreads(call: ast.Call, name: str) -> bool:
    """Whether the call has `**name` and no timeout of its own."""
    spread = any(k.arg is None and isinstance(k.value, ast.Name) and k.value.id == name for k in call.keywords)
    return spread and not any(k.arg == "timeout" for k in call.keywords)
