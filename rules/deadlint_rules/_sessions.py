"""What a file does with its database sessions: each call on one, and the transaction that it stands in."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal
from weakref import WeakKeyDictionary

from deadlint.index.module import Module
from deadlint.index.resolve import Resolver
from deadlint.index.scopes import Scope, dotted
from deadlint.index.values import (
    UNKNOWN,
    Const,
    External,
    Mapping,
    Member,
    Result,
    Value,
    Values,
)
from deadlint.site import Site, Target

from deadlint_rules import _postgres, _sql
from deadlint_rules._postgres import MAKERS
from deadlint_rules._statement_texts import function_of, settings_in, sql_texts

SQLALCHEMY = (
    "sqlalchemy.Connection", "sqlalchemy.Engine", "sqlalchemy.orm.Session",
    "sqlalchemy.ext.asyncio.AsyncConnection", "sqlalchemy.ext.asyncio.AsyncSession",
)  # fmt: skip
_PSYCOPG = (
    "psycopg.Connection", "psycopg.AsyncConnection", "psycopg.Cursor", "psycopg.AsyncCursor",
    "psycopg.ClientCursor", "psycopg.AsyncClientCursor",
)  # fmt: skip
ASYNCPG = ("asyncpg.Connection", "asyncpg.Pool")
_DATASETS = ("osgeo.ogr.Open", "osgeo.gdal.OpenEx", "ogr.Open", "gdal.OpenEx")
_TYPES = (*_PSYCOPG, "psycopg2.cursor", *ASYNCPG, *SQLALCHEMY, *_DATASETS)
_STATEMENTS = frozenset(
    {
        "execute", "executemany", "stream", "copy", "copy_expert", "copy_from", "copy_to", "callproc", "fetch",
        "fetchrow", "fetchval", "exec_driver_sql", "scalar", "scalars", "ExecuteSQL", "copy_records_to_table",
    }
)  # fmt: skip
# The calls that send a statement, by canonical name: where the rules on single statements look.
EXECUTIONS = frozenset(f"{kind}.{method}" for kind in _TYPES for method in _STATEMENTS)
# Words that a file has where one of them may set a limit.
WORDS = tuple(
    (name, library) for name in _sql.LIMITS for library in ("psycopg", "asyncpg", "sqlalchemy", "sqlmodel", "PG:")
)
_HOLDERS = (*_TYPES, "psycopg2.connection")
# What hands out its first argument, or `bind=`, again: a cursor on a connection, a session on an engine.
_WRAPPING = frozenset(
    {
        "psycopg.ClientCursor", "psycopg.AsyncClientCursor", "psycopg.Cursor", "psycopg.AsyncCursor",
        "sqlalchemy.orm.sessionmaker", "sqlalchemy.orm.Session", "sqlalchemy.ext.asyncio.async_sessionmaker",
        "sqlalchemy.ext.asyncio.AsyncSession",
    }
)  # fmt: skip
# What is one connection from its checkout to its return.
CHECKOUTS = frozenset(
    {
        "psycopg.Connection", "psycopg.AsyncConnection", "psycopg2.connection", "asyncpg.Connection",
        "sqlalchemy.Connection", "sqlalchemy.orm.Session", "sqlalchemy.ext.asyncio.AsyncConnection",
        "sqlalchemy.ext.asyncio.AsyncSession",
    }
)  # fmt: skip
_SETUP_WORDS = ("timeout", "time_limit", "set_limit")

UseKind = Literal["statement", "commit", "rollback", "transaction", "helper"]


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """One call on a session. `chain` leads from what it is a method of to the call that opened the session."""

    kind: UseKind
    site: Site
    target: Target
    chain: tuple[Result, ...]
    texts: tuple[str, ...] = ()

    @property
    def type(self) -> str:
        """The canonical type whose method is called."""
        return self.target.name.rpartition(".")[0]

    @property
    def is_async(self) -> bool:
        """Whether the driver is an asynchronous one."""
        return self.type in ASYNCPG or self.type.startswith(("psycopg.Async", "sqlalchemy.ext.asyncio."))

    @property
    def scope(self) -> Scope:
        """The function, or the module, that the call stands in."""
        return self.site.scope.enclosing_function() or self.site.scope.module

    @property
    def position(self) -> tuple[int, int]:
        """Where the call ends."""
        call = self.site.call
        return (call.end_lineno or 0, call.end_col_offset or 0)

    @property
    def opened(self) -> ast.Call | None:
        """The call that opened the session."""
        return self.chain[-1].call if self.chain else None

    @property
    def checkout(self) -> ast.Call | None:
        """The call that gave this connection: the opening one, or one that took it from a pool or an engine."""
        found = [r.call for r in self.chain if r.name in CHECKOUTS and r.call is not None]
        return found[-1] if found else self.opened

    @property
    def calls(self) -> set[ast.Call]:
        """Every call on the way to the session."""
        return {r.call for r in self.chain if r.call is not None}

    @property
    def settings(self) -> list[_sql.Setting]:
        """The limits that the statement sets, with bound values where they are known."""
        return [_with_value(s, self, text) for text in self.texts for s in _sql.settings(text)]

    @property
    def limits(self) -> list[_sql.Setting]:
        """Those of them that can end a statement of this session."""
        return [s for s in self.settings if s.bounds and not s.role]

    @property
    def works(self) -> bool:
        """Whether it may do more than set something."""
        return not self.texts or any(_sql.works(text) for text in self.texts)

    def parameter(self, setting: _sql.Setting, text: str) -> ast.expr | None:
        """The expression that is bound in place of the setting's value, where it is in plain sight."""
        return parameter_of(setting, self, text)

    @property
    def parameters(self) -> list[ast.expr]:
        """What is bound to the statement."""
        call = self.site.call
        if self.type in ASYNCPG:
            return call.args[1:]
        named = [k.value for k in call.keywords if k.arg in ("params", "vars", "parameters")]
        return [*call.args[1:2], *named]


