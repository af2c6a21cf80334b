"""What imposes a limit on what: scopes, decorators of orchestrators, operators, and the timeouts of calls.

Seconds everywhere; a limit whose value is not known has `seconds` None. The tables are in `limit_forms`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from deadlint.index import airflow, amounts, argv, handed
from deadlint.index.airflow import dag_limit, is_operator, operator_limit, sensor_limit
from deadlint.index.limit_forms import (
    ALARMS,
    CELERY_TASKS,
    DECORATORS,
    FURTHER,
    INNER,
    PROCESSES,
    SCOPES,
    STATEMENTS,
    WAITING,
    WORDS,
    Form,
    Limit,
    build,
    of_decorator,
)
from deadlint.index.values import Const, Result, Values
from deadlint.site import Argument, Site, Target

if TYPE_CHECKING:
    from deadlint.index.module import Module
    from deadlint.index.scopes import Scope


def seconds_of(argument: Argument, scale: float = 1.0) -> float | None:
    """The number of seconds of an argument; of a `(connect, read)` pair the longer; None where not known."""
    return amounts.of_values(argument.values, scale).seconds


@dataclass(frozen=True, slots=True)
class Origins:
    """What tells that a file may put limits or budgets around what it calls."""

    words: tuple[tuple[str, ...], ...] = (
        *WORDS,
        ("rq", "timeout", "job"),
        ("dramatiq", "time_limit"),
        ("signal.alarm",),
        ("setitimer",),
        ("func_timeout",),
        ("stopit",),
        (".result(", "submit("),
        ("deadlint_budget",),
        ("budget",),
    )


# --- of a call -----------------------------------------------------------------------------------------------


def of_call(site: Site) -> Limit | None:
    """The limit that a call imposes on itself or on what it waits for; None where it has none."""
    form = INNER.get(site.name) or FURTHER.get(site.name)
    if form is None:
        return _of_statement(site) if site.name in STATEMENTS else None
    limit = build(site, form, _label(site.call, site.name))
    told = in_arguments(site) if site.name in PROCESSES else None
    if told is not None and (limit is None or (limit.seconds is not None and told.seconds < limit.seconds)):
        return _told(site, told)
    return limit


def in_arguments(site: Site) -> argv.InArguments | None:
    """The limit that a child is given in its arguments."""
    return argv.limit(site.argument("args", 0).values) if site.name in _RUNS else None


_RUNS = frozenset(name for name in PROCESSES if not name.startswith("subprocess.Popen"))


def _told(site: Site, told: argv.InArguments) -> Limit:
    where = site.module.source.path, site.module.span(site.call)
    label = f"`{told.words}` in the arguments of {_label(site.call, site.name)}"
    return Limit(told.seconds, label, "process", *where, site.name)


_STATEMENT = re.compile(r"statement_timeout\s*(?:=|\bto\b)\s*'?(\d+)\s*(ms|s|min|h|d)?\b", re.IGNORECASE)


def _of_statement(site: Site) -> Limit | None:
    """The `statement_timeout` in the options of a connection or in a `SET`; PostgreSQL counts milliseconds."""
    for text in _texts(site):
        found = _STATEMENT.search(text)
        if found is not None:
            seconds = amounts.duration(f"{found[1]} {found[2] or 'ms'}")
            if seconds:
                where = site.module.source.path, site.module.span(site.call)
                return Limit(seconds, "a statement (statement_timeout)", "statement", *where, site.name)
    return None


def _texts(site: Site) -> Iterator[str]:
    keyword, position = STATEMENTS[site.name]
    values: Values = site.argument(keyword, position).values
    if keyword == "connect_args":
        values = amounts.under_key(values, "options")
    for value in values:
        match value:
            case Const(str() as text):
                yield text
            case Result(name="sqlalchemy.text", call=ast.Call(args=[ast.Constant(value=str() as text), *_])):
                yield text


def _label(call: ast.Call, name: str) -> str:
    short = ast.unparse(call.func)
    return f"`{short if len(short) <= 40 else name}`"


# --- around a place ------------------------------------------------------------------------------------------


def lexical(node: ast.AST, scope: Scope, module: Module) -> Iterator[Limit]:
    """The limits of the `with`, `wait_for` and alarms around `node` in the same function, the nearest first."""
    inner: ast.AST = node
    parents = module.walker.parents
    if isinstance(node, ast.Call):
        yield from handed.awaited(node, scope, module)
    alarms = module.sets_alarms
    current = parents.get(node)
    while current is not None and not isinstance(
        current, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
    ):
        if alarms and isinstance(inner, ast.stmt):
            yield from _alarm_before(inner, current, scope, module)
        match current:
            case ast.With(items=items) | ast.AsyncWith(items=items):
                before = items[: items.index(inner)] if isinstance(inner, ast.withitem) else items
                for item in reversed(before):
                    yield from _entered(item.context_expr, scope, module)
            case ast.Call() if isinstance(inner, ast.expr) and inner in current.args[:1]:
                yield from _waiting(current, scope, module)
        inner, current = current, parents.get(current)
    if alarms and isinstance(inner, ast.stmt):
        yield from _alarm_before(inner, scope.node, scope, module)


def _alarm_before(statement: ast.stmt, around: ast.AST, scope: Scope, module: Module) -> Iterator[Limit]:
    """The alarm that was set earlier in the same block and not taken back."""
    for block in ("body", "orelse", "finalbody"):
        body = getattr(around, block, ())
        if not isinstance(body, list) or statement not in body:
            continue
        for before in reversed(body[: body.index(statement)]):
            final = before.finalbody if isinstance(before, ast.Try) else []
            for one in (*reversed(final), before):
                call = one.value if isinstance(one, ast.Expr) else None
                site = _alarm(call, scope, module) if isinstance(call, ast.Call) else None
                if site is not None:
                    limit = build(site, ALARMS[site.name], _label(site.call, site.name))
                    if limit is not None and limit.seconds != 0:
                        yield limit
                    return


def _alarm(call: ast.Call, scope: Scope, module: Module) -> Site | None:
    """A call that sets an alarm or takes it back, as a site."""
    for target in module.targets(call):
        if target.name in ALARMS:
            return Site(module, call, scope, (target,), target.name)
    return None


def _entered(expression: ast.expr, scope: Scope, module: Module) -> Iterator[Limit]:
    if not isinstance(expression, ast.Call):
        return
    for target in module.targets(expression):
        site = Site(module, expression, scope, (target,), target.name)
        if target.name in SCOPES:
            limit = build(site, SCOPES[target.name], _label(expression, target.name))
            if limit is not None:
                yield limit
        elif target.name == "airflow.DAG":
            limit = airflow.of_dag(site)
            if limit is not None:
                yield limit


def _waiting(call: ast.Call, scope: Scope, module: Module) -> Iterator[Limit]:
    for target in module.targets(call):
        form = WAITING.get(target.name)
        if form is not None:
            site = Site(module, call, scope, (target,), target.name)
            limit = build(site, form, _label(call, target.name))
            if limit is not None:
                yield limit


# --- on a function -------------------------------------------------------------------------------------------


def home_of(function: Scope, module: Module) -> Module:
    """The module that a function stands in; `module` is who asks."""
    return function.module.home or module


def decorator_sites(function: Scope, module: Module) -> Iterator[Site]:
    """The decorators of a function, of whichever module, that impose a limit, as sites."""
    node = function.definition
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not node.decorator_list:
        return
    outer = function.parent or function
    module = home_of(function, module)
    module.walker.walk(outer)
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call):
            for target in module.targets(decorator):
                if of_decorator(target.name):
                    yield Site(module, decorator, outer, (target,), target.name)


def of_decorators(function: Scope, module: Module) -> Iterator[Limit]:
    """The limits that decorators put on a function, and the settings of a Celery application on its tasks."""
    for site in decorator_sites(function, module):
        form = of_decorator(site.name)
        assert form is not None
        label = f"{'task' if form.layer == 'scope' else form.layer} `{function.name}`"
        for one in (form, *_soft(site)):
            limit = build(site, one, label) or airflow.by_default(site, one, label)
            if limit is not None:
                yield limit
        yield from handed.of_application(site, label)


def of_operator(call: ast.Call, scope: Scope, module: Module) -> Iterator[Limit]:
    """The limits that a call puts on a function which it is handed: those of an Airflow operator and of its DAG."""
    if not any(keyword.arg == "python_callable" for keyword in call.keywords):
        return
    for target in module.targets(call):
        if is_operator(target.name):
            site = Site(module, call, scope, (target,), target.name)
            yield from (limit for limit in (operator_limit(site), dag_limit(site)) if limit is not None)


def on_function(function: Scope, module: Module) -> Iterator[Limit]:
    """Every limit on a function: of its decorators, of its class, and of what runs it with a limit of its own."""
    yield from of_decorators(function, module)
    yield from handed.on_function(function, home_of(function, module))


def _soft(site: Site) -> tuple[Form, ...]:
    return (Form("soft_time_limit", None, "task"),) if site.name in CELERY_TASKS else ()


def of_options(call: ast.Call, scope: Scope, module: Module, function: Scope) -> Limit | None:
    """The limit of `task.with_options(timeout_seconds=…)(…)`, which takes the place of the decorator's."""
    match call.func:
        case ast.Call(func=ast.Attribute(attr="with_options")) as options:
            site = Site(module, options, scope, (Target(""),), "with_options")
            return build(site, Form("timeout_seconds", None, "task"), f"task `{function.name}`")
    return None


