"""Whether a handler goes on after the expiry of a call as if the work were done."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from deadlint.index.scopes import Scope, dotted
from deadlint.model import Edit, Fix, Safety
from deadlint.site import Site

from deadlint_rules._kill_paths import BROAD, caught_names, names_expiry
from deadlint_rules._processes import called_names

if TYPE_CHECKING:
    from deadlint.index.module import Module

Catcher = ast.ExceptHandler | ast.With | ast.AsyncWith


# Whether `except caught` or `suppress(caught)` catches the expiry that a rule is about.
Catches = Callable[[ast.expr, "Module", Scope], bool]


def swallower(site: Site, catches: Catches = names_expiry) -> Catcher | None:
    """The handler or `suppress` that swallows the expiry of a call; None where it is told, or not caught."""
    node = _catcher(site, catches)
    if isinstance(node, ast.ExceptHandler):
        return node if is_silent(node, site) else None
    if node is not None and _only_work(node.body, site) and not _used_later(node, site):
        return node
    return None


def is_silent(handler: ast.ExceptHandler, site: Site) -> bool:
    """Whether nothing tells that a handler was entered: not what it does, nor what is left out because of it."""
    return goes_on(handler.body) and not _told(handler, site)


def _catcher(site: Site, catches: Catches) -> Catcher | None:
    """The handler or `suppress` that the expiry reaches first."""
    inner: ast.AST = site.call
    for node in site.ancestors():
        match node:
            case ast.Try() | ast.TryStar() if inner in node.body:
                for handler in node.handlers:
                    if handler.type is None or catches(handler.type, site.module, site.scope):
                        return handler if _aims_at(handler, node, site) else None
            case ast.With() | ast.AsyncWith() if inner in node.body:
                if any(_suppresses(item.context_expr, site, catches) for item in node.items):
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


def _suppresses(expression: ast.expr, site: Site, catches: Catches) -> bool:
    return any(catches(caught, site.module, site.scope) for caught in suppressed(expression, site.module, site.scope))


def suppressed(expression: ast.expr, module: Module, scope: Scope) -> list[ast.expr]:
    """The exceptions that a context manager suppresses, as they are written."""
    if not isinstance(expression, ast.Call) or "contextlib.suppress" not in called_names(module, expression, scope):
        return []
    return expression.args


# --- does the handler tell? ------------------------------------------------------------------------------------

_QUIET = frozenset(
    {"debug", "info", "warning", "warn", "error", "exception", "critical", "log", "print", "sleep", "echo", "secho"}
)  # fmt: skip


def goes_on(body: list[ast.stmt]) -> bool:
    """Whether a handler does nothing but pass, continue, log or sleep."""
    return all(_is_quiet(statement) for statement in body)


def _is_quiet(statement: ast.stmt) -> bool:
    match statement:
        case ast.Pass() | ast.Continue() | ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=func)) | ast.Expr(value=ast.Await(value=ast.Call(func=func))):
            return (func.attr if isinstance(func, ast.Attribute) else dotted(func)) in _QUIET
        case ast.If(body=body, orelse=orelse):
            return goes_on(body) and goes_on(orelse)
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


# --- repairing -------------------------------------------------------------------------------------------------


def raised_again(handler: ast.ExceptHandler, module: Module) -> Fix | None:
    """`raise` at the end of a silent handler; None where that is not plain."""
    source = module.source
    last = handler.body[-1]
    start, end = source.extent(last)
    if isinstance(last, ast.Pass | ast.Continue):
        edit = Edit(start, end, "raise")
    elif isinstance(last, ast.Expr) and last.lineno != handler.lineno:
        indentation = source.line(last.lineno)[: last.col_offset]
        if indentation.strip():
            return None
        number = last.end_lineno or last.lineno
        line_end = source.line_starts[number - 1] + len(source.line(number))  # a comment stays with its statement
        edit = Edit(line_end, line_end, f"{source.newline}{indentation}raise")
    else:
        return None
    return Fix("raise the expiry again, so that the caller knows", Safety.UNSAFE, (edit,))
