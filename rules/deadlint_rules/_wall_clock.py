"""What a reading of the wall clock becomes: a point in time, a deadline, a span, and where that is compared."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from deadlint.index.scopes import dotted

if TYPE_CHECKING:
    from deadlint.index.module import Module
    from deadlint.index.scopes import Binding, Scope

CLOCKS = frozenset(
    {"time.time", "datetime.datetime.now", "datetime.datetime.utcnow", "django.utils.timezone.now"}
)  # fmt: skip
_DEEP = 6  # names of names; real code stays under 3
_WRAPPERS = frozenset({"float", "int", "round", "max", "min", "abs"})


class Kind(Enum):
    """What an expression that holds a reading is."""

    POINT = auto()  # the time as it was read
    DEADLINE = auto()  # a reading and something added
    CUT_OFF = auto()  # a reading less something
    SPAN = auto()  # what lies between two of these


@dataclass(frozen=True, slots=True)
class Use:
    """Where a reading, or a name that it was given, ends up: as what, and in which node."""

    kind: Kind
    node: ast.AST  # a `Compare`, an assignment, or whatever else takes it
    expression: ast.expr  # the part of that node which holds it
    spans: tuple[ast.BinOp, ...] = ()  # the subtractions on the way


class Clock:
    """Answers for one module what its readings of the wall clock become."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._parents = module.walker.parents
        self._busy: set[str] = set()

    # --- what an expression is -----------------------------------------------------------------------------

    def kind(self, node: ast.expr, scope: Scope, depth: int = 0) -> Kind | None:
        """What an expression is; None where it comes from no reading, or that cannot be told."""
        match node:
            case ast.Call() if self.is_reading(node):
                return Kind.POINT
            case ast.Call(func=ast.Name(id=name), args=args) if name in _WRAPPERS:
                return self._first(args, scope, depth)
            case ast.Call(func=ast.Attribute(value=base, attr="total_seconds")):
                return self.kind(base, scope, depth)
            case ast.Attribute(value=ast.expr() as base, attr="seconds"):
                return Kind.SPAN if self.kind(base, scope, depth) is Kind.SPAN else None
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._sum(self.kind(left, scope, depth), self.kind(right, scope, depth))
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return self._difference(self.kind(left, scope, depth), self.kind(right, scope, depth))
            case ast.IfExp(body=body, orelse=orelse):
                return self._first([body, orelse], scope, depth)
            case ast.BoolOp(values=values):
                return self._first(values, scope, depth)
            case ast.Name() | ast.Attribute() if depth < _DEEP:
                return self._named(node, scope, depth)
        return None

    def _first(self, nodes: list[ast.expr], scope: Scope, depth: int) -> Kind | None:
        return next((k for n in nodes if (k := self.kind(n, scope, depth)) is not None), None)

    @staticmethod
    def _sum(left: Kind | None, right: Kind | None) -> Kind | None:
        kinds = {left, right} - {None, Kind.SPAN}
        return Kind.DEADLINE if len(kinds) == 1 and kinds <= {Kind.POINT, Kind.DEADLINE} else None

    @staticmethod
    def _difference(left: Kind | None, right: Kind | None) -> Kind | None:
        if left is None:
            return None
        if right is None:
            return Kind.CUT_OFF if left is not Kind.SPAN else Kind.SPAN
        return Kind.SPAN

    def _named(self, node: ast.Name | ast.Attribute, scope: Scope, depth: int) -> Kind | None:
        """What a name is; None where that depends on itself."""
        name = ast.unparse(node)
        if name in self._busy:
            return None
        self._busy.add(name)
        try:
            kinds = set(self._bound_kinds(node, scope, depth))
        finally:
            self._busy.discard(name)
        return kinds.pop() if len(kinds) == 1 else None

    def _bound_kinds(self, node: ast.Name | ast.Attribute, scope: Scope, depth: int) -> Iterator[Kind | None]:
        """What each binding makes of a name, constants (None, -1) and parameters left out."""
        for binding, where in self.bindings(node, scope):
            if binding.kind == "parameter" or isinstance(binding.value, ast.Constant | ast.UnaryOp):
                continue
            if binding.value is not None and _within(node, binding.value):
                continue  # `timeout = time.time() + timeout`: the one on the right is the old one
            plain = binding.kind == "assign" and binding.value is not None and binding.index is None
            yield self.kind(binding.value, where, depth + 1) if plain and binding.value is not None else None

    def bindings(self, node: ast.Name | ast.Attribute, scope: Scope) -> Iterator[tuple[Binding, Scope]]:
        """What gives a name or an attribute of `self` its value."""
        if isinstance(node, ast.Name):
            home = self._module.resolver.scope_binding(node.id, scope)
            if home is not None and home.module is self._module.scope:
                yield from ((binding, home) for binding in home.bindings[node.id])
            return
        function = scope.enclosing_function()
        owner = function.owner if function is not None else None
        first = next(function.parameters(), None) if function is not None else None
        if owner is None or first is None or dotted(node.value) != first.arg:
            return
        for method in owner.functions:
            own = next(method.parameters(), None)
            if own is not None:
                yield from method.attributes.get((own.arg, node.attr), ())

    def is_reading(self, node: ast.expr) -> bool:
        """Whether an expression reads the wall clock."""
        return isinstance(node, ast.Call) and any(t.name in CLOCKS for t in self._module.targets(node))

    def is_wall_seconds(self, node: ast.expr) -> bool:
        """Whether an expression is a plain `time.time()` and can be nothing else."""
        if not isinstance(node, ast.Call) or node.args or node.keywords:
            return False
        targets = self._module.targets(node)
        return [t.name for t in targets] == ["time.time"]

    def is_now(self, node: ast.expr, scope: Scope) -> bool:
        """Whether an expression is the present time: a reading, or a name that is given nothing but readings."""
        match node:
            case ast.Call(func=ast.Name(id=name), args=[only]) if name in _WRAPPERS:
                return self.is_now(only, scope)
            case ast.Call():
                return self.is_reading(node)
            case ast.Name():
                found = list(self.bindings(node, scope))
                return bool(found) and all(b.value is not None and self.is_reading(b.value) for b, _ in found)
        return False

    def made_of_reading(self, target: ast.Name) -> bool:
        """Whether some assignment to `target` reads the clock itself."""
        values = (b.value for b, _ in self.bindings(target, self.scope_at(target)) if b.value is not None)
        return any(self.is_reading(n) for value in values for n in ast.walk(value) if isinstance(n, ast.Call))

    def latest(self, target: ast.Name, use: ast.expr) -> bool:
        """Whether the assignment to `target` is the last one in front of `use`."""
        scope = self.scope_at(use)
        before = [b for b, _ in self.bindings(target, scope) if b.position < (use.lineno, use.col_offset)]
        last = max(before, key=lambda b: b.position, default=None)
        return last is not None and last.node is self._parents.get(target)

    # --- where an expression ends up -----------------------------------------------------------------------

    def use(self, node: ast.expr, kind: Kind) -> Use:
        """Where an expression of this kind ends up, past arithmetic and conversions."""
        scope = self.scope_at(node)
        spans: tuple[ast.BinOp, ...] = ()
        current: ast.expr = node
        while True:
            parent = self._parents.get(current)
            match parent:
                case ast.BinOp(left=left, op=ast.Add(), right=right):
                    other = right if left is current else left
                    found = self._sum(kind, self.kind(other, scope)) if kind is not Kind.SPAN else Kind.SPAN
                case ast.BinOp(left=left, op=ast.Sub(), right=right) if left is current:
                    found = self._difference(kind, self.kind(right, scope))
                case ast.BinOp(left=left, op=ast.Sub()):
                    found = self._difference(self.kind(left, scope), kind)
                case ast.BinOp(op=ast.Div() | ast.Mult() | ast.FloorDiv()) if kind is Kind.SPAN:
                    found = kind
                case ast.IfExp(test=test) if test is not current:
                    found = kind
                case ast.BoolOp(op=ast.Or()) | ast.NamedExpr():
                    found = kind
                case ast.Call(func=ast.Name(id=name)) if name in _WRAPPERS:
                    found = kind
                case ast.Attribute(attr="total_seconds" | "seconds"):
                    found = kind if kind is Kind.SPAN else None
                case ast.Call(func=func) if func is current and kind is Kind.SPAN:
                    found = kind
                case _:
                    return Use(kind, parent or current, current, spans)
            if found is None or not isinstance(parent, ast.expr):
                return Use(kind, parent or current, current, spans)
            if found is Kind.SPAN and kind is not Kind.SPAN and isinstance(parent, ast.BinOp):
                spans = (*spans, parent)
            kind, current = found, parent

    def parent(self, node: ast.AST) -> ast.AST | None:
        """What a node is a direct part of."""
        return self._parents.get(node)

    def test(self, compare: ast.Compare) -> ast.AST | None:
        """What a comparison, perhaps one of several, decides: an `if`, a `while`, else whatever takes it."""
        current: ast.AST | None = compare
        inner: ast.AST | None = None
        while isinstance(current, ast.expr):
            inner, current = current, self._parents.get(current)
        match current:
            case ast.If(test=test) | ast.While(test=test) if test is inner:
                return current
        return None

    def in_loop(self, statement: ast.stmt) -> bool:
        """Whether a statement stands in a loop of its function."""
        return any(isinstance(a, ast.For | ast.While | ast.AsyncFor) for a in self._module.ancestors(statement))

    def loads(self, name: ast.Name, scope: Scope) -> list[ast.Name]:
        """Where the value of a local name is read, in the function and in those that it holds."""
        home = self._module.resolver.scope_binding(name.id, scope)
        if home is None or home.kind != "function":
            return []
        found = [
            n
            for n in ast.walk(home.node)
            if isinstance(n, ast.Name) and n.id == name.id and isinstance(n.ctx, ast.Load)
        ]
        return [n for n in found if self._module.resolver.scope_binding(n.id, self.scope_at(n)) is home]

    def attribute_loads(self, attribute: str) -> list[ast.Attribute]:
        """Where an attribute of this name is read, of whatever object."""
        return [
            n
            for n in ast.walk(self._module.tree)
            if isinstance(n, ast.Attribute) and n.attr == attribute and isinstance(n.ctx, ast.Load)
        ]

    def scope_at(self, node: ast.AST) -> Scope:
        """The scope that a node stands in."""
        current: ast.AST | None = node
        while current is not None and not isinstance(current, ast.stmt):
            if isinstance(current, ast.Lambda) and current is not node:
                return self._module.walker.scope_of[current]
            current = self._parents.get(current)
        return self._homes.get(current, self._module.scope) if current is not None else self._module.scope

    @cached_property
    def _homes(self) -> dict[ast.AST, Scope]:
        """The scope of each statement."""
        self._module.walker.walk_all(self._module.scope)
        every = self._module.scope.everything()
        return {node: scope for scope in every for node in scope.blocks if isinstance(node, ast.stmt)}


def _within(node: ast.expr, other: ast.expr) -> bool:
    """Whether `node` lies in the text of `other`."""
    start, end = (other.lineno, other.col_offset), (other.end_lineno or 0, other.end_col_offset or 0)
    return start <= (node.lineno, node.col_offset) < end


@lru_cache(maxsize=1)
def clock_of(module: Module) -> Clock:
    """The one `Clock` of a module: its sites come one after the other."""
    return Clock(module)
