"""What the rules about nested limits say alike: numbers, and the path from an outer limit to an inner one."""

from __future__ import annotations

from deadlint.graph import Around, Step
from deadlint.model import Related
from deadlint.site import Site

BUDGET_OF = "deadlint_budget.Budget.of"


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
