"""What an expression may stand for. An expression has a small set of possible values, unknown being one."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deadlint.index.scopes import Scope


@dataclass(frozen=True, slots=True)
class Unknown:
    """Anything at all."""


@dataclass(frozen=True, slots=True)
class Const:
    """A constant that is known: None, a number, a text, a timedelta."""

    value: object
    note: str = ""  # where it comes from, if that is not the source: "default of X"


@dataclass(frozen=True, slots=True)
class Template:
    """A text of which parts are unknown (None): f-strings, `%`, `+`, `.format`."""

    parts: tuple[str | None, ...]

    def text(self, hole: str = "{}") -> str:
        """The text with `hole` in place of what is unknown."""
        return "".join(hole if part is None else part for part in self.parts)


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list, tuple or set display; `open` where it may hold more items than these at its end."""

    items: tuple[Values, ...]
    open: bool = False


@dataclass(frozen=True, slots=True)
class Mapping:
    """A dict: keys that it holds for certain or perhaps, and whether it may hold others."""

    entries: tuple[tuple[str, Values], ...] = ()
    perhaps: tuple[tuple[str, Values], ...] = ()
    open: bool = False

    def get(self, key: str) -> Values | None:
        """The values under `key`: None where it is not there, `(Unknown,)` where that is not known."""
        for name, values in self.entries:
            if name == key:
                return values
        for name, values in self.perhaps:
            if name == key:
                return (*values, UNKNOWN) if UNKNOWN not in values else values
        return (UNKNOWN,) if self.open else None


@dataclass(frozen=True, slots=True)
class External:
    """Something that is defined outside of the file, by its canonical dotted name."""

    name: str


@dataclass(frozen=True, slots=True)
class Result:
    """What a call to something external returned, or a parameter annotated as such (`call` is None then).

    `name` is the type where it is known (`requests.Session`), else the name of what was called.
    """

    name: str
    call: ast.Call | None = None
    receiver: Value | None = None
    scope: Scope | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """An attribute of a `Result` or of an object whose class has an external base: `requests.Session.get`."""

    name: str
    receiver: Value


@dataclass(frozen=True, slots=True)
class Function:
    """A function or lambda of the file; `receiver` where it is a bound method."""

    scope: Scope
    receiver: Value | None = None


@dataclass(frozen=True, slots=True)
class Attached:
    """An attribute of a function that its decorator put there: `build_tile.submit`."""

    function: Function
    name: str


@dataclass(frozen=True, slots=True)
class Class:
    """A class of the file."""

    scope: Scope


@dataclass(frozen=True, slots=True)
class Object:
    """An instance of a class of the file."""

    cls: Scope
    call: ast.Call | None = None


@dataclass(frozen=True, slots=True)
class Super:
    """`super()` in a method of this class."""

    cls: Scope
    instance: Value | None = None


@dataclass(frozen=True, slots=True)
class Partial:
    """`functools.partial(function, …)`."""

    function: Value
    call: ast.Call


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that its caller decides; with its default, where it has one (`default` is empty otherwise)."""

    scope: Scope
    name: str
    default: Values = ()


Value = (
    Unknown | Const | Template | Sequence | Mapping | External | Result | Member | Function | Attached | Class
    | Object | Super | Partial | Parameter
)  # fmt: skip
Values = tuple[Value, ...]

UNKNOWN = Unknown()
NONE = Const(None)
MOST = 8  # alternatives that are followed; more than that is as good as unknown


def union(*groups: Values) -> Values:
    """All values of the groups, each once; unknown where they are too many."""
    seen: dict[Value, None] = {}
    for group in groups:
        for value in group:
            seen.setdefault(value)
    return tuple(seen) if len(seen) <= MOST else (*tuple(seen)[:MOST], UNKNOWN)


def without_none(values: Values) -> Values:
    """The values less None, also as the default of a parameter."""
    kept: list[Value] = []
    for value in values:
        match value:
            case Const(None):
                continue
            case Parameter(scope, name, default) if NONE in default:
                kept.append(Parameter(scope, name, tuple(v for v in default if v != NONE)))
            case _:
                kept.append(value)
    return tuple(kept)


def number(value: Value) -> float | None:
    """Seconds or another number where the value is one; a timedelta counts in seconds."""
    match value:
        case Const(bool() | str() | None):
            return None
        case Const(int() | float() as n):
            return float(n)
        case Const(delta):
            from datetime import timedelta  # noqa: PLC0415 - only files with limits need it

            return delta.total_seconds() if isinstance(delta, timedelta) else None
    return None
