"""Whether a call is tried again when it fails: by a decorator of its function, or a loop that catches and goes on."""

from __future__ import annotations

import ast

from deadlint.index.scopes import Scope, dotted
from deadlint.site import Site, targets_of

_DECORATORS = (
    "tenacity.", "retrying.", "backoff.on_exception", "stamina.retry", "retry.retry", "retry2.retry",
    "deadlint_budget.Budget.attempts",
)  # fmt: skip


def tried_again(site: Site) -> bool:
    """Whether the same call is made again after it failed."""
    return _decorated(site) or _in_loop(site)


def _decorated(site: Site) -> bool:
    function = site.function
    node = function.definition if function is not None else None
    if function is None or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    outer = function.parent or function
    return any(_retries(d, outer, site) for d in node.decorator_list)


def _retries(decorator: ast.expr, scope: Scope, site: Site) -> bool:
    expression = decorator.func if isinstance(decorator, ast.Call) else decorator
    names = {t.name for t in targets_of(site.module.resolver.evaluate(expression, scope))}
    return any(name.startswith(_DECORATORS) for name in names)


def _in_loop(site: Site) -> bool:
    """`for _ in range(3): try: open(…) except …: <go on>`, where nothing that the call names changes in between."""
    caught = False
    inner: ast.AST = site.call
    for node in site.ancestors():
        match node:
            case ast.Try(body=body, handlers=handlers) if inner in body:
                caught = caught or any(not _leaves(h.body) for h in handlers)
            case ast.For(iter=ast.Call(func=func), target=target) if caught and dotted(func) == "range":
                return not _names(site.call) & (_names(target) | _bound_in(node))
            case ast.While() if caught:
                return not _names(site.call) & _bound_in(node)
            case ast.For() | ast.AsyncFor():
                return False
        inner = node
    return False


def _leaves(body: list[ast.stmt]) -> bool:
    """Whether a handler ends the loop whatever happens."""
    return bool(body) and isinstance(body[-1], ast.Raise | ast.Return | ast.Break)


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _bound_in(loop: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
