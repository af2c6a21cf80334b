"""Where a budget is at hand: a parameter, a local, `self.budget`, one that a function around it has."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from deadlint.index.values import Object, Parameter, Result, Values

if TYPE_CHECKING:
    from deadlint.index.module import Module
    from deadlint.index.scopes import Binding, Scope

BUDGET = "deadlint_budget.Budget"
_NAMES = frozenset({"budget", "_budget"})


def is_budget(values: Values) -> bool:
    """Whether the values are a budget for certain."""
    return any(isinstance(v, Result) and v.name == BUDGET for v in values)


class Budgets:
    """Answers for one module which expression is a budget at a given place."""

    def __init__(self, module: Module) -> None:
        self._module = module
        # Where nothing is called so, nothing is one: to ask what each name of a function is costs a parse of the file.
        self.possible = "budget" in module.source.text.lower()

    def in_scope(self, node: ast.AST, scope: Scope) -> str | None:
        """The source of a budget that is bound before `node`, nearest first; None where there is none."""
        if not self.possible:
            return None
        current: Scope | None = scope
        while current is not None and current.kind != "module":
            if current.kind in ("function", "lambda"):
                found = self._local(node, current, inside=current is scope)
                if found:
                    return found
            current = current.parent
        return None

    def _local(self, node: ast.AST, scope: Scope, *, inside: bool) -> str | None:
        self._module.walker.walk(scope)
        position = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
        for name, bindings in scope.bindings.items():
            before = [b for b in bindings if not inside or b.position < position]
            if before and self._is_budget(name, before[-1], scope):
                return name
        return self._on_self(scope)

    def _is_budget(self, name: str, binding: Binding, scope: Scope) -> bool:
        resolver = self._module.resolver
        match binding.kind:
            case "parameter":
                if is_budget(resolver.annotated(binding.annotation, scope.parent or scope)):
                    return True
                return name in _NAMES and not self._other_type(binding)
            case "assign" if isinstance(binding.value, ast.Call | ast.Name | ast.Attribute | ast.BoolOp):
                return is_budget(resolver.evaluate(binding.value, scope))
            case "enter" if binding.value is not None:
                return is_budget(resolver.evaluate(binding.value, scope))
        return False

    @staticmethod
    def _other_type(binding: Binding) -> bool:
        """Whether a parameter named `budget` is annotated as something else: money, a number."""
        return binding.annotation is not None and "Budget" not in ast.unparse(binding.annotation)

    def _on_self(self, scope: Scope) -> str | None:
        owner = scope.owner
        first = next(scope.parameters(), None)
        if owner is None or first is None:
            return None
        for value in self._module.resolver.attribute(Object(owner), "budget"):
            named = isinstance(value, Parameter) and value.name in _NAMES
            if is_budget((value,)) or named:
                return f"{first.arg}.budget"
        return None
