"""Which expressions are certainly a timedelta, and what their `.seconds` is used for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from deadlint.index.scopes import dotted
from deadlint.index.values import Const, External, Result

if TYPE_CHECKING:
    from deadlint.index.module import Module
    from deadlint.index.scopes import Scope

_POINTS = frozenset(
    f"datetime.datetime{tail}"
    for tail in ("", ".now", ".utcnow", ".fromtimestamp", ".utcfromtimestamp", ".strptime", ".fromisoformat",
                 ".combine", ".today")
) | {"django.utils.timezone.now"}  # fmt: skip
_SAME = frozenset({"replace", "astimezone"})  # methods of a datetime that return another
_DEEP = 6
_WAITS = frozenset({"sleep", "wait", "settimeout", "alarm", "join", "wait_for"})


class Durations:
    """Answers for one module which expressions are points in time and which are timedeltas."""

    def __init__(self, module: Module) -> None:
        self._module = module

    def is_point(self, node: ast.expr, scope: Scope, depth: int = 0) -> bool:
        """Whether an expression is a datetime for certain."""
        match node:
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
                return self.is_point(left, scope, depth) and self.is_span(right, scope, depth)
            case ast.Call(func=ast.Attribute(value=base, attr=name)) if name in _SAME:
                return self.is_point(base, scope, depth)
        values = self._module.resolver.evaluate(node, scope)
        if any(isinstance(v, Result | External) and v.name in _POINTS and isinstance(v, Result) for v in values):
            return True
        return any(self.is_point(value, home, depth + 1) for value, home in self._assigned(node, scope, depth))

    def is_span(self, node: ast.expr, scope: Scope, depth: int = 0) -> bool:
        """Whether an expression is a timedelta for certain."""
        match node:
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return self.is_point(left, scope, depth) or self.is_point(right, scope, depth) or ((
                    self.is_span(left, scope, depth) or self.is_span(right, scope, depth)
                ) and not self.is_point(left, scope, depth))  # fmt: skip
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self.is_span(left, scope, depth) and self.is_span(right, scope, depth)
        values = self._module.resolver.evaluate(node, scope)
        if any(_is_timedelta(value) for value in values):
            return True
        return any(self.is_span(value, home, depth + 1) for value, home in self._assigned(node, scope, depth))

    def _assigned(self, node: ast.expr, scope: Scope, depth: int) -> Iterator[tuple[ast.expr, Scope]]:
        """What a local name is given, where that is an expression of its own."""
        if not isinstance(node, ast.Name) or depth >= _DEEP:
            return
        home = self._module.resolver.scope_binding(node.id, scope)
        if home is None or home.module is not self._module.scope:
            return
        for binding in home.bindings[node.id]:
            if binding.kind == "assign" and binding.value is not None and binding.index is None:
                yield binding.value, home


def _is_timedelta(value: object) -> bool:
    match value:
        case Const(timedelta() as known):
            return known.days != 0  # what is less than a day has no other seconds than these
        case Result(name="datetime.timedelta"):
            return True
    return False


def attributes(module: Module) -> Iterator[tuple[ast.Attribute, Scope]]:
    """Every `x.seconds` that is read in a module, with the scope that it stands in."""
    for scope in module.scope.everything():
        for statement in scope.blocks:
            if isinstance(statement, ast.stmt):
                for node in _own(statement):
                    if isinstance(node, ast.Attribute) and node.attr == "seconds" and isinstance(node.ctx, ast.Load):
                        yield node, scope


def _own(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement, without the statements and lambdas that it holds."""
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(
            c for c in ast.iter_child_nodes(node) if not isinstance(c, ast.stmt | ast.Lambda | ast.ExceptHandler)
        )


def is_whole(node: ast.Attribute, scope: Scope, module: Module) -> bool:
    """Whether the function looks at the days, or at the sign, of the same timedelta as well."""
    base = ast.unparse(node.value)
    root: ast.AST = scope.node if scope.kind == "function" else module.statement(node)
    for other in ast.walk(root):
        if isinstance(other, ast.Attribute) and other.attr == "days" and ast.unparse(other.value) == base:
            return True
    return scope.kind == "function" and scope.name in ("__repr__", "__str__")


def is_guarded(node: ast.Attribute, scope: Scope, module: Module, durations: Durations) -> bool:
    """Whether the two points in time, in names, are compared right before: the difference is then no surprise."""
    names = {dotted(n) for n in ast.walk(node.value) if isinstance(n, ast.Name | ast.Attribute)} - {""}
    if any(isinstance(n, ast.Call) and dotted(n.func).endswith(("now", "utcnow")) for n in ast.walk(node.value)):
        return False
    points = {
        dotted(n)
        for n in ast.walk(node.value)
        if isinstance(n, ast.Name | ast.Attribute) and durations.is_point(n, scope)
    }
    if not points:
        return False
    for around in module.ancestors(node):
        if isinstance(around, ast.If):
            for test in ast.walk(around.test):
                if isinstance(test, ast.Compare):
                    sides = {dotted(test.left), *(dotted(c) for c in test.comparators)} - {""}
                    if len(sides & names) == 2:
                        return True
    return False


def bounds(node: ast.expr, scope: Scope, module: Module, depth: int = 0) -> bool:
    """Whether a number of seconds is compared, slept or waited for, here or under the name that it is given."""
    parents = module.walker.parents
    current: ast.AST = node
    parent = parents.get(current)
    while isinstance(parent, ast.BinOp | ast.UnaryOp | ast.IfExp) or (
        isinstance(parent, ast.Call) and dotted(parent.func) in ("int", "float", "round", "max", "min", "abs")
    ):
        current, parent = parent, parents.get(parent)
    match parent:
        case ast.Compare(ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()]):
            return True
        case ast.Call(func=func):
            return dotted(func).rpartition(".")[2] in _WAITS
        case ast.keyword(arg=str() as name):
            return "timeout" in name
        case ast.Assign(targets=[ast.Name(id=name)]) if depth == 0 and scope.kind == "function":
            loads = (
                n
                for n in ast.walk(scope.node)
                if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
            )
            return any(bounds(load, scope, module, depth + 1) for load in loads)
    return False
