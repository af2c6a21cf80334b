"""Which limits hold around a place: in its function, on its function, and around whoever calls it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from deadlint.index import limits
from deadlint.index.budgets import BUDGET
from deadlint.index.limits import Limit

if TYPE_CHECKING:
    from deadlint.index.module import Module
    from deadlint.index.scopes import Scope

_TIMEOUT_WORDS = ("timeout", "deadline", "time_limit", "max_time", "budget")
_FARTHEST = 12  # calls between a limit and what it bounds; real paths are under 6


@dataclass(frozen=True, slots=True)
class Around:
    """A limit around a place, and the calls between them, outermost first."""

    limit: Limit
    path: tuple[tuple[ast.Call, str], ...] = ()  # the call, and the name of the function that it calls


class Graph:
    """Answers for one module which limits hold around a place."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._entered: dict[Scope, tuple[Around, ...]] = {}
        self._busy: set[Scope] = set()

    def around(self, node: ast.AST, scope: Scope) -> tuple[Around, ...]:
        """Every limit around `node`, the nearest first."""
        lexical = tuple(Around(limit) for limit in limits.lexical(node, scope, self._module))
        function = scope.enclosing_function()
        return lexical if function is None else lexical + self.around_function(function)

    def around_function(self, function: Scope) -> tuple[Around, ...]:
        """Every limit that holds while `function` runs: on it, and around its callers."""
        known = self._entered.get(function)
        if known is not None:
            return known
        if function in self._busy or len(self._busy) > _FARTHEST:
            return ()
        self._busy.add(function)
        try:
            found = [Around(limit) for limit in limits.on_function(function, self._module)]
            for call, scope in self._module.callers(function):
                for outer in self.around(call, scope):
                    found.append(replace(outer, path=(*outer.path, (call, function.name))))
        finally:
            self._busy.discard(function)
        if not self._busy:
            self._entered[function] = tuple(found)
        return tuple(found)

    def bound(self, node: ast.AST, scope: Scope) -> str | None:
        """What bounds the caller at `node`, in words; None where nothing is in sight."""
        function = scope.enclosing_function()
        budget = self._module.budgets.in_scope(node, scope)
        if budget:
            return f"the budget `{budget}`"
        while function is not None:
            for parameter in function.parameters():
                if any(word in parameter.arg.lower() for word in _TIMEOUT_WORDS):
                    return f"the parameter `{parameter.arg}`"
            function = function.parent.enclosing_function() if function.parent else None
        for around in self.around(node, scope):
            return around.limit.label
        return None

    def caller_with_budget(self, function: Scope) -> tuple[tuple[ast.Call, str], ...] | None:
        """The calls from a function of the file that has a budget down to `function`; None where none has."""
        pending: list[tuple[Scope, tuple[tuple[ast.Call, str], ...]]] = [(function, ())]
        seen: set[Scope] = set()
        while pending:
            current, path = pending.pop(0)
            if current in seen or len(path) > _FARTHEST:
                continue
            seen.add(current)
            for call, scope in self._module.callers(current):
                longer = ((call, current.name), *path)
                if self._module.budgets.in_scope(call, scope):
                    return longer
                above = scope.enclosing_function()
                if above is not None:
                    pending.append((above, longer))
        return None


__all__ = ["BUDGET", "Around", "Graph"]