def _with_value(setting: _sql.Setting, use: Use, text: str) -> _sql.Setting:
    """The setting with the value that is bound in its place, where that is a constant."""
    node = parameter_of(setting, use, text)
    if node is None:
        return setting
    match use.site.values(node):
        case (Const(value=value),) if isinstance(value, str | int | float) and not isinstance(value, bool):
            return replace(setting, value=str(value))
    return setting


def parameter_of(setting: _sql.Setting, use: Use, text: str) -> ast.expr | None:
    """The expression that is bound in place of the setting's value, where it is in plain sight."""
    mark = setting.placeholder
    if mark is None or not use.parameters:
        return None
    first = use.parameters[0]
    if mark.startswith("$"):
        index = int(mark[1:]) - 1
        given = use.parameters[: index + 1]
        return given[index] if index < len(given) and not any(isinstance(g, ast.Starred) for g in given) else None
    if mark.startswith(("%(", ":")):
        key = mark[2:].rpartition(")")[0] if mark.startswith("%(") else mark[1:]
        return _entry(first, key)
    marks = list(_sql.PLACEHOLDER.finditer(text))
    place = next((i for i, m in enumerate(marks) if _before(text, m.start(), setting.name)), None)
    if isinstance(first, ast.Tuple | ast.List) and place is not None and place < len(first.elts):
        return first.elts[place]
    return None


def _before(text: str, end: int, name: str) -> bool:
    head = text[:end].rstrip().rstrip("=,").rstrip().rstrip("'\"").lower()
    return head.endswith(name) or head.removesuffix(" to").endswith(name)


def _entry(node: ast.expr, key: str) -> ast.expr | None:
    if not isinstance(node, ast.Dict):
        return None
    for name, value in zip(node.keys, node.values, strict=True):
        if isinstance(name, ast.Constant) and name.value == key:
            return value
    return None


# --- following a connection to where it was opened -------------------------------------------------------------


