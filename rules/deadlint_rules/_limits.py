"""What the rules about nested limits say alike: numbers, and the path from an outer limit to an inner one."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from deadlint.graph import Around, Step
from deadlint.index.amounts import duration
from deadlint.index.budgets import is_budget
from deadlint.index.candidates import parse_where
from deadlint.index.limits import Limit
from deadlint.index.scopes import Scope
from deadlint.model import Constant, Related
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


def amount(limit: Limit) -> str:
    """The seconds of a limit in words; `default 900 s (of `WARP_LIMIT`)` where a setting may give others."""
    said = seconds(limit.seconds or 0.0)
    return f"default {said} (of {limit.default})" if limit.default else said


def tightest(found: Iterable[Around]) -> Around | None:
    """The shortest of the limits that are known, the nearest of equal ones."""
    known = [a for a in found if a.limit.seconds is not None and a.limit.seconds > 0]
    return min(known, key=lambda a: (a.limit.seconds or 0.0, len(a.path)), default=None)


def is_capped(site: Site) -> bool:
    """Whether a helper's `want` is no more than what a budget has left: one that it is given, or that is entered.

    One that is only in scope does not count: a helper finds by itself what `with budget:` made current.
    """
    if not site.name.startswith("deadlint_budget.") or site.name == BUDGET_OF:
        return False
    given = site.argument("budget")
    if not given.absent and given.constant is None:
        return True
    return is_ambient(site)


def below_around(site: Site, name: str, value: str) -> Constant:
    """The constant that bounds a call: the configured one, or one of its own below a tighter limit around."""
    outer = min((a.limit.seconds for a in site.around if a.limit.seconds), default=None)
    number = duration(value)  # the configured text may be an expression
    if outer is None or site.function is None or number is None or number < outer:
        return Constant(name, value)
    # A fifth of the outer limit is left for the end of the work: a limit no shorter than it would never fire.
    return Constant(f"{site.function.name.strip('_').upper()}_{name}", f"{outer * 0.8:g}")


def route(around: Around) -> str:
    """The functions between an outer limit and what it bounds, in words: ` through `build` and `warp``."""
    names = [f"`{step.function}`" for step in around.path]
    return f", reached through {' → '.join(names)}" if names else ""


def places(around: Around, *, what: str = "the outer limit") -> tuple[Related, ...]:
    """The outer limit and each call on the way in, as related locations."""
    limit = around.limit
    long = f": {amount(limit)}" if limit.seconds is not None else ""
    outer = Related(limit.path, limit.span, f"{what}{long}, {limit.label}")
    return (outer, *(Related(s.path, s.span, f"calls `{s.function}`") for s in around.path))


def every_scope(module: Module) -> list[Scope]:
    """The module's scope and all those in it, with their calls and bindings filled in."""
    module.walker.walk_all(module.scope)
    return list(module.scope.everything())


def scopes_where(module: Module, words: frozenset[str]) -> list[Scope]:
    """The scopes of a module, of functions within functions those in whose source one of the words stands.

    Functions without one are not parsed for it: of these only the header is there.
    """
    parse_where(module.walker, module.source.text, words)
    module.walker.walk_parsed()
    return list(module.scope.known())


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
