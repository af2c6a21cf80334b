"""Functions that run for each connection of an engine or a pool, and the limits that they set on it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from deadlint.index.scopes import Scope
from deadlint.index.values import NONE, External, Value
from deadlint.site import Site

from deadlint_rules import _sql
from deadlint_rules._postgres import MAKERS, SERVER_SIDE, url
from deadlint_rules._session_verdicts import Judged, Verdict
from deadlint_rules._sessions import chain_of
from deadlint_rules._statement_texts import function_of, settings_in

When = Literal["connect", "checkout", "reset"]
_LISTENING = frozenset({"sqlalchemy.event.listens_for", "sqlalchemy.event.listen"})
_EVERY_ENGINE = frozenset(
    {"sqlalchemy.Engine", "sqlalchemy.pool.Pool", "sqlalchemy.pool.QueuePool", "sqlalchemy.orm.Session"}
)
# Events that come once in a connection's life; all others come again for each use of it.
_ONCE = frozenset({"connect", "first_connect"})


@dataclass(frozen=True, slots=True)
class Hook:
    """A function that runs for a connection: `connect` once in its life, `checkout` at each use.

    `reset` is once, with the pool undoing all settings when the connection comes back. `scope` is None where the
    function is not known.
    """

    when: When
    scope: Scope | None


def hooks(site: Site) -> Iterator[Hook]:
    """The hooks of the engine or pool that the site's call makes."""
    match MAKERS[site.name]:
        case maker if maker.holds == "engine":
            yield from _events(site)
        case maker if maker.driver == "asyncpg" and maker.holds == "pool":
            yield from _given(site, "setup", "checkout")
            yield from _given(site, "init", "reset")
        case maker if maker.driver == "psycopg" and maker.holds == "pool":
            yield from _given(site, "configure", "connect")
            yield from _given(site, "check", "checkout")


def _given(site: Site, name: str, when: When) -> Iterator[Hook]:
    argument = site.argument(name)
    if argument.values and argument.values != (NONE,):
        yield from (Hook(when, function_of(value)) for value in argument.values)


def _events(site: Site) -> Iterator[Hook]:
    for listener in site.module.sites:
        if listener.target.name not in _LISTENING or len(listener.call.args) < 2:
            continue
        target, event = listener.call.args[:2]
        if not any(_concerns(value, site) for value in listener.values(target)):
            continue
        name = event.value if isinstance(event, ast.Constant) else ""
        when: When = "connect" if name in _ONCE else "checkout"
        for scope in _listeners(listener):
            yield Hook(when, scope)


def _concerns(value: Value, site: Site) -> bool:
    """Whether a listener on `value` hears of the engine that the site's call makes; also where that is open."""
    if isinstance(value, External):
        return value.name in _EVERY_ENGINE
    chain = chain_of(value, site.module.resolver)
    return not chain or chain[-1].call is site.call or not _is_engine(site, chain[-1].call)


def _is_engine(site: Site, call: ast.Call | None) -> bool:
    made = site.module.site(call) if call is not None else None
    return made is not None and any(t.name in MAKERS for t in made.targets)


def _listeners(listener: Site) -> Iterator[Scope | None]:
    if listener.target.name.endswith(".listens_for"):
        parent = listener.module.walker.parents.get(listener.call)
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
            yield listener.module.walker.scope_of[parent]
    elif len(listener.call.args) > 2:
        yield from (function_of(value) for value in listener.values(listener.call.args[2]))


Fault = Literal["refused", "outside", "zero"]


@dataclass(frozen=True, slots=True)
class HookFault:
    """What is wrong with a limit that a hook sets: its value is bound, there is no transaction, it is 0."""

    fault: Fault
    setting: _sql.Setting
    call: ast.Call


def hook_faults(site: Site) -> Iterator[HookFault]:
    """The faults of an engine's or a pool's hooks that have rules of their own."""
    for hook in hooks(site):
        for found in settings_in(hook.scope, site.module.resolver) if hook.scope is not None else ():
            setting = found.setting
            bound = len(found.call.args) > 1 or bool(found.call.keywords)
            if setting.placeholder and not setting.function and bound and driver(site) in SERVER_SIDE:
                yield HookFault("refused", setting, found.call)
            elif setting.local is True and MAKERS[site.name].driver == "asyncpg":
                yield HookFault("outside", setting, found.call)
            elif setting.name == _sql.STATEMENT and setting.none:
                yield HookFault("zero", setting, found.call)


def driver(site: Site) -> str:
    """The driver of the connections that the site's call makes; empty where an engine's URL does not say."""
    made = MAKERS[site.name]
    return url(site).driver if made.holds == "engine" else made.driver


def judge_hooks(site: Site) -> Judged:
    """Whether the hooks of an engine or a pool bound its sessions."""
    found = [_judge(hook, site) for hook in hooks(site)]
    for wanted in (Verdict.HOLDS, Verdict.UNDONE):
        for one in found:
            if one.verdict is wanted:
                return one
    return Judged(Verdict.NONE)


def _judge(hook: Hook, site: Site) -> Judged:
    if hook.scope is None:
        return Judged(Verdict.HOLDS)  # unknown, so not our word against it
    for found in settings_in(hook.scope, site.module.resolver):
        if hook.when == "checkout":
            return Judged(Verdict.HOLDS, found.call)
        if hook.when == "reset" or found.setting.local is True:
            return Judged(Verdict.UNDONE, found.call)
        lasts = MAKERS[site.name].driver == "psycopg" or _committed(hook.scope, found.call, site)
        return Judged(Verdict.HOLDS if lasts else Verdict.UNDONE, found.call)
    return Judged(Verdict.NONE)


def _committed(scope: Scope, setting: ast.Call, site: Site) -> bool:
    """Whether what `setting` sets outlasts a rollback: in autocommit, or committed after it."""
    owner = site.module.walker.scope_of.get(setting, scope)
    autocommit = False
    for (_, name), bindings in owner.attributes.items():
        for binding, _ in bindings:
            if name in ("autocommit", "isolation_level") and binding.position < (setting.lineno, setting.col_offset):
                autocommit = not (isinstance(binding.value, ast.Constant) and not binding.value.value)
    if autocommit:
        return True
    later = [*owner.calls, *site.module.resolver.walked(scope).calls]
    return any(
        isinstance(c.func, ast.Attribute)
        and c.func.attr in ("commit", "set_session", "set_isolation_level", "set_autocommit")
        and (c.func.attr != "commit" or c.lineno >= setting.lineno)
        for c in later
    )
