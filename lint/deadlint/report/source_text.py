"""The text of a file as reports need it: its lines, and places by offset; a few files are held at a time."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Callable
from functools import cached_property

from deadlint.model import Span

HELD = 8  # findings come file by file; the outer limit of one may be in another file

_NEWLINE = re.compile(r"\r\n|\r|\n")


def lines_of(text: str) -> list[str]:
    """The lines of `text` without their newlines, counted as Python counts lines: a form feed ends none."""
    return _NEWLINE.split(text)


class SourceText:
    """A text, its lines, and the offset at which each begins."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = lines_of(text)
        self.starts = [0, *(found.end() for found in _NEWLINE.finditer(text))]

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree. Raises `SyntaxError`."""
        return ast.parse(self.text)

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1, of a character."""
        index = bisect_right(self.starts, offset) - 1
        return index + 1, offset - self.starts[index] + 1

    def span(self, start: int, end: int) -> Span:
        """The span between two offsets."""
        return Span(*self.place(start), *self.place(end))

    def utf8_column(self, line: int, column: int) -> int:
        """A column in UTF-8 bytes, from 1; as given where the text has no such line."""
        if not 1 <= line <= len(self.lines):
            return column
        return len(self.lines[line - 1][: column - 1].encode("utf-8", "surrogatepass")) + 1


class SourceTexts:
    """Texts by path. What cannot be had is empty: the report goes on without its excerpt."""

    def __init__(self, source: Callable[[str], str | None]) -> None:
        self._source = source
        self._held: dict[str, SourceText] = {}

    def __getitem__(self, path: str) -> SourceText:
        if path not in self._held:
            if len(self._held) >= HELD:
                self._held.clear()
            self._held[path] = SourceText(self._source(path) or "")
        return self._held[path]
