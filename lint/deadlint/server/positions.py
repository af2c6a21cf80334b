"""Places in a text as the protocol counts them: lines from 0, columns in the units that the client asked for."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

from lsprotocol import types

from deadlint.model import Span

_NEWLINE = re.compile(r"\r\n|\r|\n")

# The units of a column, by the name that the protocol has for them.
UTF8, UTF16, UTF32 = "utf-8", "utf-16", "utf-32"


@dataclass(frozen=True)
class Positions:
    """A text whose places are asked for. Lines end where the protocol and `ast` say, not at form feeds."""

    text: str
    units: str = UTF16

    @cached_property
    def line_starts(self) -> list[int]:
        """The offset of each line's first character."""
        return [0, *(found.end() for found in _NEWLINE.finditer(self.text))]

    @cached_property
    def _plain(self) -> bool:
        """Whether a column is the same number in every unit."""
        return self.units == UTF32 or self.text.isascii()

    def offset(self, position: types.Position) -> int:
        """The character offset of a position; one behind the end of a line or the text counts as that end."""
        if position.line >= len(self.line_starts):
            return len(self.text)
        start = self.line_starts[position.line]
        line = self._line(position.line)
        if self._plain:
            return start + min(position.character, len(line))
        column = 0
        for number, character in enumerate(line):
            if column >= position.character:
                return start + number
            column += self._width(character)
        return start + len(line)

    def position(self, offset: int) -> types.Position:
        """The position of a character offset."""
        line = bisect_right(self.line_starts, offset) - 1
        start = self.line_starts[line]
        before = self.text[start:offset]
        same = self._plain or before.isascii()
        return types.Position(line, len(before) if same else sum(map(self._width, before)))

    def range(self, start: int, end: int) -> types.Range:
        """The range between two character offsets."""
        return types.Range(self.position(start), self.position(end))

    def of_span(self, span: Span) -> types.Range:
        """The range of a span; cut off where the text does not have it."""
        return self.range(self._at(span.line, span.column), self._at(span.end_line, span.end_column))

    def _at(self, line: int, column: int) -> int:
        if line > len(self.line_starts):
            return len(self.text)
        return min(self.line_starts[line - 1] + column - 1, len(self.text))

    def _line(self, number: int) -> str:
        """A line without its newline."""
        end = self.line_starts[number + 1] if number + 1 < len(self.line_starts) else len(self.text)
        return self.text[self.line_starts[number] : end].rstrip("\r\n")

    def _width(self, character: str) -> int:
        if self.units == UTF8:
            return len(character.encode("utf-8", "surrogatepass"))
        return 2 if self.units == UTF16 and ord(character) > 0xFFFF else 1


def overlaps(one: types.Range, other: types.Range) -> bool:
    """Whether two ranges share a place; that one ends where the other starts is enough."""
    return _before(one.start, other.end) and _before(other.start, one.end)


def _before(one: types.Position, other: types.Position) -> bool:
    return (one.line, one.character) <= (other.line, other.character)
