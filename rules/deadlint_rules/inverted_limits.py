"""DL401: an inner limit that is no shorter than the one around it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from deadlint.graph import Around
from deadlint.index import amounts, limits
from deadlint.index.amounts import duration
from deadlint.index.flow import is_decorated
from deadlint.index.limits import Limit
from deadlint.index.scopes import Scope
from deadlint.index.values import Const, Function, Template
from deadlint.model import Level
from deadlint.rule import Rule
from deadlint.site import PROJECT, Report, Site, Target

from deadlint_rules._limits import BUDGET_OF, amount, budget_above, is_capped, places, route, seconds, tightest

if TYPE_CHECKING:
    from deadlint.index.module import Module

_INNER = frozenset({*limits.INNER, *limits.FURTHER, *limits.STATEMENTS})


class InvertedLimits(Rule):
    """An inner limit is as long as the limit around it, or longer.

    ## What it does
    Compares each limit whose value is known with the limits around it: the `with` blocks, `wait_for` and alarms in the
    same function, what Prefect, Dagster, Airflow, Celery, RQ, Dramatiq and Luigi put on it (by decorators, tags,
    options of a single run, attributes of its class, or the application's configuration), and those around its callers,
    in this file and others.

    A limit that a parameter gives is what each caller passes. One that a setting may change, such as
    `os.environ.get("X", "30")` or a field of a settings class, counts as its default, which is what runs as long as
    nobody sets anything, and the message says so. Limits in the arguments of a program count as well: `timeout 60 …`,
    `curl --max-time`, `wget --timeout`, `ssh -o ConnectTimeout`, `--timeout`. The `want` of a helper under a budget is
    no more than the budget has left, and never inverted. Strict: a `timeout` in the query of a request that is no
    shorter than what the request waits.

    ## Why it is bad
    The outer limit fires first, so the inner one never does, and the failure arrives without its cause. Measured with
    Prefect 3.9: a flow of 1 s around a task of 5 s ends at 1.1 s, and the error says that the task *timed out after
    5.0 second(s)*: the wrong layer is named. A subprocess below such a task is not told at all and its tree lives on.
    Celery's soft limit behind the hard one is never seen: the worker's process is killed before it.

    ## Example
    ```python
    import subprocess

    from prefect import task


    @task(timeout_seconds=600)
    def build_tile(tile):
        subprocess.run(["gdalwarp", tile, "out.tif"], check=True, timeout=900)
    ```

    ## Use instead
    ```python
    import subprocess

    from prefect import task


    @task(timeout_seconds=600)
    def build_tile(tile):
        subprocess.run(["gdalwarp", tile, "out.tif"], check=True, timeout=540)
    ```
    Better still, derive each limit from one budget: `run([...], budget=budget, want=540)`.

    ## Fix safety
    There is no fix: which of the two numbers is the wrong one is for a person to say.

    ## Options
    None.

    ## References
    - [Prefect: timeouts](https://docs.prefect.io/v3/develop/write-tasks)
    - [Celery: time limits](https://docs.celeryq.dev/en/stable/userguide/workers.html#time-limits)
    - [asyncio.timeout](https://docs.python.org/3/library/asyncio-task.html#timeouts)
    """

    code = "DL401"
    name = "inverted-limits"
    since = "0.1.0"
    calls = _INNER | frozenset(limits.DECORATORS) | {PROJECT, "airflow.**"}
    words = (
        *limits.WORDS,
        ("func_timeout",),
        ("stopit",),
        ("job_timeout",),
        ("rq.decorators", "timeout"),
        ("signal.alarm",),
        ("setitimer",),
        (".result(", ".submit("),
        ('"timeout"', "subprocess", "timeout="),
        ("--max-time", "subprocess", "timeout="),
        ("--timeout", "subprocess", "timeout="),
        ("?timeout=", "timeout="),
        ("&timeout=", "timeout="),
        ('"timeout":', "params", "timeout=", "requests"),
    )

    def concerns(self, function: Scope) -> bool:
        """Its limits are in its decorators, its class, or what runs it."""
        home = function.module.home
        in_class = function.owner is not None and function.name == "run"
        return is_decorated(function) or in_class or (home is not None and home.hands_limits)

    def check(self, site: Site) -> Iterator[Report]:
        if site.name == PROJECT:
            for inner in _own_limits(site):
                yield from _inside(site, inner)
        elif limits.is_operator(site.name):
            yield from _inside(site, limits.operator_limit(site), limits.dag_limit(site))
            yield from _sensor(site)
        elif site.name == BUDGET_OF:
            if budget_above(site) is None:
                yield from _inside(site, limits.of_call(site))
        elif site.name in _INNER and not is_capped(site):
            yield from _inside(site, limits.of_call(site))
            yield from _within_call(site)
            yield from _asked_of_server(site)
        if site.name not in limits.INNER or site.name in limits.DECORATORS:
            yield from _decorator(site)

    def check_module(self, module: Module) -> Iterator[Report]:
        if "apply_async" in module.source.text:
            for call in module.naming("apply_async"):
                yield from _soft_behind_hard(Site(module, call, module.walker.scope_of[call], (Target(""),)))


def _own_limits(site: Site) -> Iterator[Limit]:
    """The limits that the decorators of the functions which a call runs put on them, or its `with_options`."""
    for target in site.targets:
        match target.receiver:
            case Function(scope=scope):
                options = limits.of_options(site.call, site.scope, site.module, scope)
                if options is not None:
                    yield options
                else:
                    yield from limits.of_decorators(scope, site.module)


def _inside(site: Site, inner: Limit | None, also: Limit | None = None) -> Iterator[Report]:
    """The finding about a limit that is no shorter than the one around it that it outlasts most."""
    if inner is None or (inner.seconds is None and not inner.parameter):
        return
    found = (_pair(inner, outer, site) for outer in (*site.around, *([Around(also)] if also else ())))
    pairs = [pair for pair in found if pair is not None]
    worst = max(pairs, key=_overrun, default=None)
    if worst is not None:
        yield _report(site, *worst)


def _overrun(pair: tuple[Limit, Around]) -> tuple[float, int]:
    inner, outer = pair
    return (inner.seconds or 0.0) - (outer.limit.seconds or 0.0), -len(outer.path)


def _pair(inner: Limit, outer: Around, site: Site) -> tuple[Limit, Around] | None:
    """An inner limit as it is under an outer one, where it is no shorter."""
    if outer.limit.seconds is None or outer.limit.seconds <= 0:
        return None
    if (inner.path, inner.span) == (outer.limit.path, outer.limit.span):
        return None  # a function that calls itself
    here = limits.along(inner, tuple(step.given for step in outer.path)) if outer.path else _by_callers(inner, site)
    if here.seconds is None:
        return None
    # A budget of just the limit around it has no reserve, which is another rule's.
    above = here.seconds > outer.limit.seconds
    return (here, outer) if above or (here.seconds == outer.limit.seconds and here.layer != "budget") else None


def _by_callers(inner: Limit, site: Site) -> Limit:
    """A limit that a parameter of the function gives, with the longest that a caller in the file passes."""
    function = site.function
    if inner.seconds is not None or function is None:
        return inner
    calls = (call for call, _ in site.module.callers(function))
    passed = (limits.along(inner, (limits.given(call, function, site.module),)) for call in calls)
    return max(passed, key=lambda one: one.seconds or 0.0, default=inner)


def _report(site: Site, inner: Limit, outer: Around) -> Report:
    short = seconds(outer.limit.seconds or 0.0)
    return site.report(
        f"{inner.label} may run {amount(inner)} inside {outer.limit.label}, which ends at"
        f" {amount(outer.limit)}{route(outer)}; the outer limit fires first and hides the cause",
        f"make the inner limit shorter than {short}, or derive both from one budget",
        related=places(outer),
    )


def _within_call(site: Site) -> Iterator[Report]:
    """A limit in the arguments of a child that is no shorter than the one on the wait for it."""
    told = limits.in_arguments(site)
    own = limits.seconds_of(site.argument("timeout")) if told is not None else None
    if told is not None and own is not None and 0 < own <= told.seconds:
        yield site.report(
            f"`{told.words}` may run {seconds(told.seconds)}, and the wait for it ends at {seconds(own)}: the child is"
            " killed before its own limit is up, and what it started lives on",
            f"give the program less than {seconds(own)}, so that it can end by itself",
        )


_IN_QUERY = re.compile(r"[?&](?:request_)?timeout=(\d+(?:ms|s|m|h)?)(?:&|$)")


def _asked_of_server(site: Site) -> Iterator[Report]:
    """A limit that the query asks of the server, no shorter than the one on the request for it."""
    own = limits.of_call(site)
    asked = _asked(site) if own is not None and own.layer == "request" else None
    if asked is not None and own is not None and own.seconds is not None and 0 < own.seconds <= asked:
        yield site.report(
            f"the query asks the server for up to {seconds(asked)}, and the request gives up after {amount(own)}: the"
            " server works on for nobody",
            "ask the server for less than the request waits",
            level=Level.STRICT,  # what the server counts in is its own affair
        )


def _asked(site: Site) -> float | None:
    """The seconds of a `timeout` in the query of a request, as far as they look like seconds."""
    for value in (*site.argument("url", 0).values, *site.argument("url", 1).values):
        text = value.value if isinstance(value, Const) else value.text() if isinstance(value, Template) else ""
        found = _IN_QUERY.search(text) if isinstance(text, str) else None
        if found is not None:
            return _plausible(duration(found[1]))
    values = amounts.under_key(site.argument("params").values, "timeout")
    return _plausible(amounts.of_values(values, texts=True).seconds) if values else None


def _plausible(found: float | None) -> float | None:
    """A number of thousands may be milliseconds: nothing is said of it."""
    return None if found is None or (found >= 1000 and found % 500 == 0) else found


def _sensor(site: Site) -> Iterator[Report]:
    """A sensor whose `timeout` is no shorter than what the task or its DAG may take."""
    own = limits.sensor_limit(site)
    if own is None or own.seconds is None:
        return
    task = limits.operator_limit(site)
    dag = limits.dag_limit(site)
    outer = tightest((*site.around, *(Around(one) for one in (task, dag) if one is not None)))
    if outer is not None and outer.limit.seconds is not None and own.seconds >= outer.limit.seconds:
        yield _report(site, own, outer)


def _decorator(site: Site) -> Iterator[Report]:
    """What is inverted within one decorator, or between two on the same function."""
    if site.name in limits.CELERY_TASKS:
        yield from _soft_behind_hard(site)
    function = site.parent
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    inner = limits.decorator_limit(site, function.name)
    scope = site.module.walker.scope_of[function]
    outer = tightest(
        Around(limit)
        for other in limits.decorator_sites(scope, site.module)
        if other.call.lineno < site.call.lineno and (limit := limits.decorator_limit(other, function.name))
    )
    if inner is None or inner.seconds is None or outer is None or outer.limit.seconds is None:
        return
    if inner.seconds >= outer.limit.seconds:
        yield _report(site, inner, outer)


def _soft_behind_hard(site: Site) -> Iterator[Report]:
    soft = limits.seconds_of(site.argument("soft_time_limit"))
    hard = limits.seconds_of(site.argument("time_limit"))
    if soft is None or hard is None or soft < hard or hard <= 0:
        return
    yield site.report(
        f"the soft limit of {seconds(soft)} comes no earlier than the hard one of {seconds(hard)}:"
        " the worker's process is killed before the task hears of it",
        "make soft_time_limit shorter than time_limit by what the clean-up needs",
    )
