"""What a file does with its database sessions: which limits it sets on them, and whether these hold."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from itertools import groupby
from typing import Literal
from weakref import WeakKeyDictionary

from deadlint.index import fold
from deadlint.index.module import Module
from deadlint.index.resolve import Resolver
from deadlint.index.scopes import Scope, dotted
from deadlint.index.values import (
    NONE,
    UNKNOWN,
    Const,
    External,
    Function,
    Mapping,
    Member,
    Partial,
    Result,
    Template,
    Value,
    Values,
)
from deadlint.site import Site, Target

from deadlint_rules import _postgres, _sql
from deadlint_rules._postgres import MAKERS, text_of

_SQLALCHEMY = (
    "sqlalchemy.Connection", "sqlalchemy.Engine", "sqlalchemy.orm.Session",
    "sqlalchemy.ext.asyncio.AsyncConnection", "sqlalchemy.ext.asyncio.AsyncSession",
)  # fmt: skip
_PSYCOPG = (
    "psycopg.Connection", "psycopg.AsyncConnection", "psycopg.Cursor", "psycopg.AsyncCursor",
    "psycopg.ClientCursor", "psycopg.AsyncClientCursor",
)  # fmt: skip
_ASYNCPG = ("asyncpg.Connection", "asyncpg.Pool")
_DATASETS = ("osgeo.ogr.Open", "osgeo.gdal.OpenEx", "ogr.Open", "gdal.OpenEx")
_TYPES = (*_PSYCOPG, "psycopg2.cursor", *_ASYNCPG, *_SQLALCHEMY, *_DATASETS)
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
_CHECKOUTS = frozenset(
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
        return self.type in _ASYNCPG or self.type.startswith(("psycopg.Async", "sqlalchemy.ext.asyncio."))

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
        found = [r.call for r in self.chain if r.name in _CHECKOUTS and r.call is not None]
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
        if self.type in _ASYNCPG:
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


# --- what a statement's text is --------------------------------------------------------------------------------


def sql_texts(values: Values, resolver: Resolver, scope: Scope) -> tuple[str, ...]:
    """The texts of what is executed, with `HOLE` for what is unknown; nothing for what is no text."""
    found = (_sql_text(value, resolver, scope) for value in values)
    return tuple(text for text in found if text is not None)


def _sql_text(value: Value, resolver: Resolver, scope: Scope) -> str | None:
    plain = text_of(value)
    if plain is not None:
        return plain
    match value:
        case Result(name="psycopg.sql.SQL.format" | "psycopg2.sql.SQL.format", receiver=Result() as made):
            text = _sql_text(made, resolver, scope)
            return None if text is None else text_of(fold.formatted(Template((text,)) if "\0" in text else Const(text)))
        case Result(name="psycopg.sql.SQL" | "psycopg2.sql.SQL" | "sqlalchemy.text", call=ast.Call(args=[first, *_])):
            where = value.scope or scope
            return next(iter(sql_texts(resolver.evaluate(first, where), resolver, where)), None)
        case Result(name="sqlalchemy.select", call=ast.Call(args=[first, *_])):
            where = value.scope or scope
            return next((_selected(v, resolver, where) for v in resolver.evaluate(first, where)), None)
        case Result(receiver=Result(name="sqlalchemy.text") as made):  # `.bindparams(…)`
            return _sql_text(made, resolver, scope)
    return None


def _selected(value: Value, resolver: Resolver, scope: Scope) -> str | None:
    """`select(func.set_config(…))` as SQL."""
    match value:
        case Result(name="sqlalchemy.func.set_config", call=ast.Call(args=[_, _, _] as args)):
            words = []
            for node in args:
                match resolver.evaluate(node, value.scope or scope):
                    case (Const(bool() as flag),):
                        words.append(str(flag).lower())
                    case (Const(str() as text),):
                        words.append(f"'{text}'")
                    case _:
                        words.append(f"'{_sql.HOLE}'")
            return f"SELECT set_config({', '.join(words)})"
    return None


_EXECUTING = frozenset({"execute", "exec_driver_sql", "scalar", "fetch", "fetchval"})


@dataclass(frozen=True, slots=True)
class SetIn:
    """A limit on statements that a function sets on a connection that it is given, and where."""

    setting: _sql.Setting
    call: ast.Call


def settings_in(scope: Scope, resolver: Resolver, depth: int = 2) -> Iterator[SetIn]:
    """The limits on statements that a function sets, itself or through a function that it calls."""
    for call in resolver.walked(scope).calls:
        match call.func:
            case ast.Attribute(attr=name) if name in _EXECUTING and call.args:
                for text in sql_texts(resolver.evaluate(call.args[0], scope), resolver, scope):
                    yield from (SetIn(s, call) for s in _sql.settings(text) if s.bounds)
            case ast.Name() | ast.Attribute() if depth:
                for value in resolver.evaluate(call.func, scope):
                    inner = function_of(value)
                    if inner is not None and inner is not scope:
                        yield from settings_in(inner, resolver, depth - 1)


def function_of(value: Value) -> Scope | None:
    """The function of the project that a value is, bare or with arguments bound."""
    match value:
        case Function(scope=scope) | Partial(function=Function(scope=scope)):
            return scope
    return None


# --- all sessions of a file ------------------------------------------------------------------------------------


class Verdict(Enum):
    """What the uses of a session say about a limit on its statements."""

    NONE = "no limit is set"
    HOLDS = "a limit holds"
    UNDONE = "a limit is set, and a rollback undoes it"
    ENDED = "a limit is set, and it ends with a transaction before the last statement"
    LATE = "a limit is set, after the last statement"


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict, and the place that it rests on."""

    verdict: Verdict
    node: ast.Call | None = None


