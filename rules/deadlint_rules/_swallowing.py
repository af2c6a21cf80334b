"""Whether a handler goes on after the expiry of a call as if the work were done."""

from __future__ import annotations

import ast

from deadlint.index.scopes import dotted
from deadlint.site import Site

from deadlint_rules._kill_paths import BROAD, catches_expiry, caught_names
from deadlint_rules._processes import called_names

Catcher = ast.ExceptHandler | ast.With | ast.AsyncWith


def swallower(site: Site) -> Catcher | None:
    """The handler or `suppress` that swallows the expiry of a call; None where it is told, or not caught."""
    node = _catcher(site)
    if isinstance(node, ast.ExceptHandler):
        return node if _goes_on(node.body) and not _told(node, site) else None
    if node is not None and _only_work(node.body, site) and not _used_later(node, site):
        return node
    return None


def _catcher(site: Site) -> Catcher | None:
    """The handler or `suppress` that the expiry reaches first."""
    inner: ast.AST = site.call
    for node in site.ancestors():
        match node:
            case ast.Try() | ast.TryStar() if inner in node.body:
                for handler in node.handlers:
                    if catches_expiry(handler, site.module, site.scope):
                        return handler if _aims_at(handler, node, site) else None
            case ast.With() | ast.AsyncWith() if inner in node.body:
                if any(_suppresses(item.context_expr, site) for item in node.items):
                    return node
        inner = node
    return None


def _aims_at(handler: ast.ExceptHandler, node: ast.Try | ast.TryStar, site: Site) -> bool:
    """Whether the handler is about the expiry, and not a broad one around much else."""
    names = caught_names(handler.type, site.module, site.scope) if handler.type is not None else set(BROAD)
    return not names & BROAD or _only_work(node.body, site)


def _only_work(body: list[ast.stmt], site: Site) -> bool:
    """Whether the call is all that a block does."""
    work = [s for s in body if not _is_quiet(s)]
    return len(work) == 1 and work[0] is site.statement


def _suppresses(expression: ast.expr, site: Site) -> bool:
    if not isinstance(expression, ast.Call):
        return False
    if "contextlib.suppress" not in called_names(site.module, expression, site.scope):
        return False
    names: set[str] = set()
    for argument in expression.args:
        names |= caught_names(argument, site.module, site.scope)
    return bool(names & BROAD) or any(n.endswith(("TimeoutExpired", ".SubprocessError")) for n in names)


# --- does the handler tell? ------------------------------------------------------------------------------------

_QUIET = frozenset(
    {"debug", "info", "warning", "warn", "error", "exception", "critical", "log", "print", "sleep", "echo", "secho"}
)  # fmt: skip


def _goes_on(body: list[ast.stmt]) -> bool:
    """Whether a handler does nothing but pass, continue, log or sleep."""
    return all(_is_quiet(statement) for statement in body)


def _is_quiet(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Continue() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=func)) | ast.Expr(value=ast.Await(value=ast.Call(func=func))):
            return (func.attr if isinstance(func, ast.Attribute) else dotted(func)) in _QUIET
        case ast.If(body=body, orelse=orelse):
            return _goes_on(body) and _goes_on(orelse)
    return False


def _told(handler: ast.ExceptHandler, site: Site) -> bool:
    """Whether something outside of the handler tells the difference."""
    node = site.module.walker.parents[handler]
    assert isinstance(node, ast.Try | ast.TryStar)
    goes_on = not any(isinstance(s, ast.Continue) for s in handler.body)
    if any(_leaves(s) for s in (*node.body, *node.orelse)):
        return True  # success leaves here; what follows is for those that failed
    if node.orelse and any(not _is_quiet(s) for s in node.orelse):
        return True
    return _used_later(node, site) or (not goes_on and _more_to_do(node, site))


def _leaves(statement: ast.stmt) -> bool:
    match statement:
        case ast.Return() | ast.Break() | ast.Raise():
            return True
        case ast.If(body=body, orelse=orelse):
            return any(_leaves(s) for s in (*body, *orelse))
        case ast.With(body=body) | ast.AsyncWith(body=body):
            return any(_leaves(s) for s in body)
    return False


def _more_to_do(node: ast.AST, site: Site) -> bool:
    """Whether the success path has more to do in the same turn of the loop, which `continue` skips."""
    parent = site.module.walker.parents.get(node)
    body = getattr(parent, "body", [])
    if not isinstance(parent, ast.For | ast.AsyncFor | ast.While) or node not in body:
        return True
    return any(not _is_quiet(s) for s in body[body.index(node) + 1 :])


def _used_later(node: ast.Try | ast.TryStar | ast.With | ast.AsyncWith, site: Site) -> bool:
    """Whether a name that only success binds is read after the block."""
    bound = {n.id for s in node.body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    bound |= {
        dotted(n)
        for s in node.body
        for n in ast.walk(s)
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
    }
    if any(name.count(".") for name in bound):
        return True  # an attribute: who reads it is out of sight
    function = site.function
    root = function.node if function is not None else site.module.tree
    end = node.end_lineno or node.lineno
    return any(
        isinstance(n, ast.Name) and n.id in bound and isinstance(n.ctx, ast.Load) and n.lineno > end
        for n in ast.walk(root)
    )
