"""DL407: a budget that is as long as the limit around it, and a hard limit with no soft one before it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from deadlint.graph import Around
from deadlint.index import limits
from deadlint.index.limits import CELERY_TASKS
from deadlint.index.values import NONE
from deadlint.model import Constant, Fix, Level, Safety
from deadlint.region import parse_call, replace_call, rewritten
from deadlint.rule import Rule
from deadlint.site import Report, Site

from deadlint_rules._limits import BUDGET_OF, budget_above, places, route, seconds

_SHARE = 0.1  # of the limit, kept for finishing: 10-20 % is usual
_APP_WIDE = ("task_soft_time_limit", "TASK_SOFT_TIME_LIMIT", "CELERYD_TASK_SOFT_TIME_LIMIT")


class BudgetWithoutReserve(Rule):
    """A limit that leaves no time to finish in: a budget as long as the limit around it, or a hard limit alone.

    ## What it does
    Reports `Budget.of(N)` without a `reserve` under a limit of just N seconds, and Celery tasks with a `time_limit`
    but no `soft_time_limit`, on the task or for the whole application. A budget that is longer than the limit is
    DL401's, and one below another budget DL402's.

    ## Why it is bad
    When a budget runs out there is still work to do: stop the children, drop the temporary files, let go of locks,
    say what happened. Without a reserve the outer limit fires at that very moment, and none of it is done. Celery's
    hard limit is the same fault in one number. Measured with the prefork pool: it ends the worker's process with
    SIGTERM and then SIGKILL, what a shell had started lives on, and no handler of the task is certain to run; the
    soft limit raises `SoftTimeLimitExceeded` in the task instead, which it can answer. It takes about a second until
    either is noticed, so leave more than that between the two.

    ## Example
    ```python
    from deadlint_budget import Budget
    from prefect import flow


    @flow(timeout_seconds=1200)
    def build_mosaic(tiles):
        return Budget.of(1200)
    ```

    ## Use instead
    ```python
    from deadlint_budget import Budget
    from prefect import flow

    BUILD_MOSAIC_RESERVE_S = 120


    @flow(timeout_seconds=1200)
    def build_mosaic(tiles):
        return Budget.of(1200, reserve=BUILD_MOSAIC_RESERVE_S)
    ```

    ## Fix safety
    Unsafe: the work has a tenth less time than before. The reserve is a constant at the top of the file, named after
    the function. There is no fix for Celery, since a soft limit is of use only where the task answers its exception.

    ## Options
    None.

    ## References
    - [The deadlint_budget guide](../budget.md)
    - [Celery: time limits](https://docs.celeryq.dev/en/stable/userguide/workers.html#time-limits)
    """

    code = "DL407"
    name = "budget-without-reserve"
    since = "0.1.0"
    calls = frozenset({BUDGET_OF, *CELERY_TASKS})
    words = (("Budget.of",), ("celery", "time_limit"))

    def check(self, site: Site) -> Iterator[Report]:
        if site.name == BUDGET_OF:
            yield from _budget(site)
        elif _is_hard_alone(site):
            # What is None as long as nobody sets it is a hard limit for those who do.
            unset = site.argument("time_limit").constant == NONE
            yield site.report(
                "the hard limit of this Celery task has no soft one before it: the worker's process is killed, no"
                " clean-up of the task is certain to run, and what it started may live on",
                "give soft_time_limit some seconds before time_limit, and answer SoftTimeLimitExceeded",
                level=Level.STRICT if unset else Level.DEFAULT,
            )


def _budget(site: Site) -> Iterator[Report]:
    limit = limits.of_call(site)
    if limit is None or limit.seconds is None or not _without_reserve(site) or budget_above(site) is not None:
        return
    known = [a for a in site.around if a.limit.seconds is not None and a.limit.seconds > 0]
    outer = min(known, key=lambda a: (a.limit.seconds or 0.0, len(a.path)), default=None)
    if outer is None or outer.limit.seconds != limit.seconds:
        return
    yield site.report(
        f"the budget of {seconds(limit.seconds)} ends together with {outer.limit.label}{route(outer)}: nothing is"
        " left to stop and clean up in",
        f"keep a reserve of 10-20 %: `Budget.of({site.source(site.call.args[0])}, reserve=…)`"
        if site.call.args
        else "keep a reserve of 10-20 %: `reserve=…`",
        related=places(outer),
        fix=partial(_fix, site, outer),
    )


def _without_reserve(site: Site) -> bool:
    reserve = site.argument("reserve")
    return reserve.absent or (reserve.constant is not None and not reserve.constant.value)


def _fix(site: Site, outer: Around) -> Fix | None:
    """`Budget.of(1200)` → `Budget.of(1200, reserve=BUILD_MOSAIC_RESERVE_S)`."""
    if site.spread or site.argument("reserve").node is not None or outer.limit.seconds is None:
        return None
    constant = _constant(site, outer.limit.seconds)
    if constant is None:
        return None
    source = site.module.source
    call = rewritten(parse_call(source, site.call), add=[("reserve", constant.name)])
    edit = replace_call(source, site.call, call)
    return Fix("keep a reserve for stopping and cleaning up", Safety.UNSAFE, (edit,), constants=(constant,))


def _constant(site: Site, limit: float) -> Constant | None:
    """The reserve as a constant of the function's own name; None where that would not be the only one."""
    scope = site.function or site.scope
    budgets = [c for c in scope.calls if any(t.name == BUDGET_OF for t in site.module.targets(c))]
    names = scope.qualified_name.upper().split(".") if scope.parent is not None else []
    name = "_".join([*(part.strip("_") for part in names), "RESERVE_S"])
    if len(budgets) > 1 or name in site.module.bound_names:
        return None
    return Constant(name, f"{round(limit * _SHARE, 3):g}")


def _is_hard_alone(site: Site) -> bool:
    """Whether a Celery task certainly has a hard limit, and as far as can be seen no soft one."""
    hard, soft = site.argument("time_limit"), site.argument("soft_time_limit")
    if hard.absent or hard.node is None or (isinstance(hard.node, ast.Constant) and hard.constant == NONE):
        return False
    if not soft.absent and soft.constant != NONE:
        return False
    return not any(setting in site.module.source.text for setting in _APP_WIDE)
