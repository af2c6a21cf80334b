"""DL404: a literal limit where a budget is in scope."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial

from deadlint.index import limits
from deadlint.index.values import Parameter
from deadlint.model import Edit, Fix, Level, Safety
from deadlint.rule import Rule
from deadlint.site import Report, Site

from deadlint_rules._limits import is_ambient, seconds

_CALLS = frozenset(name for name in limits.INNER if not name.startswith("deadlint_budget."))
_POINTS = frozenset({"asyncio.timeout_at"})
# Scopes and waits take any number of seconds; requests and children have rules of their own that rewrite the call.
_SLICED = frozenset(
    {
        "asyncio.timeout", "asyncio.wait_for", "async_timeout.timeout", "anyio.fail_after", "anyio.move_on_after",
        "trio.fail_after", "trio.move_on_after",
    }
)  # fmt: skip
_PARAMETER = re.compile(r"_?((read|request|total|max|job|task)_)?(timeout|deadline|time_limit)(_s|_seconds)?")


class ConstantLimitUnderBudget(Rule):
    """A literal limit where a budget is in scope.

    ## What it does
    Reports a limit that is a plain number, written there or in a constant, on a request, a child process, a scope or
    a wait, in a function that has a budget (a parameter, a local, `self.budget`). `min(30, budget.remaining())` and
    `budget.slice(30)` are derived and clean, as is a limit inside `budget.scope()` and one in clean-up code.
    Strict: where the function has a parameter for a timeout or deadline instead, which this call does not use.

    ## Why it is bad
    The number was chosen without knowing what is left. With 5 s to go a limit of 30 s outlasts the budget, which then
    ends somewhere else, and with the wrong layer named; and whoever gives the function more or less time changes
    nothing here.

    ## Example
    ```python
    import asyncio

    from deadlint_budget import Budget


    async def fetch(tiles, budget: Budget):
        async with asyncio.timeout(30):
            await tiles()
    ```

    ## Use instead
    ```python
    import asyncio

    from deadlint_budget import Budget


    async def fetch(tiles, budget: Budget):
        async with asyncio.timeout(budget.slice(30)):
            await tiles()
    ```

    ## Fix safety
    Unsafe: the limit can be shorter than before, and `slice` raises `DeadlineExceeded` where nothing is left. Scopes
    and waits are fixed here; for requests and children see DL202 and DL101, whose fixes pass the budget on.

    ## Options
    None.

    ## References
    - [The deadlint_budget guide](../budget.md)
    """

    code = "DL404"
    name = "constant-limit-under-budget"
    since = "0.1.0"
    calls = _CALLS - _POINTS
    words = (
        *(("budget", limit) for limit in ("timeout", "wait_for", "fail_after", "move_on_after")),
        *(("timeout=", library) for library in ("requests.", "subprocess.", "urlopen(", "httpx.", "aiohttp")),
        ("timeout", "asyncio.wait_for("),
        ("timeout", "asyncio.timeout("),
        ("deadline", "wait_for("),
    )

    def check(self, site: Site) -> Iterator[Report]:
        form = limits.INNER[site.name]
        argument = site.argument(form.keyword, form.position)
        value = limits.seconds_of(argument, form.scale)
        if not value or argument.node is None or any(isinstance(v, Parameter) for v in argument.values):
            return
        if _cleans_up(site) or is_ambient(site):
            return
        budget = site.budget
        if budget is not None:
            yield site.report(
                f"the limit of {seconds(value)} on `{ast.unparse(site.call.func)}` knows nothing of the budget"
                f" `{budget}` that is in scope here",
                f"derive it: `{budget}.slice({site.source(argument.node)})`",
                fix=partial(_fix, site, argument.node, budget) if site.name in _SLICED else None,
            )
        elif (parameter := _parameter(site)) is not None:
            yield site.report(
                f"the limit of {seconds(value)} on `{ast.unparse(site.call.func)}` knows nothing of the parameter"
                f" `{parameter}`",
                f"derive it from `{parameter}`",
                level=Level.STRICT,
            )


def _fix(site: Site, node: ast.expr, budget: str) -> Fix:
    start, end = site.module.source.extent(node)
    edits = (Edit(start, start, f"{budget}.slice("), Edit(end, end, ")"))
    return Fix("take a slice of the budget", Safety.UNSAFE, edits)


def _parameter(site: Site) -> str | None:
    """A parameter of the function that is a limit by its name."""
    function = site.function
    for parameter in function.parameters() if function is not None else ():
        if _PARAMETER.fullmatch(parameter.arg):
            return parameter.arg
    return None


def _cleans_up(site: Site) -> bool:
    """Whether the call stands in a handler or a `finally`: what is left of a budget is no measure there."""
    inner: ast.AST = site.call
    for node in site.ancestors():
        if isinstance(node, ast.ExceptHandler) or (isinstance(node, ast.Try) and inner in node.finalbody):
            return True
        inner = node
    return False
