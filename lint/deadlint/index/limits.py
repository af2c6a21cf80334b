"""What imposes a limit on what: scopes, decorators of orchestrators, operators, and the timeouts of calls.

Seconds everywhere; a limit whose value is not known has `seconds` None.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deadlint.index.values import Const, Result, Sequence, Values, number
from deadlint.model import Span
from deadlint.site import Argument, Site, Target

if TYPE_CHECKING:
    from deadlint.index.module import Module
    from deadlint.index.scopes import Scope


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit: how long, what it is called in messages, and the place that imposes it."""

    seconds: float | None
    label: str
    layer: str  # "scope", "task", "flow", "operator", "dag", "request", "process", "statement", "budget"
    path: str
    span: Span
    name: str = ""  # the canonical name of what imposes it


@dataclass(frozen=True, slots=True)
class _Form:
    """Where a call takes its limit: keyword, position, and how to read it."""

    keyword: str
    position: int | None
    layer: str
    scale: float = 1.0


SCOPES = {
    "asyncio.timeout": _Form("delay", 0, "scope"),
    "asyncio.timeout_at": _Form("when", 0, "scope"),  # a point in time: how long that is, is never known
    "async_timeout.timeout": _Form("delay", 0, "scope"),
    "anyio.fail_after": _Form("delay", 0, "scope"),
    "anyio.move_on_after": _Form("delay", 0, "scope"),
    "trio.fail_after": _Form("seconds", 0, "scope"),
    "trio.move_on_after": _Form("seconds", 0, "scope"),
    "timeout_decorator.timeout": _Form("seconds", 0, "scope"),
    "stopit.ThreadingTimeout": _Form("seconds", 0, "scope"),
    "eventlet.Timeout": _Form("seconds", 0, "scope"),
    "gevent.Timeout": _Form("seconds", 0, "scope"),
}
_WAITING = {"asyncio.wait_for": _Form("timeout", 1, "scope")}
_PROCESSES = {
    f"subprocess.{name}": _Form("timeout", None, "process")
    for name in ("run", "call", "check_call", "check_output")
} | {
    "subprocess.Popen.wait": _Form("timeout", 0, "process"),
    "subprocess.Popen.communicate": _Form("timeout", 1, "process"),
    "deadlint_budget.run": _Form("want", None, "process"),
    "deadlint_budget.check_output": _Form("want", None, "process"),
}
_VERBS = ("get", "post", "put", "patch", "delete", "head", "options")
_REQUESTS = (
    {
        f"{base}.{verb}": _Form("timeout", None, "request")
        for base in (
            "requests", "requests.Session", "httpx", "httpx.Client", "httpx.AsyncClient", "aiohttp.ClientSession"
        )
        for verb in (*_VERBS, "request")
    }
    | {"urllib.request.urlopen": _Form("timeout", 2, "request")}
)  # fmt: skip
_BUDGETS = {"deadlint_budget.Budget.of": _Form("seconds", 0, "budget")}
# Calls that carry a limit of their own: the inner ones of an inversion.
INNER = SCOPES | _WAITING | _PROCESSES | _REQUESTS | _BUDGETS

DECORATORS = {
    "prefect.task": _Form("timeout_seconds", None, "task"),
    "prefect.flow": _Form("timeout_seconds", None, "flow"),
    "celery.shared_task": _Form("time_limit", None, "task"),
    "celery.Celery.task": _Form("time_limit", None, "task"),
    "airflow.decorators.task": _Form("execution_timeout", None, "task"),
    "airflow.decorators.dag": _Form("dagrun_timeout", None, "dag"),
    "timeout_decorator.timeout": _Form("seconds", 0, "scope"),
    "wrapt_timeout_decorator.timeout": _Form("dec_timeout", 0, "scope"),
    "func_timeout.func_set_timeout": _Form("timeout", 0, "scope"),
    "dramatiq.actor": _Form("time_limit", None, "task", 0.001),
    "rq.decorators.job": _Form("timeout", None, "task"),
}
_AIRFLOW_DECORATOR_PREFIX = "airflow.decorators.task."
CELERY_TASKS = ("celery.shared_task", "celery.Celery.task")


