"""Shapes of configuration values: each checks a value and describes itself as JSON schema."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """A value that does not fit: the keys that lead to it, and what is wrong, as the rest of a sentence."""

    keys: Path
    text: str


class Shape(ABC):
    """What a value may be."""

    @abstractmethod
    def faults(self, value: Any, keys: Path = ()) -> Iterator[Fault]:
        """What is wrong with `value`, which stands under `keys`; nothing where it fits."""

    @abstractmethod
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the values that fit."""


@dataclass(frozen=True, slots=True)
class Flag(Shape):
    """true or false."""

    def faults(self, value: Any, keys: Path = ()) -> Iterator[Fault]:
        if not isinstance(value, bool):
            yield Fault(keys, f"must be true or false, not {_kind(value)}")

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Text(Shape):
    """A string that `pattern` covers whole; `what` says in words what that is."""

    pattern: str
    what: str

    def faults(self, value: Any, keys: Path = ()) -> Iterator[Fault]:
        if not isinstance(value, str):
            yield Fault(keys, f"must be {self.what}, not {_kind(value)}")
        elif not re.fullmatch(self.pattern, value):
            yield Fault(keys, f"must be {self.what}, not {value!r}")

    def schema(self) -> dict[str, Any]:
        # Python's `$` also matches before a newline at the end; the look-ahead makes all dialects agree.
        return {"type": "string", "pattern": rf"^(?:{self.pattern})$(?!\n)"}


@dataclass(frozen=True, slots=True)
class Choice(Shape):
    """One of a few words."""

    words: tuple[str, ...]

    def faults(self, value: Any, keys: Path = ()) -> Iterator[Fault]:
        if value not in self.words or not isinstance(value, str):
            given = repr(value) if isinstance(value, str) else _kind(value)
            yield Fault(keys, f"must be {' or '.join(map(repr, self.words))}, not {given}")

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.words)}


@dataclass(frozen=True, slots=True)
class Seconds(Shape):
    """A positive number of seconds, at most `most`."""

    most: int

    def faults(self, value: Any, keys: Path = ()) -> Iterator[Fault]:
        if isinstance(value, bool) or not isinstance(value, int | float):
            yield Fault(keys, f"must be a number of seconds, not {_kind(value)}")
        elif not 0 < value <= self.most:  # refuses nan as well
            yield Fault(keys, f"must be above 0 and at most {self.most} seconds, not {value}")

    def schema(self) -> dict[str, Any]:
        return {"type": "number", "exclusiveMinimum": 0, "maximum": self.most}


@dataclass(frozen=True, slots=True)
class ListOf(Shape):
    """A list whose entries all have one shape."""

    entry: Shape

    def faults(self, value: Any, keys: Path = ()) -> Iterator[Fault]:
        if not isinstance(value, list):
            yield Fault(keys, f"must be a list, not {_kind(value)}")
            return
        for number, entry in enumerate(value, 1):
            for fault in self.entry.faults(entry, keys):
                yield Fault(fault.keys, f"entry {number} {fault.text}")

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": self.entry.schema()}


@dataclass(frozen=True, slots=True)
class MapOf(Shape):
    """A table with keys of the user's choice, whose values all have one shape."""

    entry: Shape

    def faults(self, value: Any, keys: Path = ()) -> Iterator[Fault]:
        if not isinstance(value, Mapping):
            yield Fault(keys, f"must be a table, not {_kind(value)}")
            return
        for key, entry in value.items():
            yield from self.entry.faults(entry, (*keys, key))

    def schema(self) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": self.entry.schema()}


@dataclass(frozen=True, slots=True)
class Key:
    """A key that a table may have; `about` is what the schema tells an editor."""

    shape: Shape
    about: str


@dataclass(frozen=True, slots=True)
class Table(Shape):
    """A table with known keys, all optional."""

    keys: Mapping[str, Key]

    def faults(self, value: Any, keys: Path = ()) -> Iterator[Fault]:
        if not isinstance(value, Mapping):
            yield Fault(keys, f"must be a table, not {_kind(value)}")
            return
        for name, entry in value.items():
            if name in self.keys:
                yield from self.keys[name].shape.faults(entry, (*keys, name))
            else:
                yield Fault((*keys, name), f"is no key that deadlint knows; {nearest(name, self.keys)}")

    def schema(self) -> dict[str, Any]:
        properties = {name: {"description": key.about} | key.shape.schema() for name, key in self.keys.items()}
        return {"type": "object", "additionalProperties": False, "properties": properties}


def nearest(given: str, valid: Iterable[str], otherwise: str | None = None) -> str:
    """The valid word that `given` was meant to be, as a question; `otherwise` where none is near."""
    words = list(valid)
    folded = {word.lower(): word for word in words}
    close = get_close_matches(given.lower().replace("_", "-"), folded, n=1, cutoff=0.5)
    if close:
        return f"did you mean {folded[close[0]]!r}?"
    return f"there are {', '.join(words)}" if otherwise is None else otherwise


def _kind(value: Any) -> str:
    """What a value is, in the words of TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the string {value!r}"
    if isinstance(value, list):
        return "a list"
    return "a table" if isinstance(value, Mapping) else f"a {type(value).__name__}"