_NO_LIMIT = Judged(Verdict.NONE)


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
        self._module = module
        self._resolver = module.resolver

    @cached_property
    def uses(self) -> tuple[Use, ...]:
        """Every call on something that leads to a session, in the order of the source."""
        found = [use for site in self._module.sites for use in self._uses_of(site)]
        return tuple(sorted(found, key=lambda u: u.position))

    def _uses_of(self, site: Site) -> Iterator[Use]:
        for target in site.targets:
            kind, _, method = target.name.rpartition(".")
            chain = chain_of(target.receiver, self._resolver)
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
            return sql_texts(site.values(node), self._resolver, site.scope)
        return ()

    def _helpers(self, site: Site) -> Iterator[Use]:
        """Calls that hand a connection to something elsewhere that sets a limit, or says that it does."""
        if not self._sets_elsewhere(site):
            return
        for node in (*site.call.args, *(k.value for k in site.call.keywords)):
            for value in site.values(node):
                chain = chain_of(value, self._resolver)
                if any(r.name in (*_CHECKOUTS, *_TYPES) for r in chain):
                    yield Use("helper", site, site.target, chain)

    def _sets_elsewhere(self, site: Site) -> bool:
        functions = [f for v in site.values(site.call.func) if (f := function_of(v)) is not None]
        if any(f.module is self._module.scope for f in functions):
            return False  # its statements are among the uses
        if any(not no_limit(s.setting) for f in functions for s in settings_in(f, self._resolver)):
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
        for site in self._module.sites:
            value = _switched(site)
            if value is not None:
                chain = chain_of(site.target.receiver, self._resolver)
                # An engine's options are those of a new engine, a connection's are its own.
                copied = site.target.name.endswith("Engine.execution_options")
                owner = site.call if copied else chain[0].call if chain else None
                scope = site.scope.enclosing_function() or site.scope.module
                position = (site.call.lineno, site.call.col_offset)
                found.append(_Autocommit(owner, scope, position, value if isinstance(value, bool) else None))
        return found

    def _assigned(self) -> Iterator[_Autocommit]:
        """`conn.autocommit = True`."""
        for (_, name), bindings in self._module.walker.assigned_attributes.items():
            if name not in ("autocommit", "isolation_level"):
                continue
            for binding, scope in bindings:
                match binding.node:
                    case ast.Assign(targets=[ast.Attribute(value=owner), *_]):
                        values = self._resolver.evaluate(owner, scope)
                    case _:
                        continue
                state = self._resolver.evaluate(binding.value, scope) if binding.value is not None else (UNKNOWN,)
                where = scope.enclosing_function() or scope.module
                for value in values:
                    for made in chain_of(value, self._resolver)[:1]:
                        yield _Autocommit(made.call, where, binding.position, _isolation(state))

    def autocommit(self, use: Use) -> bool | None:
        """Whether each statement is a transaction of its own where `use` stands; None where that is not known."""
        if use.type in _ASYNCPG:
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
        opening = self._module.site(use.opened) if use.opened is not None else None
        if opening is None:
            return None
        name = next((t.name for t in opening.targets if t.name in MAKERS), None)
        if name is None:
            return None
        site = replace(opening, name=name, _cache={})
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
        return any(u.kind == "commit" and u.position > use.position for u in here) or self._closes(here)

    def blocks(self, use: Use) -> list[ast.With | ast.AsyncWith]:
        """The `with` blocks around `use` that are a transaction on its connection, innermost first."""
        found = []
        for node in self._module.ancestors(use.site.call):
            if isinstance(node, ast.With | ast.AsyncWith) and any(
                self._is_transaction(item.context_expr, use) for item in node.items
            ):
                found.append(node)
        return found

    def _is_transaction(self, node: ast.expr, use: Use) -> bool:
        for value in self._resolver.evaluate(node, use.site.scope):
            match value:
                case Result(name=name) if name.endswith((".transaction", ".begin")) or name == "psycopg2.connection":
                    if use.calls & {r.call for r in chain_of(value, self._resolver)}:
                        # `with psycopg2.connect(…)` is a transaction too, but so is the whole connection.
                        return not (name == "psycopg2.connection" and isinstance(node, ast.Call))
        return False

    # --- the verdict -----------------------------------------------------------------------------------------

    def judge(self, opening: Site) -> Judged:
        """Whether the statements of the file bound the session that `opening` opens."""
        uses = self.of(opening)
        if MAKERS[opening.name].holds in ("pool", "engine"):
            return self._each(self._checkouts(opening.call, uses))
        users = self._users(opening, uses)
        if users is not None:
            return self._each(users)
        return self._any(self._scopes(uses))

    def _scopes(self, uses: Iterable[Use]) -> list[list[Use]]:
        found: dict[Scope, list[Use]] = defaultdict(list)
        for use in uses:
            found[use.scope].append(use)
        return list(found.values())

    def _checkouts(self, opening: ast.Call, uses: list[Use]) -> list[Judged]:
        """The verdict for each connection that is taken from a pool or an engine in the file."""
        found: dict[ast.Call, list[Use]] = {call: [] for call in self._taken(opening)}
        for use in uses:
            checkout = use.checkout
            if checkout is not None:
                found.setdefault(use.site.call if checkout is opening else checkout, []).append(use)
        return [self._any(self._scopes(group)) for group in found.values()]

    def _taken(self, opening: ast.Call) -> Iterator[ast.Call]:
        """The calls that take a connection from what `opening` made, also those on which nothing is called."""
        for site in self._module.sites:
            for value in self._resolver.evaluate(site.call, site.scope):
                if isinstance(value, Result) and value.call is site.call and value.name in _CHECKOUTS:
                    chain = chain_of(value, self._resolver)
                    outermost = [r for r in chain if r.name in _CHECKOUTS][-1]
                    if len(chain) > 1 and chain[-1].call is opening and outermost.call is site.call:
                        yield site.call

    def _users(self, opening: Site, uses: list[Use]) -> list[Judged] | None:
        """The verdict for each caller of the function that makes the connection and returns it.

        None where it is not returned, or where the function sets the limit itself.
        """
        function = opening.function
        if function is None or not self._returns(function, opening.call):
            return None
        own = self._any(self._scopes(u for u in uses if u.scope is function))
        if own.verdict is not Verdict.NONE:
            return None
        callers = self._module.callers(function)
        by_scope = {id(group[0].scope): group for group in self._scopes(uses)}
        found = []
        for _, scope in callers:
            where = scope.enclosing_function() or scope.module
            group = by_scope.get(id(where))
            found.append(self._in_scope(group) if group else _NO_LIMIT)
        return found or [_NO_LIMIT]

    def _returns(self, function: Scope, opening: ast.Call) -> bool:
        handed = [*function.returns, *(y for y in function.yields if y is not None)]
        values = (v for node in handed for v in self._resolver.evaluate(node, function))
        return any(opening is r.call for v in values for r in chain_of(v, self._resolver))

    def _each(self, judged: list[Judged]) -> Judged:
        """One verdict for all: a limit holds only where it holds for each."""
        if not judged:
            return _NO_LIMIT
        return next((j for j in judged if j.verdict is not Verdict.HOLDS), judged[0])

    def _any(self, groups: list[list[Use]]) -> Judged:
        """One verdict for the functions that use a connection: it is enough that one of them sets a limit."""
        judged = [self._in_scope(group) for group in groups]
        for wanted in (Verdict.HOLDS, Verdict.ENDED, Verdict.UNDONE, Verdict.LATE):
            for one in judged:
                if one.verdict is wanted:
                    return one
        return _NO_LIMIT

    def _in_scope(self, uses: list[Use]) -> Judged:
        """Walk through the uses in one function in the order of the source, loops twice."""
        for use in uses:
            if use.kind == "helper":
                return Judged(Verdict.HOLDS, use.site.call)
        statements = [u for u in uses if u.kind == "statement"]
        if statements and all(_has_timeout(u) for u in statements):
            return Judged(Verdict.HOLDS, statements[0].site.call)
        walk = _Walk(self)
        for use in _in_order([u for u in uses if not self._handles_error(u)], 0):
            walk.step(use)
        return walk.judged(self._closes(uses))

    def _handles_error(self, use: Use) -> bool:
        """Whether it ends a transaction in an `except` that leaves the function: what follows is another way."""
        if use.kind == "statement":
            return False
        block = use.site.scope.blocks.get(use.site.call)
        handlers = [b.node for b in block.chain() if b.kind == "handler"] if block is not None else []
        leaving = (h.body[-1] for h in handlers if isinstance(h, ast.ExceptHandler))
        return any(isinstance(last, ast.Raise | ast.Return) for last in leaving)

    def _closes(self, uses: list[Use]) -> bool:
        """Whether a `with` ends the connection, so that a rollback on an error is the end of it anyhow."""
        rolled_back = any(u.kind == "rollback" for u in uses)
        checkouts = {u.checkout for u in uses}
        return not rolled_back and all(c is not None and self._entered(c) for c in checkouts)

    def _entered(self, call: ast.Call) -> bool:
        node: ast.AST | None = call
        while isinstance(node, ast.Call | ast.Await):
            node = self._module.walker.parents.get(node)
        return isinstance(node, ast.withitem)


