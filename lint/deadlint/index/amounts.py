"""Reading the amount of a limit: numbers, timedeltas, texts with a unit; where it is a default, and whose."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isfinite

from deadlint.index.values import Const, Mapping, Parameter, Result, Sequence, Value, Values, number

_TIMEOUT_OBJECTS = frozenset({"httpx.Timeout", "aiohttp.ClientTimeout", "urllib3.Timeout"})
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|sec|secs|m|min|mins|h|hour|hours|d|days?)?\s*", re.IGNORECASE)
_UNITS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "secs": 1.0, "m": 60.0, "min": 60.0, "mins": 60.0, "h": 3600.0,
          "hour": 3600.0, "hours": 3600.0, "d": 86_400.0, "day": 86_400.0, "days": 86_400.0}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Amount:
    """How long: in seconds where that is known, else perhaps the parameter that says it."""

    seconds: float | None
    default: str = ""  # whose default it is, where something else may be set
    parameter: str = ""  # of the function that it stands in


NOT_KNOWN = Amount(None)


def of_values(values: Values, scale: float = 1.0, *, texts: bool = False) -> Amount:
    """The amount of a limit that may be any of `values`: the least is what is certain; of a pair the longer.

    `scale` is the number of seconds in one. With `texts`, a text such as `1h` or `600` is one as well.
    """
    found: list[Amount] = []
    for value in values:
        one = _of_value(value, scale, texts=texts)
        if one.seconds is None:
            return one if len(values) == 1 else NOT_KNOWN
        found.append(one)
    return min(found, key=lambda a: a.seconds or 0.0, default=NOT_KNOWN)


def _of_value(value: Value, scale: float, *, texts: bool) -> Amount:
    match value:
        case Parameter(name=name, default=default):
            known = of_values(default, scale, texts=texts) if default else NOT_KNOWN
            return Amount(None, known.default, name)
        case Sequence(items=items) if items:
            parts = [of_values(item, scale, texts=texts) for item in items]
            if any(part.seconds is None for part in parts):
                return NOT_KNOWN
            return max(parts, key=lambda a: a.seconds or 0.0)
        case Result(name=name, call=call) if call is not None and name in _TIMEOUT_OBJECTS:
            return NOT_KNOWN
        case Const(str() as text, note=note) if texts:
            return Amount(duration(text, scale), note)
    plain = number(value)
    if plain is None or not isfinite(plain):
        return NOT_KNOWN  # `math.inf` is no limit
    return Amount(plain * scale, value.note if isinstance(value, Const) else "")


def duration(text: str, scale: float = 1.0) -> float | None:
    """The seconds of `90`, `90s`, `1.5h`, `500ms`; a number alone counts `scale` seconds. None for any other text."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    unit = (found[2] or "").lower()
    return float(found[1]) * (_UNITS[unit] if unit else scale)


def under_key(values: Values, key: str) -> Values:
    """What mappings hold under `key`; empty where it is certainly not there, unknown values where that is not known."""
    found: list[Value] = []
    for value in values:
        match value:
            case Mapping():
                found.extend(value.get(key) or ())
            case Const(None):
                continue
            case _:
                return values
    return tuple(found)
