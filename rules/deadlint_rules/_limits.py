"""What the rules about nested limits say alike: numbers, and the path from an outer limit to an inner one."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from deadlint.graph import Around, Step
from deadlint.index.budgets import is_budget
from deadlint.index.scopes import Scope
from deadlint.model import Related
from deadlint.site import Site

if TYPE_CHECKING:
    from deadlint.index.module import Module

BUDGET_OF = "deadlint_budget.Budget.of"
# What of `deadlint_budget` takes a budget, and looks for the ambient one where none is given.
HELPERS = frozenset(
    f"deadlint_budget.{name}"
    for name in (
        "run", "check_output", "communicate", "wait", "run_async", "run_gdal", "gdal_progress", "statement_timeout",
        "atomic_output",
        "http.request", "http.get", "http.options", "http.head", "http.post", "http.put", "http.patch", "http.delete",
        "http.urlopen",
    )
)  # fmt: skip


def budget_above(site: Site) -> tuple[str | None, tuple[Step, ...]] | None:
    """The budget that a call already has: its expression where it is in scope, else the calls from a caller's.

    None where there is no budget in sight.
    """
    here = site.budget
    if here is not None:
        return here, ()
    function = site.function
    path = site.module.graph.caller_with_budget(function) if function is not None else None
    return None if path is None else (None, path)


def is_ambient(site: Site) -> bool:
    """Whether a `with` around the call holds a budget, or a scope of one: `with budget:`, `budget.scope()`."""
    withs = (node for node in site.ancestors() if isinstance(node, ast.With | ast.AsyncWith))
    entered = (item.context_expr for node in withs for item in node.items)
    return any(
        is_budget(site.values(node))
        or any(isinstance(n, ast.Name | ast.Attribute) and "budget" in ast.unparse(n).lower() for n in ast.walk(node))
        for node in entered
        if node is not site.call
    )


def seconds(value: float) -> str:
    """A number of seconds as people write it: `900 s`, `1,200 s`, `0.5 s`."""
    return f"{value:,.10g} s" if value < 1e15 else f"{value:g} s"


def route(around: Around) -> str:
    """The functions between an outer limit and what it bounds, in words: ` through `build` and `warp``."""
    names = [f"`{step.function}`" for step in around.path]
    return f", reached through {' → '.join(names)}" if names else ""


def places(around: Around, *, what: str = "the outer limit") -> tuple[Related, ...]:
    """The outer limit and each call on the way in, as related locations."""
    limit = around.limit
    amount = f": {seconds(limit.seconds)}" if limit.seconds is not None else ""
    outer = Related(limit.path, limit.span, f"{what}{amount}, {limit.label}")
    return (outer, *(Related(s.path, s.span, f"calls `{s.function}`") for s in around.path))


def every_scope(module: Module) -> list[Scope]:
    """The module's scope and all those in it, with their calls and bindings filled in."""
    module.walker.walk_all(module.scope)
    found, pending = [], [module.scope]
    while pending:
        scope = pending.pop()
        found.append(scope)
        pending.extend((*scope.functions, *scope.classes))
    return found


def may_be_none(budget: str, scope: Scope | None) -> bool:
    """Whether a budget in scope may be missing: an optional parameter, or the ambient one, None outside any."""
    while scope is not None and budget not in scope.bindings:
        scope = scope.parent
    if scope is None:
        return False
    binding = scope.bindings[budget][-1]
    if binding.kind == "parameter":
        default = scope.default_of(budget)
        optional = binding.annotation is not None and "None" in ast.unparse(binding.annotation)
        return optional or isinstance(default, ast.Constant)
    return binding.value is not None and "current_budget" in ast.unparse(binding.value)