class _Walk:
    """The state of one connection from statement to statement."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._state: Literal["none", "local", "pending", "session"] = "none"
        self._set: Use | None = None
        self._block: ast.AST | None = None  # the transaction that a local limit ends with
        self._before = False  # whether something ran before the first limit
        self._after = False
        self._how = Verdict.ENDED  # how the last limit was lost
        self._lost: Judged | None = None

    def step(self, use: Use) -> None:
        """Go on to the next use."""
        blocks = self._sessions.blocks(use)
        if self._block is not None and self._block not in blocks:
            self._end(commit=True)
        if use.kind in ("commit", "rollback"):
            self._end(commit=use.kind == "commit")
            return
        if use.kind != "statement":
            return
        limits = use.limits
        for setting in limits:
            self._sets(setting, use, blocks)
        if not limits and use.works:
            self._before = self._before or self._set is None
            self._after = self._set is not None
        if not limits and use.works and self._state == "none" and self._set is not None and self._lost is None:
            self._lost = Judged(self._how, self._set.site.call)
        for text in use.texts:
            if ended := _sql.ends(text):
                self._end(commit=ended == "commit")

    def _sets(self, setting: _sql.Setting, use: Use, blocks: list[ast.With | ast.AsyncWith]) -> None:
        self._set = use
        autocommit = self._sessions.autocommit(use)
        if setting.local is True:
            self._state = "local"
        elif autocommit is not False and not blocks:
            self._state = "session"
        elif self._state != "session":
            self._state = "pending"
        self._block = blocks[-1] if blocks and self._state != "session" else None

    def _end(self, *, commit: bool) -> None:
        """A transaction ends."""
        if self._state == "pending" and commit:
            self._state = "session"
        elif self._state in ("local", "pending"):
            self._how = Verdict.ENDED if self._state == "local" else Verdict.UNDONE
            self._state = "none"
        self._block = None

    def judged(self, closes: bool) -> Judged:
        """The verdict after the last use; `closes` where nothing can roll back and go on."""
        if self._set is None:
            return _NO_LIMIT
        if self._lost is not None:
            return self._lost
        if self._state == "pending" and self._block is None and not closes:
            return Judged(Verdict.UNDONE, self._set.site.call)
        if closes and self._before and not self._after:
            return Judged(Verdict.LATE, self._set.site.call)
        return Judged(Verdict.HOLDS, self._set.site.call)


def _in_order(uses: list[Use], depth: int) -> list[Use]:
    """The uses as they run: those in a loop twice, so that what its end does is seen at its start."""
    found: list[Use] = []
    for loop, group in groupby(uses, key=lambda u: _loop(u, depth)):
        inner = list(group)
        found += inner if loop is None else _in_order(inner, depth + 1) * 2
    return found


def _loop(use: Use, depth: int) -> ast.AST | None:
    """The loop around a use, the outermost at depth 0; a loop that takes a new connection each time is none."""
    block = use.site.scope.blocks.get(use.site.call)
    loops = [b.node for b in block.chain() if b.kind == "loop"][::-1] if block else []
    checkout = use.checkout
    around = use.site.scope.blocks.get(checkout) if checkout is not None else None
    new = {b.node for b in around.chain()} if around else set()
    loops = [loop for loop in loops if loop not in new]
    return loops[depth] if depth < len(loops) else None


def is_probe(site: Site) -> bool:
    """Whether a connection is only opened and closed again, to see whether the server is there."""
    node: ast.AST | None = site.parent
    match node:
        case ast.Attribute(attr="close"):
            return True
        case ast.Assign(targets=[ast.Name(id=name)]) if site.function is not None:
            loads = [
                n
                for n in ast.walk(site.function.node)
                if isinstance(n, ast.Name) and n.id == name and n.ctx.__class__ is ast.Load
            ]
            parents = [site.module.walker.parents.get(n) for n in loads]
            return bool(loads) and all(isinstance(p, ast.Attribute) and p.attr == "close" for p in parents)
    return False


def _has_timeout(use: Use) -> bool:
    """Whether asyncpg is told to cancel this statement on the server: `fetch(…, timeout=5)`."""
    if use.type not in _ASYNCPG:
        return False
    argument = use.site.argument("timeout")
    return not argument.absent and argument.values != (NONE,)


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


# --- faults of single statements -------------------------------------------------------------------------------


def refused(use: Use) -> tuple[_sql.Setting, str, bool] | None:
    """A `SET` whose value is bound where PostgreSQL takes none: the setting, the driver, and whether that is sure."""
    if use.kind != "statement":
        return None
    setting = next((s for s in use.settings if s.placeholder and not s.function and not s.role), None)
    if setting is None:
        return None
    if use.type.startswith("psycopg."):
        return (setting, "psycopg", True) if use.parameters and _binds_on_server(use) else None
    if use.type in _ASYNCPG:
        return (setting, "asyncpg", True) if use.parameters else None
    if use.type in _SQLALCHEMY:
        return _refused_by_engine(setting, use)
    return None


def _binds_on_server(use: Use) -> bool:
    """Whether psycopg's cursor is the usual one: a `ClientCursor` writes values in itself."""
    if "ClientCursor" in use.type:
        return False
    given = (k.arg for r in use.chain if r.call is not None for k in r.call.keywords)
    assigned = use.site.module.walker.assigned_attributes
    return "cursor_factory" not in given and not any(name == "cursor_factory" for _, name in assigned)


