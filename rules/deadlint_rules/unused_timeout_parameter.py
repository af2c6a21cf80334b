"""DL406: a `timeout`, `deadline` or `budget` parameter that bounds nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from deadlint.index import limits
from deadlint.index.budgets import is_budget
from deadlint.index.flow import decorators_of
from deadlint.index.scopes import Scope, dotted
from deadlint.index.values import External, Function, Unknown
from deadlint.model import Level
from deadlint.rule import Rule
from deadlint.site import PROJECT, Report, Site

from deadlint_rules._blocking import BLOCKING, SLEEP
from deadlint_rules._limits import every_scope

if TYPE_CHECKING:
    from deadlint.index.module import Module

_WHOSE = (
    "connect", "connection", "read", "request", "requests", "http", "job", "task", "query", "command", "cmd", "total",
    "max", "wait", "socket", "statement", "lock", "execution", "exec", "run", "download", "upload", "fetch",
    "operation", "call", "process", "subprocess", "global", "default", "overall", "client", "response", "url",
)  # fmt: skip
_LIMIT = re.compile(
    rf"(?:(?:{'|'.join(_WHOSE)})_)?(?:timeout|deadline|time_limit)(?:_s|_sec|_secs|_seconds|_ms|_millis|_in_seconds)?"
)
_BUDGETS = frozenset({"budget", "_budget"})
# A parameter list that may hold one of them: most files with the words have none.
_IN_TEXT = re.compile(r"[(,]\s*\w*(?:timeout|deadline|time_limit|budget)\w*\s*[:=,)]")
# Decorators that call the function with what they are given, and read none of it themselves.
_PLAIN = frozenset(
    {
        "staticmethod", "classmethod", "wraps", "contextmanager", "asynccontextmanager", "lru_cache", "cache", "task",
        "flow", "op", "asset",
    }
)  # fmt: skip
_SAYS_SO = re.compile(
    r"unused|not used|ignored|deprecated|no effect|has no|compatib|placeholder|not (?:yet )?(?:supported|implemented)",
    re.IGNORECASE,
)
_SILENCED = re.compile(r"#.*(?:ARG00\d|unused-argument|W0613|noqa\s*$)")
_ASYNC = ("aiohttp.ClientSession.", "httpx.AsyncClient.", "asyncio.create_subprocess_", "asyncio.Process.")


class UnusedTimeoutParameter(Rule):
    """A parameter that says it is a limit, in a function that never reads it.

    ## What it does
    Looks for parameters such as `timeout`, `read_timeout`, `deadline`, `time_limit` or a `budget` that the function's
    body never names. Default where the body waits for something outside (a request, a child process, a query) or calls
    a function that takes the same parameter; strict where it only calls what is not known.

    Left alone: abstract methods, overloads, protocols, overrides and methods that a class in the same file overrides,
    stubs and functions that wait for nothing, functions under a decorator that may read the parameter itself, handlers
    that are handed to somebody else, and those whose docstring or a comment says that the parameter is not used.

    ## Why it is bad
    The caller gives a limit and relies on it; the call takes as long as it likes. Nobody looks for a missing limit
    where the signature has one.

    ## Example
    ```python
    import subprocess


    def warp(tile, timeout=600):
        subprocess.run(["gdalwarp", tile, "out.tif"], check=True)
    ```

    ## Use instead
    ```python
    import subprocess


    def warp(tile, timeout=600):
        subprocess.run(["gdalwarp", tile, "out.tif"], check=True, timeout=timeout)
    ```
    Or take the parameter away, so that the caller learns that there is no limit.

    ## Fix safety
    There is no fix: which call the limit was meant for is for a person to say.

    ## Options
    None.

    ## References
    - [The deadlint_budget guide](../budget.md)
    """

    code = "DL406"
    name = "unused-timeout-parameter"
    since = "0.1.0"
    calls = frozenset[str]()
    words = (
        *(
            (parameter, library)
            for parameter in (", timeout", "(timeout", "_timeout", "deadline", "time_limit")
            for library in ("import requests", "from requests", "subprocess", "urlopen", "httpx", "aiohttp", "psycopg")
        ),
        (", budget", "deadlint_budget"),
    )

    def check(self, site: Site) -> Iterator[Report]:
        return iter(())

    def check_module(self, module: Module) -> Iterator[Report]:
        if not _IN_TEXT.search(module.source.text):
            return
        for scope in every_scope(module):
            if scope.kind != "function":
                continue
            for parameter in scope.parameters():
                if _is_limit(parameter, scope, module) and not _is_read(parameter.arg, scope):
                    if not _is_excused(parameter, scope, module):
                        yield from _report(parameter, scope, module)
                    break


def _report(parameter: ast.arg, scope: Scope, module: Module) -> Iterator[Report]:
    waits = _waits(parameter.arg, scope, module)
    if waits is None or not isinstance(scope.node, ast.stmt):
        return
    what, level = waits
    yield Report(
        scope.node,
        f"`{scope.name}` takes `{parameter.arg}` and never reads it: {what} runs without that limit",
        f"pass `{parameter.arg}` to what it should bound, or take the parameter away",
        level,
    )


def _is_limit(parameter: ast.arg, scope: Scope, module: Module) -> bool:
    annotation = parameter.annotation
    if parameter.arg in _BUDGETS:
        return is_budget(module.resolver.annotated(annotation, scope.parent or scope)) or (
            annotation is not None and dotted(annotation).rpartition(".")[2] == "Budget"
        )
    return _LIMIT.fullmatch(parameter.arg) is not None


def _is_read(name: str, scope: Scope) -> bool:
    """Whether the body names the parameter, or hands all of its names on."""
    node = scope.node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return True
    for statement in node.body:
        for inner in ast.walk(statement):
            match inner:
                case ast.Name(id=used) if used == name or used in ("locals", "vars"):
                    return True
    return False


# --- what is left alone ------------------------------------------------------------------------------------------


def _is_excused(parameter: ast.arg, scope: Scope, module: Module) -> bool:
    node = scope.node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or scope.name.startswith("__"):
        return True
    return (
        not decorators_of(scope) <= _PLAIN
        or _is_stub(node)
        or _SAYS_SO.search(ast.get_docstring(node, clean=False) or "") is not None
        or _is_silenced(parameter, node, module)
        or _is_given_a_shape(scope, module)
        or _is_handed_over(scope, module)
    )


def _is_stub(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A body that does nothing of its own: a docstring, `pass`, `...`, a `raise`, a plain return."""
    for statement in node.body:
        match statement:
            case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.Raise():
                continue
            case ast.Return(value=value) if value is None or not any(isinstance(n, ast.Call) for n in ast.walk(value)):
                continue
        return False
    return True


