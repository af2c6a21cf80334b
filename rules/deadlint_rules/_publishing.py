"""How a function treats a file that it writes: is it a temporary one, is it removed after a failure, is it believed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from deadlint.index.scopes import dotted
from deadlint.index.values import Result
from deadlint.site import Site

from deadlint_rules._places import Places, alike, bare

_WORKING = re.compile(
    r"(^|[^a-z])(te?mp|temporary|part|partial|scratch|swap|staging|stage|work|working|workdir|intermediate|incomplete|cache"
    r"|unfinished|unverified|new|raw)(file|path|dir|name|[^a-z]|$)|~$|tmp",
    re.IGNORECASE,
)
# What the directory may be called in which a file lies that is no output.
_TEMPORARY = re.compile(r"(^|[^a-z])(te?mp|temporary|scratch)([^a-z]|$|dir)", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_CHECKS = frozenset({"exists", "isfile", "is_file", "lexists", "isdir", "is_dir", "getsize"})
_MOVING = frozenset({"replace", "rename", "renames", "move", "copy", "copyfile", "copy2", "link", "upload_file"})
_REMOVING = frozenset({"remove", "unlink", "rmtree", "silent_remove", "safe_remove"})


def is_working_file(path: ast.expr, site: Site) -> bool:
    """Whether what is written has a name of its own until it is done: by its name, its directory, or a later rename."""
    if any(_WORKING.search(_CAMEL.sub("_", word)) for word in _words(path)):
        return True
    if any(_TEMPORARY.search(_CAMEL.sub("_", word)) for node in _bound_to(path, site) for word in _words(node)):
        return True
    if Places(site.module).of(path, site.scope).temporary:
        return True
    for value in site.values(bare(path)):
        match value:
            case Result(name=name) if "atomic" in name.lower():
                return True
    behind = (site.call.end_lineno or 0, site.call.end_col_offset or 0)
    return any(_moves(call, path) for call in _calls(site) if (call.lineno, call.col_offset) > behind)


def _bound_to(path: ast.expr, site: Site) -> Iterator[ast.expr]:
    """What the name of a path is bound to in the function, where that is one expression."""
    node = bare(path)
    if isinstance(node, ast.Name):
        home = site.module.resolver.scope_binding(node.id, site.scope)
        bindings = home.bindings[node.id] if home is not None and home is site.scope else []
        if len(bindings) == 1 and bindings[0].kind == "assign" and bindings[0].value is not None:
            yield bindings[0].value


def _words(path: ast.expr) -> Iterator[str]:
    """The names and texts that a path is made of."""
    for node in ast.walk(path):
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.Constant(value=str() as word):
                yield word


def _calls(site: Site) -> Iterator[ast.Call]:
    yield from (site.function or site.module.scope).calls


def _moves(call: ast.Call, path: ast.expr) -> bool:
    """Whether a call gives the file its name, or takes it away from here."""
    if dotted(call.func).rpartition(".")[2] not in _MOVING and getattr(call.func, "attr", "") not in _MOVING:
        return False
    sources = [*call.args[:1], *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
    return any(alike(source, path) for source in sources)


def is_removed_after_failure(path: ast.expr, site: Site) -> bool:
    """Whether a handler or `finally` of the function removes the file."""
    function = site.function
    root = function.node if function is not None else site.module.tree
    for node in ast.walk(root):
        if isinstance(node, ast.Try):
            for statement in (*(s for h in node.handlers for s in h.body), *node.finalbody):
                if any(isinstance(c, ast.Call) and _removes(c, path) for c in ast.walk(statement)):
                    return True
    return False


def _removes(call: ast.Call, path: ast.expr) -> bool:
    name = dotted(call.func).rpartition(".")[2] or getattr(call.func, "attr", "")
    if name not in _REMOVING:
        return False
    removed = [*call.args[:1], *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
    return any(alike(node, path) for node in removed)


# --- what exists is believed ---------------------------------------------------------------------------------------


def believed(path: ast.expr, site: Site) -> ast.expr | None:
    """The test by which the function takes a file that exists for a finished one, and leaves the work out."""
    inner: ast.AST = site.call
    parents = site.module.walker.parents
    function = site.function.node if site.function is not None else site.module.tree
    current: ast.AST | None = inner
    while current is not None:
        above = parents.get(current)
        match above:
            case ast.If(test=test, body=body, orelse=orelse):
                if current in body and (found := _check(test, path, negated=True)) is not None:
                    return found
                if current in orelse and not _worked_on(body, path):
                    found = _check(test, path, negated=False)
                    if found is not None:
                        return found
        if isinstance(current, ast.stmt):
            for before in _siblings_before(current, above or function):
                if isinstance(before, ast.If) and _ends(before.body) and not _worked_on(before.body, path):
                    found = _check(before.test, path, negated=False)
                    if found is not None:
                        return found
        if above is function or isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        current = above
    return None


def taken_afterwards(path: ast.expr, site: Site) -> ast.expr | None:
    """The test behind the call by which a file that exists stands for success."""
    function = site.function.node if site.function is not None else site.module.tree
    for node in ast.walk(function):
        if getattr(node, "lineno", 0) <= (site.call.end_lineno or 0):
            continue
        match node:
            case ast.Return(value=ast.expr() as value) if _is_check(value, path):
                return value
            case ast.If(test=test, body=body) if _is_check(test, path) and not _only_removes(body, path):
                return test
    return None


def _only_removes(body: list[ast.stmt], path: ast.expr) -> bool:
    return any(isinstance(c, ast.Call) and _removes(c, path) for statement in body for c in ast.walk(statement))


def _check(test: ast.expr, path: ast.expr, *, negated: bool) -> ast.expr | None:
    """The part of a test that asks whether the file exists, or whether it does not."""
    match test:
        case ast.BoolOp(values=parts):
            return next((f for p in parts if (f := _check(p, path, negated=negated)) is not None), None)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _check(operand, path, negated=not negated)
    return test if not negated and _is_check(test, path) else None


def _is_check(test: ast.expr, path: ast.expr) -> bool:
    match test:
        case ast.Call(func=func, args=args):
            name = dotted(func).rpartition(".")[2] or getattr(func, "attr", "")
            if name not in _CHECKS:
                return False
            tested = args[0] if args else func.value if isinstance(func, ast.Attribute) else func
            return alike(tested, path)
    return False


# What a branch may do with the name of a file that it leaves alone.
_TELLING = frozenset(
    {"print", "append", "add", "debug", "info", "warning", "warn", "log", "echo", "write", "str", "format"}
)


def _worked_on(body: list[ast.stmt], path: ast.expr) -> bool:
    """Whether a branch does something with the file: then it is not taken as it is."""
    for statement in body[:-1] if _ends(body) else body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and any(
                alike(a, path) for a in (*node.args, *(k.value for k in node.keywords))
            ):
                name = dotted(node.func).rpartition(".")[2] or getattr(node.func, "attr", "")
                if name not in _TELLING:
                    return True
    return False


def _siblings_before(statement: ast.stmt, parent: ast.AST) -> list[ast.stmt]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and statement in block:
            return block[: block.index(statement)]
    return []


def _ends(body: list[ast.stmt]) -> bool:
    """Whether a branch leaves the work out, and not because there is something wrong."""
    return bool(body) and isinstance(body[-1], ast.Return | ast.Continue)