def _refused_by_engine(setting: _sql.Setting, use: Use) -> tuple[_sql.Setting, str, bool] | None:
    driver, sure = engine_driver(use)
    if driver in _postgres.CLIENT_SIDE or (not driver and imports(use.site.module, "psycopg2")):
        return None
    if not driver and use.type.startswith("sqlalchemy.ext.asyncio."):
        return setting, "its async drivers", True
    return setting, driver or "psycopg, the default driver since SQLAlchemy 2.1", sure


def imports(module: Module, package: str) -> bool:
    """Whether the top level of a file imports something of `package`."""
    targets = (b.target for bindings in module.scope.bindings.values() for b in bindings if b.kind == "import")
    return any(target.partition(".")[0] == package for target in targets)


def engine_driver(use: Use) -> tuple[str, bool]:
    """The driver beneath SQLAlchemy, and whether it is known; empty where the URL does not say."""
    opening = use.chain[-1] if use.chain else None
    if opening is None or opening.call is None or opening.scope is None:
        return "", False
    resolver = use.site.module.resolver
    named = (k.value for k in opening.call.keywords if k.arg == "url")
    node = next(iter((*opening.call.args[:1], *named)), None)
    values = resolver.evaluate(node, opening.scope) if node is not None else ()
    url = _postgres.read_url(values, resolver, opening.scope)
    return (url.driver, True) if url.driver in _postgres.SERVER_SIDE | _postgres.CLIENT_SIDE else ("", False)


def outside(use: Use) -> _sql.Setting | None:
    """A limit for a transaction that is set where there is none."""
    if use.kind != "statement":
        return None
    setting = next((s for s in use.settings if s.local is True), None)
    if setting is None:
        return None
    known = sessions(use.site.module)
    return setting if known.autocommit(use) is True and known.in_transaction(use) is False else None


def zero(use: Use) -> _sql.Setting | None:
    """A limit on statements that PostgreSQL takes for none."""
    if use.kind != "statement":
        return None
    return next((s for s in use.settings if s.name == _sql.STATEMENT and no_limit(s)), None)


def no_limit(setting: _sql.Setting) -> bool:
    """Whether the setting's value, also one that is bound, becomes 0."""
    ms = _sql.milliseconds(setting.value)
    return ms is not None and round(ms) == 0


def faulty(use: Use) -> bool:
    """Whether another rule than DL301 says what is wrong with this use."""
    if refusal := refused(use):
        return refusal[0].name in _sql.BOUNDING
    if missing := outside(use):
        return missing.name in _sql.BOUNDING
    return zero(use) is not None
