"""Limits on work that they cannot stop: alarms under alarms, tasks in threads, pools that read no limit."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from deadlint.index import limits
from deadlint.index.limits import Limit
from deadlint.index.scopes import Scope
from deadlint.index.values import Attached, Const, Function
from deadlint.model import Level, Related
from deadlint.site import Report, Site

from deadlint_rules._blocking import BLOCKING, bounded, length, shown
from deadlint_rules._limits import every_scope, seconds

if TYPE_CHECKING:
    from deadlint.index.module import Module

ALARMS = frozenset({"signal.alarm", "signal.setitimer"})
# Layers that end their work with SIGALRM, of which a process has one.
_BY_ALARM = ALARMS | {
    "timeout_decorator.timeout", "wrapt_timeout_decorator.timeout", "stopit.SignalTimeout",
    "airflow.decorators.task", "prefect.task", "prefect.flow",
}  # fmt: skip
_PREFECT = "prefect.task"
_DEAF_POOLS = frozenset({"threads", "solo", "eventlet"})
_POOL = re.compile(r"(?:--pool[= ]|-P ?)(threads|solo|eventlet)\b")
WORDS = (
    ("signal.alarm", "def "),
    ("setitimer", "def "),
    ("timeout_seconds", ".submit("),
    ("timeout_seconds", ".map("),
    ("timeout_seconds", "flow", "task"),
    ("time_limit", "worker_pool"),
    ("time_limit", "--pool"),
    ("time_limit", '"-P'),
)


def erased(site: Site) -> Iterator[Report]:
    """An alarm that is set where another one is running, which ends with it: a process has one."""
    amount = limits.seconds_of(site.argument("seconds", 0 if site.name == "signal.alarm" else 1))
    if amount == 0:
        return
    for around in site.around:
        within = around.path and all(step.direct for step in around.path)
        if around.limit.name in _BY_ALARM and (within or around.limit.name not in ALARMS):
            long = f" of {seconds(around.limit.seconds)}" if around.limit.seconds else ""
            yield site.report(
                f"this alarm takes the place of the one{long} that bounds {around.limit.label}: a process has only one,"
                " and the outer limit is gone for good",
                "use a limit of its own for the inner work, such as `timeout=`, or `deadlint_budget`",
                related=(Related(around.limit.path, around.limit.span, "the limit that is erased"),),
            )
            return


def in_module(module: Module) -> Iterator[Report]:
    """Limits in a module that the way in which their work runs makes void."""
    text = module.source.text
    if "prefect" in text and "timeout_seconds" in text:
        yield from _in_threads(module)
        yield from _under_flows(module)
    if "time_limit" in text and ("pool" in text or "-P" in text):
        yield from _on_pools(module)


# --- Prefect ---------------------------------------------------------------------------------------------------


def _in_threads(module: Module) -> Iterator[Report]:
    """`task.submit()` of a synchronous task with a limit whose body blocks: a thread cannot be interrupted there."""
    for call in (*module.calls,):
        if not (isinstance(call.func, ast.Attribute) and call.func.attr in ("submit", "map")):
            continue
        scope = module.walker.scope_of[call]
        for value in module.resolver.evaluate(call.func, scope):
            match value:
                case Attached(function=Function(scope=function)):
                    limit = _limit(function, module)
                    blocking = _blocks_past(function, limit, module) if limit is not None else None
                    if limit is not None and blocking and not _elsewhere(call, scope, module):
                        yield Report(
                            call,
                            f"the limit of {seconds(limit.seconds or 0)} on task `{function.name}` cannot interrupt"
                            f" {blocking} in the thread that `{call.func.attr}` runs it in: it ends when that ends, and"
                            " is only then reported as timed out",
                            "give that call a limit of its own, shorter than the task's",
                            related=(Related(limit.path, limit.span, "the limit"),),
                        )


def _limit(function: Scope, module: Module) -> Limit | None:
    """The limit that Prefect puts on a synchronous task."""
    if not isinstance(function.definition, ast.FunctionDef):
        return None
    found = (limit for limit in limits.of_decorators(function, module) if limit.name == _PREFECT)
    return next((limit for limit in found if limit.seconds is not None and limit.seconds > 0), None)


def _blocks_past(function: Scope, limit: Limit, module: Module) -> str | None:
    """A call in the body that may hold the thread for longer than the limit, in words."""
    home = limits.home_of(function, module)
    for call in home.walker.walk(function).calls:
        for target in home.targets(call):
            if target.name in BLOCKING:
                site = Site(home, call, function, (target,), target.name)
                if (longest := length(site)) is not None:
                    if longest > (limit.seconds or 0):
                        return shown(site)
                elif not bounded(site):
                    return shown(site)
    return None


def _elsewhere(call: ast.Call, scope: Scope, module: Module) -> bool:
    """Whether the flow around names a task runner, which may run tasks in processes of their own."""
    return "task_runner" in module.source.text


def _under_flows(module: Module) -> Iterator[Report]:
    """A synchronous task with a limit that a flow with a limit calls: measured, the flow's disarms the task's."""
    for call in module.calls:
        scope = module.walker.scope_of[call]
        flow = scope.enclosing_function()
        if flow is None or not isinstance(call.func, ast.Name):
            continue
        outer = next((one for one in limits.of_decorators(flow, module) if one.name == "prefect.flow"), None)
        if outer is None or not outer.seconds:
            continue
        for function in module.run_by(call, scope):
            inner = _limit(function.scope, module)
            if inner is not None and inner.seconds is not None and inner.seconds < outer.seconds:
                yield Report(
                    call,
                    f"the limit of {seconds(inner.seconds)} on task `{function.scope.name}` does not fire inside a flow"
                    " with a limit of its own, where the task is called and runs in the same thread (Prefect 3.9)",
                    "bound the calls in the task, or let one budget bound both",
                    Level.STRICT,
                    (Related(inner.path, inner.span, "the limit"),),
                )


# --- Celery ----------------------------------------------------------------------------------------------------


def _on_pools(module: Module) -> Iterator[Report]:
    """Time limits of Celery tasks in a file that runs them on a pool which knows none."""
    pool = _pool(module)
    if pool is None:
        return
    for scope in every_scope(module):
        if scope.kind != "function":
            continue
        for site in limits.decorator_sites(scope, module):
            if site.name in limits.CELERY_TASKS and limits.seconds_of(site.argument("time_limit")):
                yield Report(
                    site.call,
                    f"the time limit of task `{scope.name}` does nothing on the pool `{pool}`, on which the worker of"
                    " this file runs: only prefork ends tasks",
                    "run it on the prefork pool, or bound what the task waits for",
                )


def _pool(module: Module) -> str | None:
    for base, binding, scope in module.walker.attributes_named("worker_pool"):
        if base.endswith("conf") and binding.value is not None:
            match module.resolver.evaluate(binding.value, scope):
                case (Const(str() as pool),) if pool in _DEAF_POOLS:
                    return pool
    for call in module.calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("update", "worker_main", "start"):
            for keyword in call.keywords:
                match keyword:
                    case ast.keyword(arg="worker_pool", value=ast.Constant(value=str() as pool)) if pool in _DEAF_POOLS:
                        return pool
            nodes = (n for argument in call.args for n in ast.walk(argument) if isinstance(n, ast.Constant))
            words = " ".join(n.value for n in nodes if isinstance(n.value, str))
            found = _POOL.search(words) if call.func.attr != "update" else None
            if found is not None:
                return found[1]
    return None
