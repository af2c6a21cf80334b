"""Folding: arithmetic, texts, timedeltas and merged dicts, where their parts are known."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from datetime import timedelta

from deadlint.index.defaults import noted
from deadlint.index.values import UNKNOWN, Const, Mapping, Sequence, Template, Unknown, Value, Values, union

Evaluate = Callable[[ast.expr], Values]

_ARITHMETIC: dict[type[ast.operator], Callable[[object, object], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_NUMERIC: dict[str, Callable[..., object]] = {"min": min, "max": max, "round": round, "abs": abs}
_CONVERSIONS: dict[str, Callable[..., object]] = {"int": int, "float": float, "str": str, "bool": bool}
_LONGEST = 10_000  # characters or items; folding `"x" * 10**9` would take the machine's memory
_NUMBERS = (int, float, timedelta)


def operation(node: ast.BinOp | ast.UnaryOp | ast.JoinedStr, evaluate: Evaluate) -> Values:
    """The values of an arithmetic expression, a concatenation or an f-string."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _each(evaluate(operand), lambda v: -v if isinstance(v, _NUMBERS) else None)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return evaluate(operand)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _each(evaluate(operand), lambda v: not v)
        case ast.JoinedStr(values=parts):
            return (_joined(parts, evaluate),)
        case ast.BinOp(left=left, op=op, right=right):
            found = [
                (_binary(op, one, two),) for one in evaluate(left) for two in evaluate(right)
            ]  # fmt: skip
            return union(*found)
    return (UNKNOWN,)


def _each(values: Values, function: Callable[[object], object]) -> Values:
    return union(
        *((noted(Const(function(v.value)), v),) if isinstance(v, Const) else (UNKNOWN,) for v in values)
    )  # fmt: skip


def _binary(op: ast.operator, left: Value, right: Value) -> Value:
    match left, right:
        case Const(value=one), Const(value=two) if isinstance(one, _NUMBERS) and isinstance(two, _NUMBERS):
            return noted(_arithmetic(op, one, two), left, right)
        case Mapping(), Mapping() if isinstance(op, ast.BitOr):
            return merged(left, right)
        case Sequence(items=items, open=False), _ if isinstance(op, ast.Add):
            return _lengthened(items, right)
        case Sequence(items=items), _ if isinstance(op, ast.Add):
            return Sequence(items, open=True)
        case _, Const(str() as name) if isinstance(op, ast.Div):
            return _text((*_parts(left), f"/{name}"))  # `pathlib.Path(…) / "gdalwarp"`
        case (Const(str()) | Template()), _ if isinstance(op, ast.Mod):
            return formatted(left, percent=True)
        case _, _ if isinstance(op, ast.Add) and (_is_text(left) or _is_text(right)):
            return _text((*_parts(left), *_parts(right)))
    return UNKNOWN


def _lengthened(items: tuple[Values, ...], more: Value) -> Value:
    """A list with another behind it, of which perhaps nothing is known."""
    match more:
        case Sequence(items=others, open=is_open) if len(items) + len(others) <= _LONGEST:
            return Sequence((*items, *others), open=is_open)
    return Sequence(items, open=True)


def _arithmetic(op: ast.operator, one: object, two: object) -> Value:
    function = _ARITHMETIC.get(type(op))
    if function is None:
        return UNKNOWN
    if isinstance(op, ast.Pow) and not (isinstance(two, int) and abs(two) <= 32):
        return UNKNOWN
    try:
        return Const(function(one, two))
    except (ArithmeticError, TypeError, ValueError):
        return UNKNOWN


def _is_text(value: Value) -> bool:
    return isinstance(value, Template) or (isinstance(value, Const) and isinstance(value.value, str))


def _parts(value: Value) -> tuple[str | None, ...]:
    match value:
        case Const(str() as text):
            return (text,)
        case Const(int() | float() as number):
            return (str(number),)
        case Template(parts=parts):
            return parts
    return (None,)


def _text(parts: tuple[str | None, ...]) -> Value:
    """A text from its parts; a constant where all are known."""
    known = "".join(part for part in parts if part is not None)
    if len(known) > _LONGEST:
        return UNKNOWN
    return Template(parts) if None in parts else Const(known)


def _joined(parts: list[ast.expr], evaluate: Evaluate) -> Value:
    found: list[str | None] = []
    for part in parts:
        match part:
            case ast.Constant(value=str() as text):
                found.append(text)
            case ast.FormattedValue(value=value, format_spec=None):
                values = evaluate(value)
                found.extend(_parts(values[0]) if len(values) == 1 else (None,))
            case _:
                found.append(None)
    return _text(tuple(found))


def formatted(text: Value, *, percent: bool = False) -> Value:
    """A text with `{}` or `%s` fields, whose fields are taken as unknown."""
    import re  # noqa: PLC0415 - few files format texts that matter here

    field = r"%\([^)]*\)[sdrf]|%[-+ #0]*\d*(?:\.\d+)?[sdrfi]" if percent else r"\{[^{}]*\}"
    found: list[str | None] = []
    for part in _parts(text):
        if part is None:
            found.append(None)
            continue
        pieces = re.split(field, part)
        for i, piece in enumerate(pieces):
            if i:
                found.append(None)
            found.append(piece)
    return _text(tuple(found))


