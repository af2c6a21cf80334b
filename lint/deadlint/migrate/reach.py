"""What an entry point reaches, and how each function on the way comes by the budget."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto

from deadlint.index.scopes import Scope
from deadlint.migrate.names import FunctionName, name_of
from deadlint.migrate.reasons import Reason, Reasons
from deadlint.migrate.sources import Sources
from deadlint.migrate.uses import Use, Uses


class Means(Enum):
    """How a function comes by the budget."""

    MADE = auto()  # the entry makes it
    PARAMETER = auto()  # it gets a parameter for it
    GIVEN = auto()  # it has a parameter or an attribute for it already
    AROUND = auto()  # it stands in a function that has it
    LEFT = auto()  # its signature is not touched


@dataclass(eq=False)
class Reached:
    """One function: how it comes by the budget, what it is called there, and who runs it."""

    scope: Scope
    means: Means
    budget: str = ""  # the expression of the budget in it
    parameter: str = ""  # the keyword that it takes the budget by
    required: bool = True  # whether every caller has a budget to pass
    reason: Reason | None = None
    uses: list[Use] = field(default_factory=list)  # in functions that have the budget

    @property
    def name(self) -> FunctionName:
        """The lasting name."""
        return name_of(self.scope)


@dataclass(eq=False)
class Reach:
    """The functions that the entry reaches, the entry first, each before what it calls."""

    entry: Reached
    by_scope: dict[Scope, Reached]
    uses: Uses

    @property
    def holders(self) -> tuple[Reached, ...]:
        """Those that have the budget."""
        return tuple(one for one in self.by_scope.values() if one.means is not Means.LEFT)

    @property
    def left(self) -> tuple[Reached, ...]:
        """Those whose signature is not touched."""
        return tuple(one for one in self.by_scope.values() if one.means is Means.LEFT)

    def below(self, one: Reached) -> Iterator[tuple[Use, Reached]]:
        """What a function that has the budget runs, in the order of the source."""
        for use in uses_in(one.scope, self.uses):
            callee = self.by_scope.get(use.function)
            if callee is not None:
                yield use, callee

    def beyond(self) -> dict[Scope, Reached]:
        """What only functions that are left reach, and through whom."""
        found: dict[Scope, Reached] = {}
        for one in self.left:
            pending = [one.scope]
            while pending:
                for use in uses_in(pending.pop(), self.uses):
                    if use.function not in self.by_scope and use.function not in found:
                        found[use.function] = one
                        pending.append(use.function)
        return found


def uses_in(function: Scope, uses: Uses) -> list[Use]:
    """The uses that stand in a function, and in those that are nested in it."""
    found = list(uses.by_caller.get(function, ()))
    for inner in function.functions:
        found += uses_in(inner, uses)
    return sorted(found, key=lambda use: (use.node.lineno, use.node.col_offset))


def reach(
    entry: Scope, sources: Sources, uses: Uses, reasons: Reasons, wanted: Collection[FunctionName] | None = None
) -> Reach:
    """What `entry` reaches; with `wanted`, only those functions take the budget."""
    first = Reached(entry, Means.MADE)
    found: dict[Scope, Reached] = {entry: first}
    pending = [first]
    while pending:
        one = pending.pop(0)
        for use in uses_in(one.scope, uses):
            if wanted is not None and name_of(use.function) not in wanted:
                continue
            callee = found.get(use.function)
            if callee is None:
                callee = found[use.function] = _reached(use.function, found, sources, reasons)
                if callee.means is not Means.LEFT:
                    pending.append(callee)
            callee.uses.append(use)
    result = Reach(first, found, uses)
    _settle(result, reasons)
    return result


def _reached(function: Scope, found: dict[Scope, Reached], sources: Sources, reasons: Reasons) -> Reached:
    above = function.parent.enclosing_function() if function.parent is not None else None
    module = sources.module(function.module.path or "")
    definition = function.definition
    assert isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef)
    present = module.budgets.in_scope(definition.body[0], function) if module is not None else None
    if present in {parameter.arg for parameter in function.parameters()}:
        return Reached(function, Means.GIVEN, present or "", parameter=present or "")
    if present and "." in present:
        return Reached(function, Means.GIVEN, present)
    while above is not None:
        if above in found and found[above].means is not Means.LEFT:
            return Reached(function, Means.AROUND)
        above = above.parent.enclosing_function() if above.parent is not None else None
    reason = reasons.against(function)
    return Reached(function, Means.LEFT if reason else Means.PARAMETER, reason=reason)


def _settle(result: Reach, reasons: Reasons) -> None:
    """Say who has the budget for certain: whoever may be called without one may hand on None as well."""
    changed = True
    while changed:
        changed = False
        for one in result.holders:
            if one.required and not _certain(result, one, reasons):
                one.required, changed = False, True


def _certain(result: Reach, one: Reached, reasons: Reasons) -> bool:
    """Whether a function has the budget whoever calls it, by what is known of its callers so far."""
    match one.means:
        case Means.GIVEN if one.parameter:
            return one.scope.default_of(one.parameter) is None
        case Means.AROUND:
            outer = around(one, result)
            return outer is None or outer.required
        case Means.PARAMETER:
            if result.uses.mentions.get(one.scope) or reasons.is_exported(one.scope):
                return False
            if one.scope.name in result.uses.unknown_names:
                return False  # one of the calls that nobody can follow may be of this
            holders = [holder(use, result) for use in result.uses.by_function.get(one.scope, ())]
            return all(caller is not None and caller.required for caller in holders)
    return True


def around(one: Reached, result: Reach) -> Reached | None:
    """The function with the budget that a nested one stands in."""
    scope = one.scope.parent
    while scope is not None:
        outer = result.by_scope.get(scope)
        if outer is not None and outer.means is not Means.LEFT:
            return outer
        scope = scope.parent
    return None


def holder(use: Use, result: Reach) -> Reached | None:
    """The function that passes its budget on where `use` stands; None where none is at hand."""
    scope = use.caller
    while scope is not None:
        one = result.by_scope.get(scope)
        if one is not None and one.means is not Means.LEFT:
            return one
        scope = scope.parent.enclosing_function() if scope.parent is not None else None
    return None