def chain_of(value: Value | None, resolver: Resolver) -> tuple[Result, ...]:
    """The results that lead from `value` to the call that opened its session, innermost first."""
    found: list[Result] = []
    while value is not None and len(found) < 12:
        match value:
            case Result(receiver=receiver):
                found.append(value)
                value = receiver if receiver is not None else _wrapped(value, resolver)
            case Member(receiver=receiver):
                value = receiver
            case _:
                break
    return tuple(found)


def _wrapped(value: Result, resolver: Resolver) -> Value | None:
    call = value.call
    if call is None or value.scope is None or value.name not in _WRAPPING:
        return None
    for node in (*call.args[:1], *(k.value for k in call.keywords if k.arg in ("bind", "connection"))):
        for inner in resolver.evaluate(node, value.scope):
            if isinstance(inner, Result | Member):
                return inner
    return None


# --- all sessions of a file ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Autocommit:
    """A place that switches autocommit of what `owner` made on or off; `value` is None where that is not known."""

    owner: ast.Call | None
    scope: Scope
    position: tuple[int, int]
    value: bool | None


class Sessions:
    """The uses of every session in one module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.resolver = module.resolver

    @cached_property
    def uses(self) -> tuple[Use, ...]:
        """Every call on something that leads to a session, in the order of the source."""
        found = [use for site in self.module.sites for use in self._uses_of(site)]
        return tuple(sorted(found, key=lambda u: u.position))

    def _uses_of(self, site: Site) -> Iterator[Use]:
        for target in site.targets:
            kind, _, method = target.name.rpartition(".")
            chain = chain_of(target.receiver, self.resolver)
            if kind in _TYPES and method in _STATEMENTS:
                yield Use("statement", site, target, chain, self._texts(site))
            elif kind in _HOLDERS and method in ("commit", "rollback"):
                yield Use("commit" if method == "commit" else "rollback", site, target, chain)
            elif kind in _HOLDERS and method in ("transaction", "begin") and kind not in ("sqlalchemy.Engine",):
                yield Use("transaction", site, target, chain)
        yield from self._helpers(site)

    def _texts(self, site: Site) -> tuple[str, ...]:
        named = [k.value for k in site.call.keywords if k.arg in ("query", "sql", "statement", "operation")]
        for node in (*site.call.args[:1], *named):
            return sql_texts(site.values(node), self.resolver, site.scope)
        return ()

    def _helpers(self, site: Site) -> Iterator[Use]:
        """Calls that hand a connection to something elsewhere that sets a limit, or says that it does."""
        if not self._sets_elsewhere(site):
            return
        for node in (*site.call.args, *(k.value for k in site.call.keywords)):
            for value in site.values(node):
                chain = chain_of(value, self.resolver)
                if any(r.name in (*CHECKOUTS, *_TYPES) for r in chain):
                    yield Use("helper", site, site.target, chain)

    def _sets_elsewhere(self, site: Site) -> bool:
        functions = [f for v in site.values(site.call.func) if (f := function_of(v)) is not None]
        if any(f.module is self.module.scope for f in functions):
            return False  # its statements are among the uses
        if any(not s.setting.none for f in functions for s in settings_in(f, self.resolver)):
            return True
        called = dotted(site.call.func).rpartition(".")[2] if functions else site.target.name.rpartition(".")[2]
        return any(word in called.lower() for word in _SETUP_WORDS)

    @cached_property
    def _by_opening(self) -> dict[ast.Call, list[Use]]:
        found: dict[ast.Call, list[Use]] = defaultdict(list)
        for use in self.uses:
            if use.opened is not None:
                found[use.opened].append(use)
        return found

    def of(self, opening: Site) -> list[Use]:
        """The uses of the session that a call opened, itself or through a `partial`."""
        partial = opening.target.partial
        found = self._by_opening.get(opening.call, [])
        return found if partial is None else [*found, *self._by_opening.get(partial, [])]

    def use_of(self, site: Site) -> Use | None:
        """The use that the site's call is."""
        return next((u for u in self.uses if u.site.call is site.call and u.target.name == site.name), None)

    # --- autocommit and transactions -------------------------------------------------------------------------

    @cached_property
    def _autocommits(self) -> list[_Autocommit]:
        found = [*self._assigned()]
        for site in self.module.sites:
            value = _switched(site)
            if value is not None:
                chain = chain_of(site.target.receiver, self.resolver)
                # An engine's options are those of a new engine, a connection's are its own.
                copied = site.target.name.endswith("Engine.execution_options")
                owner = site.call if copied else chain[0].call if chain else None
                scope = site.scope.enclosing_function() or site.scope.module
                position = (site.call.lineno, site.call.col_offset)
                found.append(_Autocommit(owner, scope, position, value if isinstance(value, bool) else None))
        return found

    def _assigned(self) -> Iterator[_Autocommit]:
        """`conn.autocommit = True`."""
        for name in ("autocommit", "isolation_level"):
            for _, binding, scope in self.module.walker.attributes_named(name):
                match binding.node:
                    case ast.Assign(targets=[ast.Attribute(value=owner), *_]):
                        values = self.resolver.evaluate(owner, scope)
                    case _:
                        continue
                state = self.resolver.evaluate(binding.value, scope) if binding.value is not None else (UNKNOWN,)
                where = scope.enclosing_function() or scope.module
                for value in values:
                    for made in chain_of(value, self.resolver)[:1]:
                        yield _Autocommit(made.call, where, binding.position, _isolation(state))

    def autocommit(self, use: Use) -> bool | None:
        """Whether each statement is a transaction of its own where `use` stands; None where that is not known."""
        if use.type in ASYNCPG:
            return True
        marks = [m for m in self._autocommits if m.owner in use.calls]
        here = [m for m in marks if m.scope is use.scope and m.position < use.position]
        if here:
            return here[-1].value
        elsewhere = {m.value for m in marks if m.scope is not use.scope}
        if elsewhere:
            return elsewhere.pop() if len(elsewhere) == 1 else None
        return self._opened_in_autocommit(use)

    def _opened_in_autocommit(self, use: Use) -> bool | None:
        opening = self.module.site(use.opened) if use.opened is not None else None
        if opening is None:
            return None
        name = next((t.name for t in opening.targets if t.name in MAKERS), None)
        if name is None:
            return None
        site = replace(opening, name=name)
        match MAKERS[name]:
            case _postgres.Maker(driver="psycopg", holds="pool"):
                argument = site.argument("kwargs")
                states = [
                    v.get("autocommit") or (Const(False),) if isinstance(v, Mapping) else (UNKNOWN,)
                    for v in argument.values
                ]
                return _isolation(states[0]) if states else False
            case _postgres.Maker(driver="psycopg"):
                return _isolation(site.argument("autocommit").values or (Const(False),))
            case _postgres.Maker(driver="psycopg2"):
                return False
            case _postgres.Maker(holds="engine"):
                return _isolation(site.argument("isolation_level").values or (Const(False),))
        return None

    def in_transaction(self, use: Use) -> bool | None:
        """Whether a transaction is open where `use` stands, whatever autocommit says; None where it may be."""
        if self.blocks(use) or any(len(_sql.statements(text)) > 1 for text in use.texts):
            return True
        before = [u for u in self.uses if u.calls & use.calls and u.scope is use.scope and u.position < use.position]
        if any(u.kind == "transaction" for u in before):
            return True
        if any(_sql.begins(text) for u in before for text in u.texts):
            return True
        elsewhere = (u for u in self.uses if u.calls & use.calls and u.scope is not use.scope)
        if any(u.kind == "transaction" or any(_sql.begins(t) for t in u.texts) for u in elsewhere):
            return None
        return False if use.opened is not None else None

    def lasts(self, use: Use) -> bool:
        """Whether what `use` sets for the session outlasts a rollback, or nothing is left to roll back."""
        if self.autocommit(use) is not False and not self.blocks(use):
            return True
        here = [u for u in self.uses if u.scope is use.scope and u.calls & use.calls]
        return any(u.kind == "commit" and u.position > use.position for u in here) or self.closes(here)

    def blocks(self, use: Use) -> list[ast.With | ast.AsyncWith]:
        """The `with` blocks around `use` that are a transaction on its connection, innermost first."""
        found = []
        for node in self.module.ancestors(use.site.call):
            if isinstance(node, ast.With | ast.AsyncWith) and any(
                self._is_transaction(item.context_expr, use) for item in node.items
            ):
                found.append(node)
        return found

    def _is_transaction(self, node: ast.expr, use: Use) -> bool:
        for value in self.resolver.evaluate(node, use.site.scope):
            match value:
                case Result(name=name) if name.endswith((".transaction", ".begin")) or name == "psycopg2.connection":
                    if use.calls & {r.call for r in chain_of(value, self.resolver)}:
                        # `with psycopg2.connect(…)` is a transaction too, but so is the whole connection.
                        return not (name == "psycopg2.connection" and isinstance(node, ast.Call))
        return False

    def closes(self, uses: list[Use]) -> bool:
        """Whether a `with` ends the connection, so that a rollback on an error is the end of it anyhow."""
        rolled_back = any(u.kind == "rollback" for u in uses)
        checkouts = {u.checkout for u in uses}
        return not rolled_back and all(c is not None and self._entered(c) for c in checkouts)

    def _entered(self, call: ast.Call) -> bool:
        node: ast.AST | None = call
        while isinstance(node, ast.Call | ast.Await):
            node = self.module.walker.parents.get(node)
        return isinstance(node, ast.withitem)


