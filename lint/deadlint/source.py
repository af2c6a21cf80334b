"""One file as it is on disk and as text: decoding, newlines, and places in it."""

from __future__ import annotations

import ast
import codecs
import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from deadlint.model import NOTEBOOK, Fix, Span

_NEWLINE = re.compile(r"\r\n|\r|\n")


class UnreadableSource(Exception):
    """The bytes are no Python source text; the text of the error says why, in one line."""


class CannotEncode(Exception):
    """A text cannot be put back into its file; the text of the error says why, in one line."""


@dataclass(frozen=True)
class SourceFile:
    """The text of a file. `text` keeps its newlines as they are, so that offsets into it are exact."""

    path: str
    text: str
    encoding: str = "utf-8"
    bom: bool = False

    @classmethod
    def decode(cls, path: str, data: bytes) -> SourceFile:
        """Decode as Python does: BOM, then PEP 263 declaration, then UTF-8; a notebook by its name.

        Raises `UnreadableSource`.
        """
        if path.endswith(NOTEBOOK):
            from deadlint.notebook.source import Notebook  # noqa: PLC0415 - few files are notebooks

            return Notebook.decode(path, data)
        if b"\0" in data:
            raise UnreadableSource("holds NUL bytes, so it is no Python source")
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        except SyntaxError as error:
            raise UnreadableSource(str(error).replace("\n", " ")) from error
        bom = data.startswith(codecs.BOM_UTF8)
        body = data[len(codecs.BOM_UTF8) :] if bom else data
        if encoding == "utf-8-sig":
            encoding = "utf-8"
        try:
            text = body.decode(encoding)
        except UnicodeDecodeError as error:
            line = body.count(b"\n", 0, error.start) + 1
            raise UnreadableSource(
                f"line {line} is not valid {encoding}; declare its encoding in the first line or convert it"
            ) from error
        return cls(path, text, encoding, bom)

    @classmethod
    def read(cls, path: str | Path) -> SourceFile:
        """Read and decode. Raises `OSError` and `UnreadableSource`."""
        return cls.decode(str(path), Path(path).read_bytes())

    def encode(self, text: str | None = None) -> bytes:
        """The bytes of this file with `text` (its own where None). Raises `UnicodeEncodeError`."""
        data = (self.text if text is None else text).encode(self.encoding)
        return codecs.BOM_UTF8 + data if self.bom else data

    def with_text(self, text: str) -> SourceFile:
        """The same file with another text."""
        return SourceFile(self.path, text, self.encoding, self.bom)

    def left_out(self) -> Iterable[tuple[str, SyntaxError]]:
        """What stands in `text` as comments because it does not parse, and why; nothing but cells of a notebook."""
        return ()

    def allows(self, fix: Fix) -> bool:
        """Whether the edits of a fix keep apart what is apart in the file; only in a notebook is anything."""
        return True

    @cached_property
    def newline(self) -> str:
        """The newline that the file uses first; `\\n` where it has none."""
        found = _NEWLINE.search(self.text)
        return found.group() if found else "\n"

    @cached_property
    def line_starts(self) -> list[int]:
        """The offset of each line's first character, as `ast` counts lines."""
        return [0, *(m.end() for m in _NEWLINE.finditer(self.text))]

    @cached_property
    def _ascii(self) -> bool:
        return self.text.isascii()

    def line(self, number: int) -> str:
        """The text of line `number` (from 1), without its newline."""
        start = self.line_starts[number - 1]
        end = self.line_starts[number] if number < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def offset(self, line: int, utf8_column: int) -> int:
        """The character offset of a place as `ast` gives it: line from 1, column in UTF-8 bytes from 0."""
        start = self.line_starts[line - 1]
        if self._ascii:
            return start + utf8_column
        text = self.text[start : start + utf8_column]
        if not text.isascii():
            text = text.encode()[:utf8_column].decode(errors="ignore")
        return start + len(text)

    def extent(self, node: ast.expr | ast.stmt | ast.keyword | ast.ExceptHandler) -> tuple[int, int]:
        """Start and end offset of a node."""
        end_line = node.end_lineno if node.end_lineno is not None else node.lineno
        end_column = node.end_col_offset if node.end_col_offset is not None else node.col_offset
        return self.offset(node.lineno, node.col_offset), self.offset(end_line, end_column)

    def segment(self, node: ast.expr | ast.stmt | ast.keyword | ast.ExceptHandler) -> str:
        """The source text of a node."""
        start, end = self.extent(node)
        return self.text[start:end]

    def span(self, start: int, end: int) -> Span:
        """The span between two offsets."""
        first, last = self._place(start), self._place(end)
        return Span(*first, *last)

    def _place(self, offset: int) -> tuple[int, int]:
        index = bisect_right(self.line_starts, offset) - 1
        return index + 1, offset - self.line_starts[index] + 1