def decorator_limit(site: Site, function: str) -> Limit | None:
    """The limit that a decorator puts on `function`."""
    form = of_decorator(site.name)
    if form is None:
        return None
    return build(site, form, f"{'decorator on' if form.layer == 'scope' else form.layer} `{function}`")


# --- along the calls -----------------------------------------------------------------------------------------

Given = tuple[tuple[str, float | str], ...]


def given(call: ast.Call, function: Scope, module: Module) -> Given:
    """What a call gives for the parameters of `function`: numbers, or the name of a parameter of its own caller."""
    scope = module.walker.scope_of[call]
    found: list[tuple[str, float | str]] = []
    bound = module.bound_to(call, function)
    for parameter in function.parameters():
        argument = module.resolver.argument_for(bound, parameter.arg, call)
        if argument is None:
            continue
        amount = amounts.of_values(module.resolver.evaluate(argument, scope))
        if amount.seconds is not None:
            found.append((parameter.arg, amount.seconds))
        elif amount.parameter:
            found.append((parameter.arg, amount.parameter))
        else:
            found.append((parameter.arg, ""))
    return tuple(found)


def along(limit: Limit, path: tuple[Given, ...]) -> Limit:
    """`limit` as the calls on a path make it; as it is where they say nothing of it."""
    if limit.seconds is not None or not limit.parameter:
        return limit
    known: dict[str, float | str] = {}
    for step in path:
        known = {name: known.get(value, "") if isinstance(value, str) else value for name, value in step}
    value = known.get(limit.parameter)
    return replace(limit, seconds=value * limit.scale, default="") if isinstance(value, float) else limit


__all__ = [
    "CELERY_TASKS",
    "DECORATORS",
    "FURTHER",
    "INNER",
    "SCOPES",
    "STATEMENTS",
    "WORDS",
    "Limit",
    "along",
    "dag_limit",
    "decorator_limit",
    "decorator_sites",
    "given",
    "home_of",
    "in_arguments",
    "is_operator",
    "lexical",
    "of_call",
    "of_decorators",
    "of_operator",
    "of_options",
    "on_function",
    "operator_limit",
    "seconds_of",
    "sensor_limit",
]