def _switched(site: Site) -> bool | str | None:
    """What a call makes of autocommit: on, off, `"unknown"`; None where it does not touch it."""
    kind, _, method = site.target.name.rpartition(".")
    if kind not in _HOLDERS:
        return None
    match method:
        case "set_autocommit":
            argument = site.argument("value", 0)
        case "set_isolation_level":
            argument = site.argument("level", 0)
        case "set_session":
            argument = site.argument("autocommit", 3)
        case "execution_options":
            argument = site.argument("isolation_level")
        case _:
            return None
    if argument.absent:
        return None
    state = _isolation(argument.values)
    return "unknown" if state is None else state


def _isolation(values: Values) -> bool | None:
    """Autocommit as a flag, or as an isolation level."""
    found = {_is_autocommit(value) for value in values}
    return found.pop() if len(found) == 1 else None


def _is_autocommit(value: Value) -> bool | None:
    match value:
        case Const(bool() as flag):
            return flag
        case Const(int() as level):
            return level == 0  # psycopg2's ISOLATION_LEVEL_AUTOCOMMIT
        case Const(str() as name):
            return name.upper() == "AUTOCOMMIT"
        case Const(value=None):
            return False
        case External(name=name) if "ISOLATION_LEVEL_" in name:
            return name.endswith("_AUTOCOMMIT")
    return None


_KNOWN: WeakKeyDictionary[Module, Sessions] = WeakKeyDictionary()


def sessions(module: Module) -> Sessions:
    """The sessions of a module, gathered once."""
    if module not in _KNOWN:
        _KNOWN[module] = Sessions(module)
    return _KNOWN[module]


def use_of(site: Site) -> Use | None:
    """The use that the site's call is; None where the file names no limit at all."""
    text = site.module.source.text.lower()
    return sessions(site.module).use_of(site) if any(name in text for name in _sql.LIMITS) else None


def imports(module: Module, package: str) -> bool:
    """Whether the top level of a file imports something of `package`."""
    targets = (b.target for bindings in module.scope.bindings.values() for b in bindings if b.kind == "import")
    return any(target.partition(".")[0] == package for target in targets)
