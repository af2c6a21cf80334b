"""DL405: a function takes a budget, its caller has one, and does not pass it on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from deadlint.index import limits
from deadlint.index.budgets import is_budget
from deadlint.index.scopes import Scope
from deadlint.index.values import Attached, Function
from deadlint.model import Fix, Safety
from deadlint.region import parse_call, replace_call, rewritten
from deadlint.rule import Rule
from deadlint.site import PROJECT, Report, Site

from deadlint_rules._limits import HELPERS, is_ambient

# Where a helper takes its budget, if not by keyword alone.
_POSITIONS = {
    "deadlint_budget.statement_timeout": 1,
    "deadlint_budget.gdal_progress": 0,
    "deadlint_budget.atomic_output": 1,
}
_NAMES = frozenset({"budget", "_budget"})
_RUNNING = frozenset({"submit", "fn", "run", "__wrapped__"})


class BudgetNotForwarded(Rule):
    """A function takes a budget, its caller has one, and does not pass it on.

    ## What it does
    Looks at calls in a function that has a budget (a parameter, a local, `self.budget`): of functions of the project
    with an optional parameter for a budget, and of the helpers of `deadlint_budget`. A call that is given anything
    derived from the budget is clean, and so is one inside `with budget:`, where helpers find it by themselves.

    ## Why it is bad
    The chain breaks at this call. Everything below it runs with no budget or with a limit of its own, so it neither
    ends with its caller nor hears of its cancellation, and the signature says the opposite.

    ## Example
    ```python
    from deadlint_budget import Budget, run


    def warp(tile, budget: Budget | None = None):
        run(["gdalwarp", tile, "out.tif"], budget=budget)


    def build(tiles, budget: Budget):
        for tile in tiles:
            warp(tile)
    ```

    ## Use instead
    ```python
    from deadlint_budget import Budget, run


    def warp(tile, budget: Budget | None = None):
        run(["gdalwarp", tile, "out.tif"], budget=budget)


    def build(tiles, budget: Budget):
        for tile in tiles:
            warp(tile, budget=budget)
    ```

    ## Fix safety
    Unsafe: what ran without a bound now ends with the budget. With a `**mapping` or `*sequence` in the call, which may
    hold a budget already, nothing is reported.

    ## Options
    None.

    ## References
    - [The deadlint_budget guide](../budget.md)
    """

    code = "DL405"
    name = "budget-not-forwarded"
    since = "0.1.0"
    calls = HELPERS | {PROJECT}
    words = (("deadlint_budget",), ("Budget", "budget="), ("budget=None",))

    def concerns(self, function: Scope) -> bool:
        """It takes a budget that may be left out."""
        return any(
            (parameter.annotation is not None or parameter.arg in _NAMES)
            and function.default_of(parameter.arg) is not None
            for parameter in function.parameters()
        )

    def check(self, site: Site) -> Iterator[Report]:
        if site.name == PROJECT:
            for function in _called(site):
                parameter = _budget_parameter(function.scope, site)
                if parameter is not None and not _is_given(function, parameter, site):
                    yield from _report(site, f"`{function.scope.name}`", parameter)
                    return
        elif site.argument("budget", _POSITIONS.get(site.name)).absent:
            yield from _report(site, f"`{ast.unparse(site.call.func)}`", "budget")


def _report(site: Site, callee: str, parameter: str) -> Iterator[Report]:
    budget = site.budget
    if budget is None or site.spread or _mentions(site, budget) or is_ambient(site):
        return
    yield site.report(
        f"{callee} takes a budget, and the budget `{budget}` that is in scope here is not passed on",
        f"pass it: `{parameter}={budget}`",
        fix=partial(_fix, site, parameter, budget),
    )


def _fix(site: Site, parameter: str, budget: str) -> Fix:
    source = site.module.source
    call = rewritten(parse_call(source, site.call), add=[(parameter, budget)])
    return Fix("pass the budget on", Safety.UNSAFE, (replace_call(source, site.call, call),))


def _called(site: Site) -> Iterator[Function]:
    """The functions of the project that the call names itself: not one that it hands to a thread."""
    for value in site.values(site.call.func):
        match value:
            case Function():
                yield value
            case Attached(function=function, name=name) if name in _RUNNING:
                yield function


def _budget_parameter(scope: Scope, site: Site) -> str | None:
    """The optional parameter of a function that is a budget."""
    resolver = limits.home_of(scope, site.module).resolver
    for parameter in scope.parameters():
        annotation = parameter.annotation
        annotated = is_budget(resolver.annotated(annotation, scope.parent or scope))
        named = parameter.arg in _NAMES and (annotation is None or "Budget" in ast.unparse(annotation))
        if (annotated or named) and scope.default_of(parameter.arg) is not None:
            return parameter.arg
    return None


def _is_given(function: Function, parameter: str, site: Site) -> bool:
    return site.module.resolver.argument_for(function, parameter, site.call) is not None


def _mentions(site: Site, budget: str) -> bool:
    """Whether the call is given anything that the budget is part of."""
    given = (*site.call.args, *(k.value for k in site.call.keywords))
    return any(isinstance(n, ast.Name | ast.Attribute) and ast.unparse(n) == budget for g in given for n in ast.walk(g))
