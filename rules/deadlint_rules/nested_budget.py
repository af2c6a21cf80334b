"""DL402: a second budget, or a second deadline made by hand, where there is a budget already."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial

from deadlint.model import Fix, Related, Safety
from deadlint.region import code, parse_call, rewritten, smallest, with_keyword_name
from deadlint.rule import Rule
from deadlint.site import Report, Site

from deadlint_rules._limits import BUDGET_OF, budget_above, may_be_none

_CLOCKS = frozenset({"time.monotonic", "time.time", "time.perf_counter"})
_DEADLINE = re.compile(r"deadline|(^|_)(until|end|ends|stop|give_up|expir\w*|timeout_at|end_time|stop_at)(_|$)")


class NestedBudget(Rule):
    """A budget is made where the call tree already has one.

    ## What it does
    Reports `Budget.of(…)`, and a deadline made by hand (`deadline = time.monotonic() + 60`), in a function that has
    a budget (a parameter, a local, `self.budget`), or that is called from one that has. `Budget.detached(reason)`
    is for work that is meant to outlive its caller and is never reported.

    ## Why it is bad
    The second budget knows nothing of the first: it neither ends when that ends nor is cancelled with it. A task
    with an hour of its own inside a job that has ten minutes left runs on after the job was given up, and its
    `DeadlineExceeded` names the wrong layer.

    ## Example
    ```python
    from deadlint_budget import Budget


    def build_tile(tile, budget: Budget):
        inner = Budget.of(3600)
        return inner
    ```

    ## Use instead
    ```python
    from deadlint_budget import Budget


    def build_tile(tile, budget: Budget):
        inner = budget.limit("inner", 3600)
        return inner
    ```
    A child made with `limit` never outlives its parent, and shares its cancellation.

    ## Fix safety
    Unsafe: the child ends with the parent, so work that used to go on is stopped. There is no fix where the budget
    belongs to a caller, since it has to be handed down first, and none for deadlines made by hand.

    ## Options
    None.

    ## References
    - [The deadlint_budget guide](../budget.md)
    """

    code = "DL402"
    name = "nested-budget"
    since = "0.1.0"
    calls = frozenset({BUDGET_OF, "deadlint_budget.Budget.until"}) | _CLOCKS
    words = (("Budget.of",), ("Budget.until",), ("Budget", "monotonic"), ("budget", "time.time"))

    def check(self, site: Site) -> Iterator[Report]:
        by_hand = site.name in _CLOCKS
        if by_hand and not _is_deadline(site):
            return
        above = budget_above(site)
        if above is None:
            return
        budget, path = above
        what = "a deadline made by hand" if by_hand else f"`{site.source(site.call)}`"
        if budget is not None:
            yield site.report(
                f"{what} knows nothing of the budget `{budget}` that is in scope here, so it may outlive it",
                f"derive it: `{budget}.limit(name, seconds)`" + (f" or `{budget}.check()`" if by_hand else ""),
                fix=None if by_hand else partial(_fix, site, budget),
            )
        elif not by_hand:
            caller = path[0].function
            yield site.report(
                f"{what} knows nothing of the budget that the caller of `{caller}` has, so it may outlive it",
                "hand that budget down and derive from it: `budget.limit(name, seconds)`",
                related=tuple(Related(s.path, s.span, f"calls `{s.function}`") for s in path),
            )


def _is_deadline(site: Site) -> bool:
    """Whether the clock is read for `deadline = clock() + seconds`, and the seconds come from no budget."""
    sum_ = site.parent
    assignment = site.statement
    if not (isinstance(sum_, ast.BinOp) and isinstance(sum_.op, ast.Add)):
        return False
    if not (isinstance(assignment, ast.Assign | ast.AnnAssign) and assignment.value is sum_):
        return False
    target = assignment.targets[0] if isinstance(assignment, ast.Assign) else assignment.target
    named = ast.unparse(target).rpartition(".")[2].lower()
    other = sum_.right if sum_.left is site.call else sum_.left
    return bool(_DEADLINE.search(named)) and "budget" not in ast.unparse(other)


def _fix(site: Site, budget: str) -> Fix | None:
    """`Budget.of(3600)` → `budget.limit("inner", 3600)`; a name that it has is kept."""
    if site.name != BUDGET_OF or site.spread or not site.call.args or may_be_none(budget, site.scope):
        return None
    keywords = {k.arg for k in site.call.keywords}
    if not keywords <= {"name", "reserve"}:
        return None
    source = site.module.source
    call = parse_call(source, site.call)
    match call.args:
        case [seconds, name, *rest] if name.keyword is None:
            swapped = [seconds.with_changes(value=name.value), name.with_changes(value=seconds.value), *rest]
            child = rewritten(call.with_changes(args=swapped), function=f"{budget}.limit")
        case [seconds, *rest] if "name" in keywords:
            want = with_keyword_name(seconds, "want")
            child = rewritten(call.with_changes(args=[want, *rest]), function=f"{budget}.limit")
        case _:
            child = rewritten(call, function=f"{budget}.limit", prepend=[f'"{_layer(site)}"'])
    edit = smallest(source, *source.extent(site.call), code(source, child))
    return Fix("derive a child from the budget in scope", Safety.UNSAFE, (edit,))


def _layer(site: Site) -> str:
    """A name for the child: what it is assigned to, else the function that it stands in."""
    match site.statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is site.call:
            return name
    return site.function.name if site.function is not None else "step"
