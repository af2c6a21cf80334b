"""DL104: a handler that goes on after `TimeoutExpired` as if the work were done."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

from deadlint.index.scopes import dotted
from deadlint.model import Edit, Fix, Safety
from deadlint.rule import Rule
from deadlint.site import Report, Site

from deadlint_rules._kill_paths import BROAD, catches_expiry, caught_names
from deadlint_rules._processes import RUNS, Given, commands_of, limit_given

_HELPERS = frozenset({"deadlint_budget.run", "deadlint_budget.check_output", "deadlint_budget.run_gdal"})


_MakeFix = Callable[[], Fix | None] | None


class TimeoutExpiredSwallowed(Rule):
    """A handler catches `TimeoutExpired` and goes on as if the program had done its work.

    ## What it does
    Looks at the handler that the expiry of `subprocess.run(timeout=…)` and its kin reaches: `except TimeoutExpired`,
    `SubprocessError`, `Exception`, a bare `except`, and `contextlib.suppress`. It is reported where the handler does
    nothing but pass, continue, log or sleep, and nothing else tells the difference: no return, raise or break, no
    flag or list that is filled, no result that is looked at later, no `else`. A broad handler is reported only where
    the call is all that it guards.

    `Popen` is DL102's: what its handler owes is the kill.

    ## Why it is bad
    The next step works on an output that is half written or missing, and the run is reported as a success. Measured:
    `gdalinfo` accepts the GeoTIFF of a `gdalwarp` that was killed, and statistics call all of its pixels valid.

    ## Example
    ```python
    import subprocess


    def build(tile):
        try:
            subprocess.run(["gdalwarp", tile, "out.tif"], timeout=600)
        except subprocess.TimeoutExpired:
            pass
    ```

    ## Use instead
    ```python
    import subprocess


    def build(tile):
        try:
            subprocess.run(["gdalwarp", tile, "out.tif"], timeout=600)
        except subprocess.TimeoutExpired:
            return False
        return True
    ```

    ## Fix safety
    Unsafe: the exception reaches callers that never saw it. A `pass` or `continue` at the end of the handler becomes
    `raise`; behind a log line `raise` is added. Offered for handlers of `TimeoutExpired` alone: others catch more than
    the fix is about.

    ## Options
    None.

    ## References
    - [subprocess.TimeoutExpired](https://docs.python.org/3/library/subprocess.html#subprocess.TimeoutExpired)
    """

    code = "DL104"
    name = "timeout-expired-swallowed"
    since = "0.1.0"
    calls = RUNS | _HELPERS
    words = (
        ("subprocess", "timeout", "except"),
        ("subprocess", "timeout", "suppress"),
        ("deadlint_budget", "except"),
        ("deadlint_budget", "suppress"),
    )

    def check(self, site: Site) -> Iterator[Report]:
        if site.name in RUNS and limit_given(site) is not Given.YES:
            return
        node = _catcher(site)
        if isinstance(node, ast.ExceptHandler):
            if _goes_on(node.body) and not _told(node, site):
                yield self._report(site, node, lambda: _with_raise(node, site))
        elif isinstance(node, ast.With | ast.AsyncWith) and _only_work(node.body, site) and not _used_later(node, site):
            yield self._report(site, node, None)

    @staticmethod
    def _report(site: Site, node: ast.ExceptHandler | ast.With | ast.AsyncWith, fix: _MakeFix) -> Report:
        label = commands_of(site).first.label
        return site.report(
            f"when {label} is killed at its limit the code goes on as if it had done its work",
            "raise, return, or note the failure where the caller looks",
            node=node,
            related=(site.related(site.call, "the limit that expires"),),
            fix=fix,
        )


def _catcher(site: Site) -> ast.ExceptHandler | ast.With | ast.AsyncWith | None:
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
    if not any(t.name == "contextlib.suppress" for t in site.module.targets(expression)):
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


# --- the fix ---------------------------------------------------------------------------------------------------


def _with_raise(handler: ast.ExceptHandler, site: Site) -> Fix | None:
    """`raise` at the end of the handler, where it is about the expiry alone."""
    source = site.module.source
    if handler.type is None or not _only_expiry(caught_names(handler.type, site.module, site.scope)):
        return None
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


def _only_expiry(names: Iterable[str]) -> bool:
    return all(name.endswith("TimeoutExpired") for name in names)
