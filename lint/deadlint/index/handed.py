"""Limits on a function that do not stand on it: what runs it gives them, or its class, or its application."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from deadlint.index import amounts
from deadlint.index.limit_forms import APPLICATION, ATTACHED, CELERY_TASKS, CLASSES, HANDED, Form, Limit, build
from deadlint.index.scopes import Scope
from deadlint.index.values import Attached, External, Function, Result, Values
from deadlint.site import Site, Target

if TYPE_CHECKING:
    from deadlint.index.module import Module


def on_function(function: Scope, module: Module) -> Iterator[Limit]:
    """The limits that calls in the module, its class or its application put on a function."""
    if module.hands_limits:
        for call in module.naming(function.name):
            yield from _by_call(call, function, module)
    yield from _by_class(function, module)


def _by_call(call: ast.Call, function: Scope, module: Module) -> Iterator[Limit]:
    scope = module.walker.scope_of[call]
    match call.func:
        case ast.Attribute(attr=name) if name in ATTACHED:
            attached = module.resolver.evaluate(call.func, scope)
            if any(isinstance(v, Attached) and v.function.scope is function for v in attached):
                site = Site(module, call, scope, (Target(""),), f"{function.name}.{name}")
                yield from _in_forms(site, ATTACHED[name], f"task `{function.name}`")
            return
    for target in module.targets(call):
        form = HANDED.get(target.name)
        if form is not None and any(_is(argument, function, scope, module) for argument in call.args[:2]):
            yield from _in_forms(Site(module, call, scope, (target,), target.name), (form,), f"job `{function.name}`")


def _in_forms(site: Site, forms: tuple[Form, ...], label: str) -> Iterator[Limit]:
    for form in forms:
        limit = build(site, form, label)
        if limit is not None:
            yield limit


def _is(node: ast.expr, function: Scope, scope: Scope, module: Module) -> bool:
    values = module.resolver.evaluate(node, scope)
    return any(isinstance(v, Function) and v.scope is function for v in values)


def _by_class(function: Scope, module: Module) -> Iterator[Limit]:
    """`worker_timeout = 600` in a Luigi task, on its `run`."""
    owner = function.owner
    if owner is None or function.name != "run":
        return
    order = module.resolver.mro(owner)
    form = next((CLASSES[base.name] for base in order if isinstance(base, External) and base.name in CLASSES), None)
    if form is None:
        return
    for base in order:
        bindings = base.bindings.get(form.keyword) if isinstance(base, Scope) else None
        if not isinstance(base, Scope) or not bindings or bindings[-1].value is None:
            continue
        home = base.module.home or module
        amount = amounts.of_values(module.resolver.evaluate(bindings[-1].value, base), form.scale)
        where = home.source.path, home.span(bindings[-1].value)
        if amount.seconds is None or amount.seconds > 0:  # 0 is no limit
            yield Limit(amount.seconds, f"task `{owner.name}`", form.layer, *where, form.keyword, amount.default)
        return


def of_application(decorator: Site, label: str) -> Iterator[Limit]:
    """`app.conf.task_time_limit = 600`: what the application of a Celery task sets for all tasks without their own."""
    if decorator.name not in CELERY_TASKS:
        return
    module = _home(decorator)
    if module is None or "task_" not in module.source.text:
        return
    own = {k.arg for k in decorator.call.keywords}
    for setting, kind in APPLICATION.items():
        if ("time_limit" if kind == "hard" else "soft_time_limit") in own:
            continue
        for node, values in _settings(setting, module):
            amount = amounts.of_values(values)
            where = module.source.path, module.span(node)
            yield Limit(amount.seconds, label, "task", *where, setting, amount.default)


def _home(decorator: Site) -> Module | None:
    """The module that a Celery application is configured in, as far as that is where it is made."""
    receiver = decorator.target.receiver
    if isinstance(receiver, Result) and receiver.scope is not None:
        return receiver.scope.module.home or decorator.module
    return decorator.module


def _settings(name: str, module: Module) -> Iterator[tuple[ast.expr, Values]]:
    """Where the module sets an option of its application: `app.conf.x = …`, `app.conf.update(x=…)`."""
    for base, binding, scope in module.walker.attributes_named(name):
        if base.endswith("conf") and binding.value is not None:
            yield binding.value, module.resolver.evaluate(binding.value, scope)
    for call in module.calls:
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == "update"):
            continue
        if not ast.unparse(call.func.value).endswith("conf"):
            continue
        site = Site(module, call, module.walker.scope_of[call], (Target(""),), "conf.update")
        given = next((k.value for k in call.keywords if k.arg == name), None)
        if given is not None:
            yield given, site.values(given)
        elif call.args:
            values = amounts.under_key(site.values(call.args[0]), name)
            if values and values != site.values(call.args[0]):
                yield call.args[0], values


def awaited(call: ast.Call, scope: Scope, module: Module) -> Iterator[Limit]:
    """The `result(timeout)` or `wait_for` that waits for what a call hands to somebody else: `pool.submit(f)`."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr in _SUBMITTING):
        return
    parents = module.walker.parents
    parent = parents.get(call)
    match parent:
        case ast.Attribute(attr=name) if name in _WAITS:
            waiting = parents.get(parent)
            if isinstance(waiting, ast.Call) and waiting.func is parent:
                yield from _waited(waiting, scope, module)
        case ast.Assign(targets=[ast.Name(id=name)]):
            for other in scope.calls:
                match other.func:
                    case ast.Attribute(value=ast.Name(id=held), attr=method) if held == name and method in _WAITS:
                        if _stands_behind(other, parent, scope, module):
                            yield from _waited(other, scope, module)


_SUBMITTING = frozenset({"submit", "apply_async", "delay", "run_coroutine_threadsafe"})
_WAITS = frozenset({"result", "get"})
_RESULT = Form("timeout", 0, "wait")


def _stands_behind(other: ast.Call, assignment: ast.Assign, scope: Scope, module: Module) -> bool:
    """Whether a wait stands after the hand-over, in the same block or one within it."""
    block = scope.blocks.get(module.statement(other))
    home = scope.blocks.get(assignment)
    return other.lineno >= assignment.lineno and block is not None and home is not None and block.within(home)


def _waited(waiting: ast.Call, scope: Scope, module: Module) -> Iterator[Limit]:
    targets = module.targets(waiting) or (Target(""),)
    site = Site(module, waiting, scope, targets, targets[0].name)
    shown = ast.unparse(waiting.func)
    limit = build(site, _RESULT, f"`{shown}`" if len(shown) <= 60 else "the wait for it")
    if limit is not None:
        yield limit