def seconds_of(argument: Argument, scale: float = 1.0) -> float | None:
    """The number of seconds of an argument; of a `(connect, read)` pair the longer; None where not known."""
    return _seconds(argument.values, scale)


def _seconds(values: Values, scale: float) -> float | None:
    found = []
    for value in values:
        match value:
            case Sequence(items=items) if items:
                parts = [_seconds(item, scale) for item in items]
                if any(part is None for part in parts):
                    return None
                found.append(max(part for part in parts if part is not None))
            case Result(call=call) if call is not None and value.name in _TIMEOUT_OBJECTS:
                return None
            case _:
                plain = number(value)
                if plain is None:
                    return None
                found.append(plain * scale)
    # Several possible values: the least of them is what is certain.
    return min(found) if found else None


@dataclass(frozen=True, slots=True)
class Origins:
    """What tells that a file may put limits or budgets around what it calls."""

    words: tuple[tuple[str, ...], ...] = (
        ("asyncio.timeout",),
        ("wait_for", "asyncio"),
        ("from asyncio import", "timeout"),
        ("async_timeout",),
        ("fail_after",),
        ("move_on_after",),
        ("timeout_seconds", "prefect"),
        ("time_limit",),
        ("dagrun_timeout", "airflow"),
        ("execution_timeout", "airflow"),
        ("timeout_decorator",),
        ("func_set_timeout",),
        ("deadlint_budget",),
        ("budget",),
    )


_TIMEOUT_OBJECTS = frozenset({"httpx.Timeout", "aiohttp.ClientTimeout", "urllib3.Timeout"})


def of_call(site: Site) -> Limit | None:
    """The limit that a call imposes on itself or on what it waits for; None where it has none."""
    form = INNER.get(site.name)
    if form is None:
        return None
    return _limit(site, form, _label(site.call, site.name))


def _limit(site: Site, form: _Form, label: str) -> Limit | None:
    argument = site.argument(form.keyword, form.position)
    if argument.absent or argument.constant == Const(None):
        return None
    return Limit(
        seconds_of(argument, form.scale),
        label,
        form.layer,
        site.module.source.path,
        site.module.span(site.call),
        site.name,
    )


def _label(call: ast.Call, name: str) -> str:
    short = ast.unparse(call.func)
    return f"`{short if len(short) <= 40 else name}`"


def lexical(node: ast.AST, scope: Scope, module: Module) -> Iterator[Limit]:
    """The limits of the `with` and `wait_for` around `node` in the same function, the nearest first."""
    inner: ast.AST = node
    parents = module.walker.parents
    current = parents.get(node)
    while current is not None and not isinstance(
        current, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
    ):
        match current:
            case ast.With(items=items) | ast.AsyncWith(items=items):
                before = items[: items.index(inner)] if isinstance(inner, ast.withitem) else items
                for item in reversed(before):
                    yield from _entered(item.context_expr, scope, module)
            case ast.Call() if isinstance(inner, ast.expr) and inner in current.args[:1]:
                yield from _waiting(current, scope, module)
        inner, current = current, parents.get(current)


def _entered(expression: ast.expr, scope: Scope, module: Module) -> Iterator[Limit]:
    if not isinstance(expression, ast.Call):
        return
    for target in module.targets(expression):
        site = Site(module, expression, scope, (target,), target.name)
        if target.name in SCOPES:
            limit = _limit(site, SCOPES[target.name], _label(expression, target.name))
            if limit is not None:
                yield limit
        elif target.name == "airflow.DAG":
            limit = _limit(site, _Form("dagrun_timeout", None, "dag"), f"DAG {_first_text(site)}".strip())
            if limit is not None:
                yield limit