def _is_silenced(parameter: ast.arg, node: ast.FunctionDef | ast.AsyncFunctionDef, module: Module) -> bool:
    """Whether a comment on the parameter, the `def` or right below it says that somebody knows."""
    lines = {node.lineno, parameter.lineno, max(parameter.lineno, node.body[0].lineno)}
    comments = (module.source.line(line).partition("#")[1:] for line in lines)
    return any(_SILENCED.search("".join(c)) or _SAYS_SO.search(c[1]) for c in comments)


def _is_given_a_shape(scope: Scope, module: Module) -> bool:
    """Whether somebody else decides the signature: a base class, a protocol, a sibling with the same method."""
    owner = scope.owner
    if owner is None:
        return scope.parent is not None and scope.parent.kind == "function"  # its maker may hand it to anybody
    if not isinstance(owner.definition, ast.ClassDef):
        return True
    for base in owner.definition.bases:
        for value in module.resolver.evaluate(base, owner.parent or module.scope):
            if isinstance(value, Unknown) or (isinstance(value, External) and value.name != "builtins.object"):
                return True
    bases = (base for base in module.resolver.mro(owner) if isinstance(base, Scope))
    classes = (other for other in every_scope(module) if other.kind == "class")
    return any(other is not owner and _has(other, scope.name) for other in (*bases, *classes))


def _has(cls: Scope, method: str) -> bool:
    return any(function.name == method for function in cls.functions)


def _is_handed_over(scope: Scope, module: Module) -> bool:
    """Whether the function is named anywhere but in a call of it: a handler, a table of functions."""
    # Most are only called, and the text says so much sooner than the tree.
    if not re.search(rf"\b{re.escape(scope.name)}\b(?![ \t]*[(.])", module.source.text):
        return False
    parents = module.walker.parents
    for node in ast.walk(module.tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name == scope.name and isinstance(node.ctx, ast.Load):
                parent = parents.get(node)
                if parent is not None and not (isinstance(parent, ast.Call | ast.Attribute) and _leads(parent, node)):
                    return True
    return False


def _leads(parent: ast.Call | ast.Attribute, node: ast.AST) -> bool:
    """Whether `node` is what is called, or what an attribute is taken of (`build.submit`)."""
    return (parent.func if isinstance(parent, ast.Call) else parent.value) is node


# --- what the body waits for -------------------------------------------------------------------------------------


def _waits(name: str, scope: Scope, module: Module) -> tuple[str, Level] | None:
    """What of the body may take long, in words, and how sure that is; None where it calls nothing."""
    unknown = None
    for call in module.walker.walk(scope).calls:
        site = module.site(call)
        shown = f"`{ast.unparse(call.func)}`" if len(ast.unparse(call.func)) <= 40 else "what it calls"
        names = {t.name for t in site.targets} if site is not None else set()
        if any(n != SLEEP and (n in BLOCKING or n in limits.INNER or n.startswith(_ASYNC)) for n in names):
            return shown, Level.DEFAULT
        if PROJECT in names and site is not None and _takes(name, site):
            return shown, Level.DEFAULT
        if site is None or not all(n.startswith(("builtins.", "logging.", "str.", "dict.")) for n in names):
            unknown = unknown or shown
    return None if unknown is None else (unknown, Level.STRICT)


def _takes(name: str, site: Site) -> bool:
    """Whether the call runs a function with an optional parameter of the same name, which is not given."""
    if site.spread:
        return False
    for target in site.targets:
        match target.receiver:
            case Function(scope=scope) as function if scope.default_of(name) is not None:
                return site.module.resolver.argument_for(function, name, site.call) is None
    return False
