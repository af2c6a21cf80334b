"""Numbers that a program ships as defaults and that a setting may change: the environment, settings, declared fields.

They are followed as what runs where nobody set anything; `Const.note` says whose default it is.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from deadlint.index.known import DECLARED_FIELDS
from deadlint.index.values import Const, Result, Value, Values, number

# What reads a setting as text, by the position of its default; it counts once it is made a number.
ENVIRONMENT = {"os.environ.get": 1, "os.getenv": 1}
# What reads a setting as a number: where its default stands, by position and keyword.
_NUMBERS = {
    "environs.Env.int": (1, "default"),
    "environs.Env.float": (1, "default"),
    "environs.env.int": (1, "default"),
    "environs.env.float": (1, "default"),
    "environ.Env.int": (1, "default"),
    "environ.Env.float": (1, "default"),
    "decouple.config": (None, "default"),
    "airflow.models.Variable.get": (1, "default_var"),
    "airflow.sdk.Variable.get": (1, "default"),
    "prefect.variables.Variable.get": (1, "default"),
}

Evaluate = Callable[[ast.expr], Values]


def of_setting(value: Result, evaluate: Evaluate) -> Values:
    """The default that reading a setting falls back to, marked as such; empty where it has none in sight."""
    call = value.call
    if call is None:
        return ()
    if value.name in ENVIRONMENT:
        position: int | None = ENVIRONMENT[value.name]
        keyword = "default"
    elif value.name in _NUMBERS:
        position, keyword = _NUMBERS[value.name]
    else:
        return ()
    node = _given(call, position, keyword)
    if node is None:
        return ()
    return tuple(marked(one, key_of(value, evaluate)) for one in evaluate(node))


def reads_number(name: str) -> bool:
    """Whether a call of this name reads a setting that is a number."""
    return name in _NUMBERS


def of_field(value: Result, evaluate: Evaluate) -> Values:
    """The number that a declared field has by default (`Field(default=30)`); empty where there is none in sight."""
    if value.name not in DECLARED_FIELDS or value.call is None:
        return ()
    node = _given(value.call, 0 if value.name == "pydantic.Field" else None, "default")
    return tuple(one for one in evaluate(node) if number(one) is not None) if node is not None else ()


def marked(value: Value, whose: str) -> Value:
    """A constant as the default of `whose`."""
    return replace(value, note=value.note or whose) if isinstance(value, Const) else value


def noted(value: Value, *sources: Value) -> Value:
    """What was worked out from `sources`: a default where one of them is."""
    note = next((s.note for s in sources if isinstance(s, Const) and s.note), "")
    return replace(value, note=note) if note and isinstance(value, Const) else value


def _given(call: ast.Call, position: int | None, keyword: str) -> ast.expr | None:
    for given in call.keywords:
        if given.arg == keyword:
            return given.value
    return call.args[position] if position is not None and position < len(call.args) else None


def key_of(value: Result, evaluate: Evaluate) -> str:
    """The name of the setting that a call reads, as messages give it."""
    call = value.call
    match evaluate(call.args[0]) if call is not None and call.args else ():
        case (Const(str() as key),) if key.isprintable() and len(key) <= 60:
            return f"`{key}`"
    return "a setting"
