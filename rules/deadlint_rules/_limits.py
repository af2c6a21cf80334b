"""What the rules about nested limits say alike: numbers, and the path from an outer limit to an inner one."""

from __future__ import annotations

import ast

from deadlint.graph import Around
from deadlint.model import Related
from deadlint.site import Site

BUDGET_OF = "deadlint_budget.Budget.of"
Path = tuple[tuple[ast.Call, str], ...]


def budget_above(site: Site) -> tuple[str | None, Path] | None:
    """The budget that a call already has: its expression where it is in scope, else the calls from a caller's.

    None where there is no budget in sight.
    """
    here = site.budget
    if here is not None:
        return here, ()
    function = site.function
    path = site.module.graph.caller_with_budget(function) if function is not None else None
    return None if path is None else (None, path)


def seconds(value: float) -> str:
    """A number of seconds as people write it: `900 s`, `1,200 s`, `0.5 s`."""
    return f"{value:,.10g} s" if value < 1e15 else f"{value:g} s"


def route(around: Around) -> str:
    """The functions between an outer limit and what it bounds, in words: ` through `build` and `warp``."""
    names = [f"`{name}`" for _, name in around.path]
    return f", reached through {' → '.join(names)}" if names else ""


def places(site: Site, around: Around, *, what: str = "the outer limit") -> tuple[Related, ...]:
    """The outer limit and each call on the way in, as related locations."""
    limit = around.limit
    amount = f": {seconds(limit.seconds)}" if limit.seconds is not None else ""
    outer = site.related(limit.node, f"{what}{amount}, {limit.label}")
    return (outer, *(site.related(call, f"calls `{name}`") for call, name in around.path))
