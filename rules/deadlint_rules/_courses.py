"""The worst course of a stretch of statements: the limits of what it calls, one after the other."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from deadlint.index import limits
from deadlint.index.limits import Limit
from deadlint.index.scopes import Scope
from deadlint.index.values import Const
from deadlint.index.values import Sequence as Items
from deadlint.site import Site

from deadlint_rules._limits import is_capped

if TYPE_CHECKING:
    from deadlint.index.module import Module

_DEEP = 4  # functions that are looked into below the one that is asked about
# What runs its arguments at the same time, or later.
_PARALLEL = frozenset({"gather", "wait", "as_completed", "create_task", "ensure_future", "start_soon", "submit", "map",
                       "spawn", "partial", "Thread", "Process", "delay", "apply_async"})  # fmt: skip
_SINGLE = ("deadlint_budget.", "threading.", "concurrent.")


@dataclass(frozen=True, slots=True)
class Part:
    """Something of a course that has a limit, and how often it comes."""

    node: ast.expr
    label: str
    seconds: float
    times: int = 1
    default: str = ""  # whose default the seconds are

    @property
    def total(self) -> float:
        return self.seconds * self.times


Course = tuple[Part, ...]


def total(course: Course) -> float:
    """The seconds that all parts take one after the other."""
    return sum(part.total for part in course)


@dataclass(eq=False)
class Courses:
    """Answers for one module how long its statements may take for certain, as far as limits say."""

    module: Module
    _functions: dict[Scope, Course] = field(default_factory=dict)
    _busy: set[Scope] = field(default_factory=set)

    def of_function(self, function: Scope) -> Course:
        """The parts of a function's body, in whichever module it stands."""
        if function in self._functions:
            return self._functions[function]
        node = function.node
        too_deep = function in self._busy or len(self._busy) >= _DEEP
        if too_deep or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return ()
        self._busy.add(function)
        try:
            home = limits.home_of(function, self.module)
            found = self.of_statements(node.body, home.walker.walk(function), home)
        finally:
            self._busy.discard(function)
        if not self._busy:
            self._functions[function] = found
        return found

    def of_statements(self, body: Sequence[ast.stmt], scope: Scope, module: Module) -> Course:
        """The parts of statements that run one after the other, up to where they are left."""
        found: list[Part] = []
        for statement in body:
            found += self._of_statement(statement, scope, module)
            if isinstance(statement, ast.Return | ast.Raise | ast.Continue | ast.Break):
                break
        return tuple(found)

    def _of_statement(self, node: ast.stmt, scope: Scope, module: Module) -> Iterator[Part]:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                yield from self._of_with(items, body, scope, module)
            case ast.If(test=test, body=body, orelse=orelse):
                yield from self._of_expression(test, scope, module)
                branches = (self.of_statements(one, scope, module) for one in (body, orelse))
                yield from min(branches, key=total)
            case ast.For(iter=over, body=body) | ast.AsyncFor(iter=over, body=body):
                yield from self._of_expression(over, scope, module)
                times = 0 if _tries_again(body) else _times(over, scope, module)
                if times:
                    yield from (replace(p, times=p.times * times) for p in self.of_statements(body, scope, module))
            case ast.Try() | ast.TryStar():
                for block in (node.body, node.orelse, node.finalbody):
                    yield from self.of_statements(block, scope, module)
            case ast.While() | ast.Match():
                return
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        yield from self._of_expression(child, scope, module)

    def _of_with(
        self, items: list[ast.withitem], body: list[ast.stmt], scope: Scope, module: Module
    ) -> Iterator[Part]:
        for item in items:
            part = self._own(item.context_expr, scope, module) if isinstance(item.context_expr, ast.Call) else None
            if part is not None and part.label.endswith("\0"):
                yield replace(part, label=part.label[:-1])
                return  # a scope ends all that stands in it
            yield from self._of_expression(item.context_expr, scope, module)
        yield from self.of_statements(body, scope, module)

    def _of_expression(self, node: ast.expr, scope: Scope, module: Module) -> Iterator[Part]:
        """The parts of an expression, in the order in which they run."""
        match node:
            case ast.Lambda() | ast.GeneratorExp() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.IfExp():
                return
            case ast.BoolOp(values=[first, *_]):
                yield from self._of_expression(first, scope, module)
                return
            case ast.Call(func=func):
                if ast.unparse(func).rpartition(".")[2] in _PARALLEL:
                    return
                own = self._own(node, scope, module)
                if own is not None:
                    yield replace(own, label=own.label.removesuffix("\0"))
                    return
        for child in ast.iter_child_nodes(node):
            inner = child.value if isinstance(child, ast.keyword) else child
            if isinstance(inner, ast.expr):
                yield from self._of_expression(inner, scope, module)

    def _own(self, call: ast.Call, scope: Scope, module: Module) -> Part | None:
        """What a call may take by its own limit, or by those of the function that it runs."""
        for target in module.targets(call):
            site = Site(module, call, scope, (target,), target.name)
            if target.name in limits.INNER and not target.name.startswith(_SINGLE) and not is_capped(site):
                limit = limits.of_call(site)
                return _part(call, limit, scope=target.name in limits.SCOPES)
        for function in module.run_by(call, scope):
            if not module.runs_directly(call, function.scope):
                continue
            ends = _shortest(limits.of_decorators(function.scope, module))
            inside = total(self.of_function(function.scope))
            seconds = min(ends, inside) if ends is not None and inside else ends or inside
            return Part(call, f"`{function.scope.name}`", seconds) if seconds else None
        return None


def _part(call: ast.Call, limit: Limit | None, *, scope: bool) -> Part | None:
    if limit is None or limit.seconds is None or limit.seconds <= 0:
        return None
    return Part(call, limit.label + ("\0" if scope else ""), limit.seconds, default=limit.default)


def _shortest(found: Iterator[Limit]) -> float | None:
    return min((limit.seconds for limit in found if limit.seconds), default=None)


def _tries_again(body: list[ast.stmt]) -> bool:
    """Whether a loop goes on after an error and ends after a success: attempts at one thing, which DL403 counts."""
    for statement in body:
        if isinstance(statement, ast.Try):
            going_on = any(not isinstance(h.body[-1], ast.Raise | ast.Return) for h in statement.handlers)
            leaving = (statement.body, statement.orelse, body[body.index(statement) + 1 :])
            return going_on and any(block and isinstance(block[-1], ast.Return | ast.Break) for block in leaving)
    return False


def _times(over: ast.expr, scope: Scope, module: Module) -> int:
    """How many turns a loop over this certainly has; 0 where that is not known."""
    match over:
        case ast.Call(func=ast.Name(id="range"), args=[*args], keywords=[]) if 1 <= len(args) <= 2:
            numbers = [module.resolver.evaluate(arg, scope) for arg in args]
            whole = [v[0].value for v in numbers if len(v) == 1 and isinstance(v[0], Const) and type(v[0].value) is int]
            return len(range(*whole)) if len(whole) == len(args) else 0
        case ast.Call(func=ast.Name(id="enumerate" | "sorted" | "list" | "tuple" | "reversed"), args=[inner, *_]):
            return _times(inner, scope, module)
    match module.resolver.evaluate(over, scope):
        case (Items(items=items, open=False),):
            return len(items)
    return 0