def _waiting(call: ast.Call, scope: Scope, module: Module) -> Iterator[Limit]:
    for target in module.targets(call):
        form = _WAITING.get(target.name)
        if form is not None:
            site = Site(module, call, scope, (target,), target.name)
            limit = _limit(site, form, _label(call, target.name))
            if limit is not None:
                yield limit


def _first_text(site: Site) -> str:
    match site.argument("dag_id", 0).constant:
        case Const(value=str() as name):
            return f"`{name}`"
    return ""


def decorator_sites(function: Scope, module: Module) -> Iterator[Site]:
    """The decorators of a function that impose a limit, as sites."""
    node = function.definition
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    outer = function.parent or function
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call):
            for target in module.targets(decorator):
                if _decorator_form(target.name):
                    yield Site(module, decorator, outer, (target,), target.name)


def _decorator_form(name: str) -> _Form | None:
    if name.startswith(_AIRFLOW_DECORATOR_PREFIX):
        return DECORATORS["airflow.decorators.task"]
    return DECORATORS.get(name)


def on_function(function: Scope, module: Module) -> Iterator[Limit]:
    """The limits that decorators put on a function."""
    for site in decorator_sites(function, module):
        form = _decorator_form(site.name)
        assert form is not None
        label = f"{'task' if form.layer == 'scope' else form.layer} `{function.name}`"
        for one in (form, *_soft(site)):
            limit = _limit(site, one, label)
            if limit is not None:
                yield limit


def _soft(site: Site) -> tuple[_Form, ...]:
    return (_Form("soft_time_limit", None, "task"),) if site.name in CELERY_TASKS else ()


def of_operator(call: ast.Call, scope: Scope, module: Module) -> Iterator[Limit]:
    """The limits that a call puts on a function which it is handed: those of an Airflow operator and of its DAG."""
    if not any(keyword.arg == "python_callable" for keyword in call.keywords):
        return
    for target in module.targets(call):
        if is_operator(target.name):
            site = Site(module, call, scope, (target,), target.name)
            yield from (limit for limit in (operator_limit(site), dag_limit(site)) if limit is not None)


def operator_limit(site: Site) -> Limit | None:
    """The `execution_timeout` of an Airflow operator."""
    name = _task_id(site)
    return _limit(site, _Form("execution_timeout", None, "operator"), f"operator {name}".strip())


def dag_limit(site: Site) -> Limit | None:
    """The `dagrun_timeout` of the DAG that an Airflow operator is given as `dag=`."""
    for value in site.argument("dag").values:
        match value:
            case Result(name="airflow.DAG", call=ast.Call() as call, scope=scope):
                dag = Site(site.module, call, scope or site.scope, (Target("airflow.DAG"),), "airflow.DAG")
                return _limit(dag, _Form("dagrun_timeout", None, "dag"), f"DAG {_first_text(dag)}".strip())
    return None


def decorator_limit(site: Site, function: str) -> Limit | None:
    """The limit that a decorator puts on `function`."""
    form = _decorator_form(site.name)
    if form is None:
        return None
    return _limit(site, form, f"{'decorator on' if form.layer == 'scope' else form.layer} `{function}`")


def _task_id(site: Site) -> str:
    match site.argument("task_id").constant:
        case Const(value=str() as name):
            return f"`{name}`"
    return ""


def is_operator(name: str) -> bool:
    """Whether a canonical name is an Airflow operator or sensor."""
    return name.startswith("airflow.") and name.rpartition(".")[2].endswith(("Operator", "Sensor"))


__all__ = [
    "CELERY_TASKS",
    "DECORATORS",
    "INNER",
    "SCOPES",
    "Limit",
    "dag_limit",
    "decorator_limit",
    "decorator_sites",
    "is_operator",
    "lexical",
    "of_call",
    "of_operator",
    "on_function",
    "operator_limit",
    "seconds_of",
]
