"""Wrappers that lose the timeout which their caller gives: dropped from `**kwargs`, or replaced by None."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from deadlint.index import limits
from deadlint.index.scopes import Scope
from deadlint.index.values import Function
from deadlint.model import Level
from deadlint.site import PROJECT, Report, Site

from deadlint_rules._limits import every_scope

if TYPE_CHECKING:
    from deadlint.index.module import Module

_KEY = "timeout"
WORDS = (
    ("timeout", "**kw", "requests"),
    ("timeout", "**kw", "subprocess"),
    ("timeout", "**kw", "httpx"),
    ("timeout = None", "def "),
)


def in_wrappers(module: Module) -> Iterator[Report]:
    """What the functions of a module do to a timeout that they are given."""
    for scope in every_scope(module):
        if scope.kind == "function" and isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef):
            mapping = scope.node.args.kwarg
            if mapping is not None:
                yield from _from_mapping(mapping.arg, scope, scope.node, module)
            yield from _replaced(scope, scope.node, module)


def _from_mapping(
    name: str, scope: Scope, node: ast.FunctionDef | ast.AsyncFunctionDef, module: Module
) -> Iterator[Report]:
    """`kwargs.pop("timeout", None)`, `del kwargs["timeout"]`, `kwargs["timeout"] = None` in front of the call."""
    for statement in node.body:
        if not _drops(statement, name):
            continue
        behind = (call for call in scope.calls if call.lineno > statement.lineno)
        sent = next((call for call in behind if _forwards(call, name) and _takes_limit(call, scope, module)), None)
        if sent is not None and not any(k.arg == _KEY for k in sent.keywords):
            yield Report(
                statement,
                f"the timeout that callers of `{scope.name}` give is dropped here, so `{ast.unparse(sent.func)}` runs"
                " without one",
                f"leave it in `{name}`, or set another limit in its place",
            )


def _drops(statement: ast.stmt, name: str) -> bool:
    match statement:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Name(id=held), attr="pop"), args=[ast.Constant(value="timeout"), *_]
            )
        ):
            return held == name
        case ast.Delete(targets=[ast.Subscript(value=ast.Name(id=held), slice=ast.Constant(value="timeout"))]):
            return held == name
        case ast.Assign(
            targets=[ast.Subscript(value=ast.Name(id=held), slice=ast.Constant(value="timeout"))],
            value=ast.Constant(value=None),
        ):
            return held == name
    return False


def _forwards(call: ast.Call, name: str) -> bool:
    return any(k.arg is None and isinstance(k.value, ast.Name) and k.value.id == name for k in call.keywords)


def _takes_limit(call: ast.Call, scope: Scope, module: Module) -> bool:
    """Whether a call takes a `timeout` that bounds it."""
    names = {target.name for target in module.targets(call)}
    return any(
        form is not None and form.keyword == _KEY
        for form in (limits.INNER.get(name) or limits.FURTHER.get(name) for name in names)
    )


def _replaced(scope: Scope, node: ast.FunctionDef | ast.AsyncFunctionDef, module: Module) -> Iterator[Report]:
    """A `timeout` parameter that is set to None, or None in its place, where it should be passed on."""
    if not any(parameter.arg == _KEY for parameter in scope.parameters()):
        return
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="timeout")], value=ast.Constant(value=None)):
                yield Report(
                    statement,
                    f"the timeout that callers of `{scope.name}` give is replaced by None here: nothing is bounded",
                    "keep what the caller gives",
                )
    for call in scope.calls:
        for keyword in call.keywords:
            match keyword:
                case ast.keyword(arg="timeout", value=ast.Constant(value=None)) if _takes_limit(call, scope, module):
                    if not _under_a_test(call, module):
                        yield Report(
                            call,
                            f"`{scope.name}` takes a timeout, and `{ast.unparse(call.func)}` is told None in its place",
                            "pass `timeout=timeout`",
                        )


def _under_a_test(node: ast.AST, module: Module) -> bool:
    """Whether a node stands under an `if` that speaks of the timeout, or in a handler or clean-up."""
    for around in module.ancestors(node):
        if isinstance(around, ast.If | ast.IfExp | ast.While | ast.ExceptHandler | ast.Try):
            return True
    return False


def given_in_vain(site: Site) -> Iterator[Report]:
    """`fetch(url, timeout=5)` of a function of the project that takes `**kwargs` and never reads them."""
    given = next((k for k in site.call.keywords if k.arg == _KEY), None)
    if given is None or site.name != PROJECT:
        return
    for value in site.values(site.call.func):
        match value:
            case Function(scope=scope):
                node = scope.node
                if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.decorator_list:
                    return
                mapping = node.args.kwarg
                if mapping is None or any(p.arg == _KEY for p in scope.parameters()) or scope.owner is not None:
                    return
                if any(isinstance(n, ast.Name) and n.id == mapping.arg for s in node.body for n in ast.walk(s)):
                    return
                yield site.report(
                    f"`{scope.name}` takes this timeout among its `**{mapping.arg}` and never reads them",
                    "pass it on in the function, or do without it here",
                    level=Level.DEFAULT,
                    related=(),
                )
                return
