"""Which limits and budgets hold around a place: in its function, on its function, and around whoever calls it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from deadlint.index import limit_forms, limits
from deadlint.index.candidates import end_of
from deadlint.index.known import canonical
from deadlint.index.limits import Limit
from deadlint.index.values import Class
from deadlint.model import Span

if TYPE_CHECKING:
    from deadlint.index.module import Module
    from deadlint.index.scopes import Scope

_TIMEOUT_WORDS = ("timeout", "deadline", "time_limit", "max_time", "budget")
_FARTHEST = 12  # calls between a limit and what it bounds; real paths are under 6
_MOST = 4  # limits of other files that are kept for one function, the shortest: rules compare with the tightest


@dataclass(frozen=True, slots=True)
class Step:
    """A call on the way from a limit to what it bounds: where it stands, and the function that it calls."""

    path: str
    span: Span
    function: str
    direct: bool = True  # it runs where it is called: not in a thread, nor as a task of its own
    given: limits.Given = ()  # what the call gives for its parameters, where that is a number or a caller's parameter


@dataclass(frozen=True, slots=True)
class Around:
    """A limit around a place, and the calls between them, outermost first."""

    limit: Limit
    path: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """What the callers of a function in other files have around their calls."""

    limits: tuple[Around, ...] = ()
    budget: tuple[Step, ...] | None = None  # the calls from one that has a budget at hand

    def joined(self, other: Entry) -> Entry:
        """What both say, the shortest limits first and no more than a few."""
        merged = sorted(
            dict.fromkeys((*self.limits, *other.limits)),
            key=lambda a: (a.limit.seconds is None, a.limit.seconds or 0.0, len(a.path), a.limit.path, a.limit.span),
        )
        return Entry(tuple(merged[:_MOST]), self.budget if self.budget is not None else other.budget)


# What the source of a function holds that puts a limit around a call, or hands one over and waits for it, or is
# decorated within.
_LIMITING = (
    "imeout", "wait_for", "_after", "alarm", "setitimer", "DAG", "python_callable", "submit", "apply_async", ".delay",
    "run_coroutine_threadsafe", "@",
)  # fmt: skip

_NAMED = limit_forms.SCOPES.keys() | limit_forms.WAITING.keys() | limit_forms.ALARMS.keys()

# Of the functions of one file, by qualified name.
Entries = dict[str, Entry]


@dataclass(eq=False)
class Graph:
    """Answers for one module which limits hold around a place; `entries` is what other files add."""

    module: Module
    entries: Entries = field(default_factory=dict)
    _entered: dict[Scope, tuple[Around, ...]] = field(default_factory=dict)
    _busy: set[Scope] = field(default_factory=set)
    _budgets: dict[Scope, tuple[Step, ...] | None] = field(default_factory=dict)

    def around(self, node: ast.AST, scope: Scope) -> tuple[Around, ...]:
        """Every limit around `node`, the nearest first."""
        lexical = tuple(Around(limit) for limit in limits.lexical(node, scope, self.module))
        function = scope.enclosing_function()
        return lexical if function is None else lexical + self.around_function(function)

    def _handing(self, call: ast.Call, scope: Scope) -> tuple[Around, ...]:
        """Every limit around what a call runs: that of an operator, which is handed a function, and those around it."""
        return (*(Around(limit) for limit in limits.of_operator(call, scope, self.module)), *self.around(call, scope))

    def around_function(self, function: Scope) -> tuple[Around, ...]:
        """Every limit that holds while `function` runs: on it, and around its callers."""
        if function not in self._under_something:
            return ()
        known = self._entered.get(function)
        if known is not None:
            return known
        if function in self._busy or len(self._busy) > _FARTHEST:
            return ()
        self._busy.add(function)
        try:
            found = [Around(limit) for limit in limits.on_function(function, self.module)]
            for call, scope in self.module.callers(function):
                around = self._handing(call, scope)
                if around:
                    step = self._step(call, function)
                    found += [replace(outer, path=(*outer.path, step)) for outer in around]
        finally:
            self._busy.discard(function)
        found += self._entry(function).limits
        if not self._busy:
            self._entered[function] = tuple(found)
        return tuple(found)

    @cached_property
    def _under_something(self) -> set[Scope]:
        """The functions that a limit holds on or around, found from the limits down: most functions have none, and to
        look for the callers of each takes a tenth of a run.
        """
        calls = self._calls_by_limits()
        found = {f for f in self._functions() if f.qualified_name in self.entries or self._limited(f)}
        pending = [*found, *self._called_under_a_limit(calls)]
        while pending:
            function = pending.pop()
            found.add(function)
            below = (f for call, scope in _calls_in(function) for f in self._own(call, scope))
            pending += {f for f in below if f not in found}
        return found

    def _calls_by_limits(self) -> tuple[ast.Call, ...]:
        """The calls of the functions that may hold a limit; the others are not even parsed for it."""
        if self.entries or self.module.hands_limits:
            return self.module.calls
        aliases = (
            name
            for name, bindings in self.module.scope.bindings.items()
            if any(b.kind == "import" and canonical(b.target) in _NAMED for b in bindings)
        )
        return self.module.calls_where((*_LIMITING, *aliases))

    def _calls_by_limits_and_below(self) -> tuple[ast.Call, ...]:
        """The calls that a limit or a budget may hold around."""
        if self.module.budgets.possible:
            return self.module.calls
        functions = self._under_something
        below = (call for function in functions for call, _ in _calls_in(function))
        return tuple(sorted({*self._calls_by_limits(), *below}, key=end_of))

    def _functions(self) -> Iterator[Scope]:
        """The functions of the file but for those within functions that nothing asked about."""
        return (scope for scope in self.module.scope.known() if scope.kind == "function")

    def _limited(self, function: Scope) -> bool:
        return any(True for _ in limits.on_function(function, self.module))

    def _called_under_a_limit(self, calls: tuple[ast.Call, ...]) -> Iterator[Scope]:
        """The functions of the file that are called inside a `with` or a `wait_for` of a limit, or by an operator."""
        for call in calls:
            scope = self.module.walker.scope_of[call]
            if any(True for _ in limits.lexical(call, scope, self.module)) or any(
                True for _ in limits.of_operator(call, scope, self.module)
            ):
                yield from self._own(call, scope)

    def _own(self, call: ast.Call, scope: Scope) -> Iterator[Scope]:
        """The functions of the file that a call runs."""
        return (called for called in self._run_by(call, scope) if called.module is self.module.scope)

    def _run_by(self, call: ast.Call, scope: Scope) -> Iterator[Scope]:
        """The functions that a call runs, of whatever file; of a class its `__init__`."""
        for function in (*self.module.run_by(call, scope), *self.module.run_by_operator(call, scope)):
            yield function.scope
        for value in self.module.resolver.evaluate(call.func, scope):
            match value:
                case Class(scope=made):
                    yield from (method for method in made.functions if method.name == "__init__")

    def _entry(self, function: Scope) -> Entry:
        return self.entries.get(function.qualified_name, Entry())

    def _step(self, call: ast.Call, function: Scope) -> Step:
        direct = self.module.runs_directly(call, function)
        given = limits.given(call, function, self.module)
        return Step(self.module.source.path, self.module.span(call), function.name, direct, given)

    def bound(self, node: ast.AST, scope: Scope) -> str | None:
        """What bounds the caller at `node`, in words; None where nothing is in sight."""
        function = scope.enclosing_function()
        budget = self.module.budgets.in_scope(node, scope)
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

    def caller_with_budget(self, function: Scope) -> tuple[Step, ...] | None:
        """The calls from a function that has a budget down to `function`; None where none has."""
        pending: list[tuple[Scope, tuple[Step, ...]]] = [(function, ())]
        seen: set[Scope] = set()
        while pending:
            current, path = pending.pop(0)
            if current in seen or len(path) > _FARTHEST:
                continue
            seen.add(current)
            elsewhere = self._entry(current).budget
            if elsewhere is not None:
                return (*elsewhere, *path)
            for call, scope in self.module.callers(current):
                longer = (self._step(call, current), *path)
                if self.module.budgets.in_scope(call, scope):
                    return longer
                above = scope.enclosing_function()
                if above is not None:
                    pending.append((above, longer))
        return None

    def exits(self) -> Iterator[tuple[str, str, Entry]]:
        """What this file has around its calls of functions of other files: their path, qualified name, and that."""
        for call in self._calls_by_limits_and_below():
            scope = self.module.walker.scope_of[call]
            outer, budget = self._handing(call, scope), self._budget_above(call, scope)
            if not outer and budget is None:
                continue  # most calls; to find out what they run costs more than to ask what is around them
            for called in self._run_by(call, scope):
                if called.module is not self.module.scope and called.module.path is not None:
                    entry = self._handed(self._step(call, called), outer, budget)
                    if entry.limits or entry.budget is not None:
                        yield called.module.path, called.qualified_name, entry

    def _budget_above(self, call: ast.Call, scope: Scope) -> tuple[Step, ...] | None:
        """The calls from a function that has a budget down to the one that `call` stands in; None where none has."""
        function = scope.enclosing_function()
        if function is None:
            return None
        if self.module.budgets.in_scope(call, scope):
            return ()
        if function not in self._budgets:
            self._budgets[function] = self.caller_with_budget(function)
        return self._budgets[function]

    @staticmethod
    def _handed(step: Step, outer: tuple[Around, ...], budget: tuple[Step, ...] | None) -> Entry:
        """What is around a call, as what it calls has it; not what came round a circle to the same call."""
        limits = tuple(
            replace(a, path=(*a.path, step)) for a in outer if len(a.path) < _FARTHEST and step not in a.path
        )
        if budget is not None and (len(budget) >= _FARTHEST or step in budget):
            budget = None
        return Entry(limits, None if budget is None else (*budget, step)).joined(Entry())


def _calls_in(function: Scope) -> Iterator[tuple[ast.Call, Scope]]:
    """The calls that a function makes itself, each with its scope."""
    pending = [function]
    while pending:
        scope = pending.pop()
        yield from ((call, scope) for call in scope.calls)
        pending += (inner for inner in (*scope.functions, *scope.classes) if inner.kind != "function")
