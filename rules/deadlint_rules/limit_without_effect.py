"""DL412: a limit that does nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from deadlint.index import limits
from deadlint.index.flow import takes_kwargs
from deadlint.index.values import Const, Mapping, Member, Result, Value
from deadlint.model import Edit, Fix, Level, Safety
from deadlint.rule import Rule
from deadlint.site import PROJECT, Report, Site

from deadlint_rules import _deaf_handlers, _dropped_limits, _timedeltas, _uninterruptible
from deadlint_rules._limits import every_scope, seconds

if TYPE_CHECKING:
    from deadlint.index.module import Module
    from deadlint.index.scopes import Scope

_PSYCOPG = frozenset({"psycopg.connect", "psycopg.AsyncConnection.connect"})
_STRICT_NUMBERS = frozenset(
    name for name in limits.INNER
    if name.startswith(("subprocess.", "requests.", "asyncio.wait_for", "asyncio.timeout", "urllib."))
    and name != "asyncio.timeout_at"
)  # fmt: skip
_DAGSTER = frozenset({"dagster.op", "dagster.asset", "dagster.graph_asset", "dagster.multi_asset"})
_RUNTIME = "dagster/max_runtime"
_ENVIRONMENT = frozenset({"os.getenv", "os.environ.get"})


class LimitWithoutEffect(Rule):
    """A limit that bounds nothing, because what it is given to does not read it or reads something else.

    ## What it does
    Reports, where it is sure:

    - `session.timeout = 30` on a `requests.Session`, which has no such attribute;
    - `.seconds` of a timedelta that is compared, slept or waited for, where `total_seconds()` is meant (strict where
      it is only shown or calculated with);
    - `except TimeoutError` around something that raises nothing when time is up (`asyncio.wait`,
      `concurrent.futures.wait`, `Thread.join`, `Event.wait`), or something else (`subprocess.TimeoutExpired`,
      `requests.Timeout`, `queue.Empty`);
    - a `connect_timeout` below one second for psycopg, and `signal.alarm(int(…))` of less than a second;
    - a text as a limit, such as one straight from the environment;
    - `dagster/max_runtime` on an op, where nothing reads it (strict on an asset);
    - a wrapper that drops the timeout from its `**kwargs`, puts None in its place, or never reads them;
    - an alarm that is set under another limit that works by SIGALRM (an alarm of a caller, `timeout_decorator`, a
      limit of Airflow or Prefect), which it erases;
    - a synchronous Prefect task with a limit that is submitted to a thread and blocks there for longer; strict: one
      that is called in a flow with a limit;
    - time limits of Celery tasks in a file that runs its worker on the threads or the solo pool;
    - strict: a method that sets several options and resets the limit to None where it is not among them, and
      `asyncio.wait` of one task whose outcome nobody looks at.

    ## Why it is bad
    The code says that there is a limit, so nobody looks for the missing one until something hangs. Measured: psycopg
    with `connect_timeout=0.5` waits 130 s for a host that drops packets, since it cuts the fraction off and takes 0
    for none; `alarm(0)` cancels the alarm instead of setting one. `timedelta(days=1, seconds=5).seconds` is 5, and
    of a difference of −1 s it is 86,399: a wait of a day. Dagster's run monitor looks at the tags of runs and jobs,
    and not at those of ops. Prefect 3.9 ends a task of 1 s in a worker thread after the 4 s that its sleep took, and
    one inside a flow with a limit not before that either. Celery's threads and solo pools ran tasks with a limit of 1 s
    for 8.5 s. With Airflow's way of using SIGALRM, an inner scope left an outer limit of 1 s unheard for 3.1 s.

    ## Example
    ```python
    import requests

    session = requests.Session()
    session.timeout = 30
    ```

    ## Use instead
    ```python
    import requests

    LIMIT_S = 30
    session = requests.Session()
    session.get("https://example.com", timeout=LIMIT_S)
    ```

    ## Fix safety
    Unsafe: `.seconds` becomes `.total_seconds()` where it is compared or waited for. The value is then a float, is
    negative where the timedelta is, and counts the days. There is no fix for the rest: what was meant has to be
    written at each place that should be bounded.

    ## Options
    None.

    ## References
    - [timedelta.total_seconds](https://docs.python.org/3/library/datetime.html#datetime.timedelta.total_seconds)
    - [asyncio.wait](https://docs.python.org/3/library/asyncio-task.html#asyncio.wait)
    - [Dagster: run monitoring](https://docs.dagster.io/deployment/execution/run-monitoring)
    """

    code = "DL412"
    name = "limit-without-effect"
    since = "0.1.0"
    calls = (
        _deaf_handlers.SILENT | _deaf_handlers.RAISING | _PSYCOPG | _STRICT_NUMBERS | _DAGSTER | {PROJECT}
        | _uninterruptible.ALARMS
    )  # fmt: skip
    words = (
        ("requests", ".timeout = "),
        ("datetime", ".seconds"),
        ("except", "TimeoutError", "import subprocess"),
        ("except", "TimeoutError", "requests"),
        ("except", "TimeoutError", "httpx"),
        ("except", "TimeoutError", "queue"),
        ("except", "TimeoutError", "asyncio.wait("),
        ("except", "TimeoutError", "threading"),
        ("except", "TimeoutError", "concurrent.futures"),
        ("except", "socket.timeout", "subprocess"),
        ("psycopg", "connect_timeout"),
        ("alarm(int(",),
        ("alarm(round(",),
        ("environ", "timeout"),
        ("getenv", "timeout"),
        ('timeout="',),
        ("timeout='",),
        (_RUNTIME,),
        ("self.timeout = timeout", "=None"),
        ("self.timeout = timeout", "= None"),
        *_dropped_limits.WORDS,
        *_uninterruptible.WORDS,
    )

    def concerns(self, function: Scope) -> bool:
        """Only one that takes `**kwargs` can leave out a timeout that it is given."""
        return takes_kwargs(function)

    def check(self, site: Site) -> Iterator[Report]:
        if site.name in _PSYCOPG:
            yield from _fraction(site)
        elif site.name in _uninterruptible.ALARMS:
            yield from _alarm(site)
            yield from _uninterruptible.erased(site)
        elif site.name == PROJECT:
            yield from _dropped_limits.given_in_vain(site)
        elif site.name in _DAGSTER:
            yield from _max_runtime(site)
        else:
            yield from _deaf(site)
            if site.name == "asyncio.wait":
                yield from _of_one(site)
            if site.name in _STRICT_NUMBERS:
                yield from _text(site)

    def check_module(self, module: Module) -> Iterator[Report]:
        text = module.source.text
        if ".timeout = " in text:
            if "requests" in text:
                yield from _on_sessions(module)
            if "self.timeout = timeout" in text:
                yield from _resets(module)
        if ".seconds" in text and "datetime" in text:
            yield from _seconds_alone(module)
        if "timeout" in text:
            yield from _dropped_limits.in_wrappers(module)
        yield from _uninterruptible.in_module(module)


# --- calls -----------------------------------------------------------------------------------------------------


def _deaf(site: Site) -> Iterator[Report]:
    """A handler that waits for an exception which this expiry does not raise."""
    found = _deaf_handlers.deaf_handler(site)
    if found is None or not _deaf_handlers.has_limit(site):
        return
    handler, raised = found
    name = ast.unparse(site.call.func)
    happens = f"raises `{raised}`" if raised else "returns and raises nothing"
    yield site.report(
        f"`{name}` {happens} when its limit is over, so the handler for"
        f" `{ast.unparse(handler.type) if handler.type else 'it'}` never runs",
        f"catch `{raised}`" if raised else "look at what it returns, or at what is still running",
        related=(site.related(handler, "the handler"),),
    )


def _of_one(site: Site) -> Iterator[Report]:
    """`asyncio.wait({task}, timeout=5)` of one thing, whose outcome nobody looks at."""
    argument = site.argument("timeout")
    match site.call.args:
        case [ast.List(elts=[one]) | ast.Set(elts=[one]) | ast.Tuple(elts=[one])] if not site.value_used:
            watched = (n for c in site.scope.calls for n in ast.walk(c.func) if isinstance(n, ast.Attribute))
            if argument.absent or any(n.attr in ("done", "cancel", "result", "exception") for n in watched):
                return
            yield site.report(
                f"`asyncio.wait` returns when its limit is over and cancels nothing: `{site.source(one)[:40]}` goes on",
                "use `asyncio.wait_for`, which cancels it and raises `TimeoutError`",
                level=Level.STRICT,
            )


def _fraction(site: Site) -> Iterator[Report]:
    argument = site.argument("connect_timeout")
    value = limits.seconds_of(argument)
    if argument.absent:
        match site.argument("conninfo", 0).constant:
            case Const(str() as text) if found := re.search(r"connect_timeout=(\d*\.\d+)\b", text):
                value = float(found[1])
    if value is not None and 0 < value < 1:
        yield site.report(
            f"psycopg cuts the fraction of connect_timeout={seconds(value).removesuffix(' s')} off and takes 0 for no"
            " limit of its own: it waits 130 s",
            "give whole seconds, 2 or more",
        )


def _alarm(site: Site) -> Iterator[Report]:
    match site.call.args:
        case [ast.Call(func=ast.Name(id="int" | "round" as name), args=[inner, *_])]:
            value = limits.seconds_of(site.argument("seconds", 0))
            given = [v.value for v in site.values(inner) if isinstance(v, Const)]
            short = [g for g in given if isinstance(g, float) and 0 < g < 1]
            if value == 0 and short:
                yield site.report(
                    f"`{name}({short[0]:g})` is 0, and `signal.alarm(0)` cancels the alarm instead of setting one",
                    f"use `signal.setitimer(signal.ITIMER_REAL, {site.source(inner)})`",
                )


def _text(site: Site) -> Iterator[Report]:
    """A limit that is a text."""
    form = limits.INNER[site.name]
    argument = site.argument(form.keyword, form.position)
    if argument.node is None:
        return
    what = next((t for v in argument.values if (t := _textual(v)) is not None), None)
    sure = all(_textual(v) is not None or v == Const(None) for v in argument.values)
    if what is not None and sure:
        yield site.report(
            f"the limit {what} is a text, and the call needs a number: it fails with an error that speaks of types,"
            " or bounds nothing",
            "convert it once, where it is read: `float(…)`",
            node=argument.node,
        )


def _textual(value: Value) -> str | None:
    match value:
        case Const(str() as text):
            return f'"{text}"'
        case Result(name=name) if name in _ENVIRONMENT:
            return "from the environment"
        case Member(name=name) if name in _ENVIRONMENT:
            return None
    return None


def _max_runtime(site: Site) -> Iterator[Report]:
    """`dagster/max_runtime` among the tags of an op or an asset."""
    for option in ("tags", "op_tags"):
        argument = site.argument(option)
        for value in argument.values:
            if isinstance(value, Mapping) and value.get(_RUNTIME) not in (None, ()) and not value.open:
                of_op = option == "op_tags" or site.name == "dagster.op"
                yield site.report(
                    f"nothing reads `{_RUNTIME}` among the tags of {'an op' if of_op else 'an asset'}: Dagster's run"
                    " monitor looks at the tags of the run",
                    "put it on the job that runs this, or on its launch",
                    level=Level.DEFAULT if of_op else Level.STRICT,
                    node=_key(argument.node) or site.call,
                )


def _key(node: ast.expr | None) -> ast.expr | None:
    keys = node.keys if isinstance(node, ast.Dict) else []
    return next((k for k in keys if isinstance(k, ast.Constant) and k.value == _RUNTIME), None)


# --- what no call shows ----------------------------------------------------------------------------------------


def _on_sessions(module: Module) -> Iterator[Report]:
    """`session.timeout = 30`, unless the file reads the attribute again."""
    scopes = every_scope(module)
    for scope in scopes:
        for (base, name), places in scope.attributes.items():
            for binding, _ in places if name == "timeout" else ():
                if not isinstance(binding.node, ast.Assign) or binding.value is None or _is_read(base, module):
                    continue
                for target in binding.node.targets:
                    if isinstance(target, ast.Attribute) and _is_session(target.value, scope, module):
                        yield Report(
                            binding.node,
                            f"a `requests.Session` has no attribute `timeout`: `{ast.unparse(target)}` bounds nothing,"
                            " and its requests wait for ever",
                            "give `timeout=` with each request, or mount an adapter that does",
                        )


def _is_session(node: ast.expr, scope: Scope, module: Module) -> bool:
    values = module.resolver.evaluate(node, scope)
    return bool(values) and all(isinstance(v, Result) and v.name == "requests.Session" for v in values)


def _is_read(base: str, module: Module) -> bool:
    """Whether the file reads `base.timeout`, or a `timeout` of something that may be the same."""
    last = base.rpartition(".")[2]
    pattern = rf"\b{re.escape(last)}\.timeout\b(?!\s*=[^=])|getattr\([^)]*[\"']timeout[\"']"
    return re.search(pattern, module.source.text) is not None


def _resets(module: Module) -> Iterator[Report]:
    """A method of several options that sets `self.timeout = timeout`, None where it is not given."""
    for scope in every_scope(module):
        if scope.owner is None or scope.name.startswith("__") or not isinstance(scope.node, ast.FunctionDef):
            continue
        optional = [p.arg for p in scope.parameters() if _defaults_to_none(scope, p.arg)]
        if "timeout" not in optional or len(optional) < 2:
            continue
        for statement in scope.node.body:
            if isinstance(statement, ast.Assign) and ast.unparse(statement) == "self.timeout = timeout":
                yield Report(
                    statement,
                    f"`{scope.name}` without a timeout sets the limit to None, though only another option was to be"
                    " changed",
                    "change it only where it is given: `if timeout is not None`",
                    Level.STRICT,
                )


def _defaults_to_none(scope: Scope, name: str) -> bool:
    default = scope.default_of(name)
    return isinstance(default, ast.Constant) and default.value is None


def _seconds_alone(module: Module) -> Iterator[Report]:
    """`.seconds` of a timedelta, where the whole of it is meant."""
    durations = _timedeltas.Durations(module)
    every_scope(module)
    for node, scope in _timedeltas.attributes(module):
        if not durations.is_span(node.value, scope) or _timedeltas.is_whole(node, scope, module):
            continue
        if _timedeltas.is_guarded(node, scope, module, durations):
            continue
        bounding = _timedeltas.bounds(node, scope, module)
        yield Report(
            node,
            f"`{ast.unparse(node)}` leaves the days out, and is about a day where the difference is negative",
            "use `total_seconds()`",
            Level.DEFAULT if bounding else Level.STRICT,
            fix=partial(_total, node, module) if bounding else None,
        )


def _total(node: ast.Attribute, module: Module) -> Fix:
    """`delta.seconds` → `delta.total_seconds()`."""
    _, end = module.source.extent(node)
    return Fix("take all of the seconds", Safety.UNSAFE, (Edit(end - len("seconds"), end, "total_seconds()"),))
