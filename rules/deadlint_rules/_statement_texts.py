"""What a statement's text is, in the values of a file, and the limits that a function of it sets."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from deadlint.index import fold
from deadlint.index.resolve import Resolver
from deadlint.index.scopes import Scope
from deadlint.index.values import Const, Function, Partial, Result, Template, Value, Values

from deadlint_rules import _sql
from deadlint_rules._postgres import text_of


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