def joined(separator: Value, items: Values) -> Value:
    """`separator.join(items)`; what is not known of a list is a hole at its end."""
    match items:
        case (Sequence(items=parts, open=is_open),) if _is_text(separator):
            found: list[str | None] = []
            for part in parts:
                found.extend((*_parts(separator), *(_parts(part[0]) if len(part) == 1 else (None,))))
            return _text((*found[1:], *(_parts(separator) if parts and is_open else ()), *((None,) if is_open else ())))
    return UNKNOWN


def split(text: Value) -> Value:
    """`text.split()`, where what is unknown of the text holds no space."""
    match text:
        case Const(str() as plain):
            return Sequence(tuple((Const(word),) for word in plain.split()[:_LONGEST]))
        case Template(parts=parts):
            words = "".join("\0" if part is None else part for part in parts).split()
            return Sequence(tuple((_holed(word),) for word in words), open=True)
    return UNKNOWN


def _holed(word: str) -> Value:
    pieces = word.split("\0")
    return _text(tuple(p for i, piece in enumerate(pieces) for p in ((None, piece) if i else (piece,)) if p != ""))


def call(name: str, node: ast.Call, evaluate: Evaluate) -> Values | None:
    """The values of a call to a function that folds (`min`, `timedelta`, …); None for any other."""
    match name:
        case "builtins.min" | "builtins.max" | "builtins.round" | "builtins.abs":
            return _numeric(name, node, evaluate)
        case "builtins.int" | "builtins.float" | "builtins.str" | "builtins.bool" if len(node.args) == 1:
            return converted(name, evaluate(node.args[0]))
        case "datetime.timedelta":
            return _timedelta(node, evaluate)
        case "math.inf":
            return (Const(float("inf")),)
    return None


def _numeric(name: str, node: ast.Call, evaluate: Evaluate) -> Values:
    function = _NUMERIC[name[9:]]
    arguments = [evaluate(arg) for arg in node.args]
    if node.keywords or not all(len(a) == 1 and isinstance(a[0], Const) for a in arguments):
        return (UNKNOWN,)
    plain = [a[0].value for a in arguments if isinstance(a[0], Const)]
    try:
        return (noted(Const(function(*plain)), *(a[0] for a in arguments)),)
    except (TypeError, ValueError, OverflowError):
        return (UNKNOWN,)


def converted(name: str, values: Values) -> Values:
    """`int(…)`, `float(…)` and the like of each of `values`."""
    kind = _CONVERSIONS[name[9:]]
    found: list[Value] = []
    for value in values:
        match value:
            case Const(value=plain) if isinstance(plain, (int, float, str)):
                try:
                    found.append(noted(Const(kind(plain)), value))
                except (ValueError, OverflowError):
                    found.append(UNKNOWN)
            case Template() if name == "builtins.str":
                found.append(value)
            case _:
                found.append(UNKNOWN)
    return union(tuple(found))


_TIMEDELTA_FIELDS = ("days", "seconds", "microseconds", "milliseconds", "minutes", "hours", "weeks")


def _timedelta(node: ast.Call, evaluate: Evaluate) -> Values:
    fields: dict[str, float] = {}
    sources: list[Value] = []
    given = [*zip(_TIMEDELTA_FIELDS, node.args, strict=False), *((k.arg or "", k.value) for k in node.keywords)]
    for name, expression in given:
        match evaluate(expression):
            case (Const(int() | float() as number) as source,) if name in _TIMEDELTA_FIELDS:
                fields[name] = number
                sources.append(source)
            case _:
                return (UNKNOWN,)
    try:
        return (noted(Const(timedelta(**fields)), *sources),)
    except (OverflowError, ValueError):
        return (UNKNOWN,)


def with_entry(mapping: Mapping, key: str, values: Values) -> Mapping:
    """`mapping` with `key` set."""
    entries = (*(e for e in mapping.entries if e[0] != key), (key, values))
    return Mapping(entries, tuple(e for e in mapping.perhaps if e[0] != key), mapping.open)


def without_entry(mapping: Mapping, key: str) -> Mapping:
    """`mapping` without `key`."""
    return Mapping(
        tuple(e for e in mapping.entries if e[0] != key),
        tuple(e for e in mapping.perhaps if e[0] != key),
        mapping.open,
    )


def merged(mapping: Mapping, more: Value) -> Mapping:
    """`mapping` updated by `more`; open where `more` is not known."""
    match more:
        case Mapping():
            for key, values in more.entries:
                mapping = with_entry(mapping, key, values)
            perhaps = (*mapping.perhaps, *(p for p in more.perhaps if mapping.get(p[0]) is None))
            return Mapping(mapping.entries, perhaps, mapping.open or more.open)
        case Const(value=None):
            return mapping
        case Unknown() | _:
            return Mapping(mapping.entries, mapping.perhaps, open=True)
