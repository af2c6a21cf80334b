"""One call, as a rule sees it: what is called, with what, where, and what is around it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deadlint import header
from deadlint.index.values import (
    UNKNOWN,
    Const,
    External,
    Mapping,
    Member,
    Partial,
    Value,
    Values,
    union,
)
from deadlint.model import Fix, Import, Level, Related, Safety

if TYPE_CHECKING:
    from deadlint.graph import Around
    from deadlint.index.module import Module
    from deadlint.index.scopes import Scope


# The name of a target that is a function of the file itself; `receiver` is that `Function`.
PROJECT = "<project>"


@dataclass(frozen=True, slots=True)
class Target:
    """Something external that a call may reach: its canonical name, and the object that it is a method of."""

    name: str
    receiver: Value | None = None
    partial: ast.Call | None = None  # the `functools.partial` that holds further arguments


@dataclass(frozen=True, slots=True)
class Argument:
    """What a call gives for a parameter.

    `values` is empty where the parameter is certainly not given, and holds `UNKNOWN` where that, or its value, is
    not known. `node` is its expression where that stands in the call itself.
    """

    values: Values = ()
    node: ast.expr | None = None

    @property
    def absent(self) -> bool:
        """Certainly not given."""
        return not self.values

    @property
    def unknown(self) -> bool:
        """Perhaps not given, or of a value that is not known."""
        return UNKNOWN in self.values

    @property
    def constant(self) -> Const | None:
        """The constant, where it is certain to be that one."""
        return self.values[0] if len(self.values) == 1 and isinstance(self.values[0], Const) else None


ABSENT = Argument()


@dataclass(frozen=True, slots=True)
class Report:
    """What a rule says about a place; the engine makes a `Finding` of it.

    `fix` is called only where fixes are wanted.
    """

    node: ast.expr | ast.stmt | ast.ExceptHandler
    message: str
    remedy: str
    level: Level = Level.DEFAULT
    related: tuple[Related, ...] = ()
    fix: Callable[[], Fix | None] | None = None


@dataclass(frozen=True, eq=False)
class Site:
    """A call to one of the names that a rule is interested in."""

    module: Module
    call: ast.Call
    scope: Scope
    targets: tuple[Target, ...]
    name: str = ""  # the target that brought the rule here

    @property
    def target(self) -> Target:
        """The target that brought the rule here."""
        return next((t for t in self.targets if t.name == self.name), self.targets[0])

    @property
    def function(self) -> Scope | None:
        """The function that the call stands in."""
        return self.scope.enclosing_function()

    def values(self, node: ast.expr) -> Values:
        """What an expression that stands beside the call may be."""
        return self.module.resolver.evaluate(node, self.scope)

    def argument(self, name: str, position: int | None = None) -> Argument:
        """What the call gives for the parameter `name`; `position` (from 0) where it may be positional."""
        calls = [self.call]
        partial = self.target.partial
        given = self._positional(position)
        if given is not None:
            return given
        if partial is not None:
            calls.append(partial)
        maybe: Values = ()
        for call in calls:
            for keyword in call.keywords:
                if keyword.arg == name:
                    return Argument(self._values_of(keyword.value, call), keyword.value)
                if keyword.arg is None:
                    maybe = union(maybe, self._spread(keyword.value, name, call))
        return Argument(maybe) if maybe else ABSENT

    def _values_of(self, node: ast.expr, call: ast.Call) -> Values:
        scope = self.scope if call is self.call else self.module.walker.scope_of.get(call, self.scope)
        return self.module.resolver.evaluate(node, scope)

    def _positional(self, position: int | None) -> Argument | None:
        if position is None:
            return None
        args = list(self.call.args)
        if self.target.partial is not None:
            args = [*self.target.partial.args[1:], *args]
        for i, arg in enumerate(args[: position + 1]):
            if isinstance(arg, ast.Starred):
                return Argument((UNKNOWN,))
            if i == position:
                return Argument(self.values(arg), arg)
        return None

    def _spread(self, node: ast.expr, name: str, call: ast.Call) -> Values:
        """What `**node` gives for `name`."""
        found: list[Values] = []
        for value in self._values_of(node, call):
            match value:
                case Mapping():
                    found.append(value.get(name) or ())
                case Const(value=None):
                    continue
                case _:
                    found.append((UNKNOWN,))
        return union(*found)

    @property
    def spread(self) -> bool:
        """Whether the call has a `**mapping` or `*sequence`, whatever is known about it."""
        return any(k.arg is None for k in self.call.keywords) or any(
            isinstance(a, ast.Starred) for a in self.call.args
        )

    # --- where it stands -----------------------------------------------------------------------------------

    def ancestors(self) -> Iterator[ast.AST]:
        """The nodes around the call, innermost first, up to and without the enclosing `def`."""
        yield from self.module.ancestors(self.call)

    @property
    def statement(self) -> ast.stmt:
        """The statement that the call stands in."""
        return self.module.statement(self.call)

    @property
    def parent(self) -> ast.AST | None:
        """The node that the call is a direct part of, `await` left out."""
        parent = self.module.walker.parents.get(self.call)
        while isinstance(parent, ast.Await):
            parent = self.module.walker.parents.get(parent)
        return parent

    @property
    def value_used(self) -> bool:
        """Whether something is done with what the call returns."""
        return not isinstance(self.parent, ast.Expr)

    @property
    def budget(self) -> str | None:
        """The expression of a budget that is in scope here: a parameter, a local, `self.budget`."""
        return self.module.budgets.in_scope(self.call, self.scope)

    @property
    def around(self) -> tuple[Around, ...]:
        """The limits around the call, within the function, on it, and around its callers."""
        return self.module.graph.around(self.call, self.scope)

    @property
    def bound(self) -> str | None:
        """What bounds the caller here, in words: a limit around, a timeout parameter, a budget; else None."""
        return self.module.graph.bound(self.call, self.scope)

    # --- repairing -----------------------------------------------------------------------------------------

    def helper(self, name: str) -> tuple[str, Import]:
        """The name under which fixed code calls the runtime helper `name`, and the import that it needs."""
        module = self.module
        wanted = header.free_import(module.tree, module.bound_names, module.settings.helpers, name)
        return wanted.alias or wanted.name, wanted

    @property
    def helper_safety(self) -> Safety:
        """How safe a fix is at best that imports a helper: the project may not have the package."""
        return Safety.SAFE if self.module.settings.helpers_are_own else Safety.UNSAFE

    # --- saying something ----------------------------------------------------------------------------------

    def report(
        self,
        message: str,
        remedy: str,
        *,
        level: Level = Level.DEFAULT,
        node: ast.expr | ast.stmt | ast.ExceptHandler | None = None,
        related: tuple[Related, ...] = (),
        fix: Callable[[], Fix | None] | None = None,
    ) -> Report:
        """A report about this call, or about `node`."""
        return Report(node or self.call, message, remedy, level, related, fix)

    def related(self, node: ast.expr | ast.stmt | ast.ExceptHandler, message: str) -> Related:
        """Another place in the same file."""
        return Related(self.module.source.path, self.module.span(node), message)

    def source(self, node: ast.expr | ast.stmt) -> str:
        """The source text of a node."""
        return self.module.source.segment(node)


def targets_of(values: Values, partial: ast.Call | None = None) -> Iterator[Target]:
    """The external things that a call of one of `values` may reach."""
    for value in values:
        match value:
            case External(name=name):
                yield Target(name, None, partial)
            case Member(name=name, receiver=receiver):
                yield Target(name, receiver, partial)
            case Partial(function=function, call=call):
                yield from targets_of((function,), call)


