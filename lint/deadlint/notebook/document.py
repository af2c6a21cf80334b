"""A notebook's JSON text: where the source of each code cell stands, and the text with some of it replaced.

`nbformat` would read it as well, and write all of it anew: with its own indentation, key order and escapes. An edit is
to change nothing but its lines, so what is needed is where the strings of `source` stand. The standard library's JSON
scanner tells that; only the objects on the way to them are walked here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any

from deadlint.model import Edit

_SPACE = re.compile(r"[ \t\r\n]*")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
# A character within a JSON string: a pair of surrogates is one.
_CHARACTER = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2} | \\u[0-9a-fA-F]{4} | \\. | [^\\]",
    re.DOTALL | re.VERBOSE,
)
_ASCII_ONLY = re.compile(r"\\u(?!00[0-7])[0-9a-fA-F]{4}")  # an escape that only a writer of pure ASCII needs
_PYTHON = frozenset({"python", "ipython", "python2", "python3", "pyspark", "xpython"})


class NotNotebook(Exception):
    """The text is no notebook; the text of the error says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One JSON string of a source: its place in the file with its quotes, and what it stands for."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell. `number` counts all cells from 1, as a reader of the notebook does."""

    number: int
    start: int  # of the value of `source`
    end: int
    pieces: tuple[Piece, ...]
    listed: bool  # whether the source is a list of strings, rather than one string

    @property
    def text(self) -> str:
        """The source of the cell."""
        return "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Document:
    """The text of a notebook file, and its Python cells; none where it is in another language."""

    text: str
    cells: tuple[Cell, ...]

    @classmethod
    def parse(cls, text: str) -> Document:
        """Read a notebook of format 3 or 4. Raises `NotNotebook`."""
        if not text.strip():
            return cls(text, ())  # as Jupyter has it, an empty file is a new notebook
        try:
            found = _Reader(text).notebook()
        except json.JSONDecodeError as error:
            raise NotNotebook(_no_json(text, error)) from error
        except RecursionError as error:
            raise NotNotebook("its JSON is nested too deeply to read; exclude it") from error
        cells = found.cells if _is_python(found.metadata) else []
        return cls(text, tuple(cells))

    def edits(self, sources: Mapping[int, str]) -> list[Edit]:
        """The edits of the file that give the cells of these numbers another source."""
        return [
            _edit(self.text, cell, sources[cell.number])
            for cell in self.cells
            if cell.number in sources and sources[cell.number] != cell.text
        ]

    def position(self, cell: Cell, offset: int) -> int:
        """Where in the file the character at `offset` of a cell's source stands."""
        for piece in cell.pieces:
            if offset < len(piece.text) or piece is cell.pieces[-1]:
                raw = self.text[piece.start + 1 : piece.end - 1]
                return piece.start + 1 + sum(len(part) for part in _characters(raw)[:offset])
            offset -= len(piece.text)
        return cell.start


@dataclass(slots=True)
class _Found:
    """What a reader has come across."""

    cells: list[Cell] = field(default_factory=list)
    metadata: Any = None
    is_notebook: bool = False


class _Reader:
    """Goes through the text once. What leads to no source is skipped by the scanner of the standard library."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._decoder = json.JSONDecoder()
        self._count = 0

    def notebook(self) -> _Found:
        """The whole document. Raises `JSONDecodeError` and `NotNotebook`."""
        found = _Found()
        if self._peek() != "{":
            self._value()
            raise NotNotebook("is JSON, but no notebook: it has no `cells`; exclude it")
        for key in self._members():
            if key == "cells":
                self._cells(found)
            elif key == "worksheets":  # format 3
                for _ in self._elements():
                    for inner in self._members():
                        self._cells(found) if inner == "cells" else self._value()
            elif key == "metadata":
                found.metadata = self._value()
            else:
                self._value()
        if self._peek():
            raise json.JSONDecodeError("Extra data", self._text, self._at)
        if not found.is_notebook:
            raise NotNotebook("is JSON, but no notebook: it has no `cells`; exclude it")
        return found

    def _cells(self, found: _Found) -> None:
        if self._peek() != "[":
            self._value()
            raise NotNotebook("is JSON, but no notebook: its `cells` are no list; exclude it")
        found.is_notebook = True
        for _ in self._elements():
            self._count += 1
            cell = self._cell(self._count)
            if cell is not None:
                found.cells.append(cell)

    def _cell(self, number: int) -> Cell | None:
        """The cell that begins here, if it is one of Python code."""
        if self._peek() != "{":
            self._value()
            raise NotNotebook(f"cell {number} is no JSON object; open and save it in Jupyter, or exclude it")
        source = None
        said: dict[str, Any] = {}
        for key in self._members():
            if key in ("source", "input"):
                source = self._source(number)
            else:
                value = self._value()
                if key in ("cell_type", "language", "metadata"):
                    said[key] = value
        return source if said.get("cell_type") == "code" and _is_python_cell(said) else None

    def _source(self, number: int) -> Cell:
        kind = self._peek()
        start = self._at
        if kind == '"':
            pieces = [self._string()]
        elif kind == "[":
            pieces = []
            for _ in self._elements():
                if self._peek() != '"':
                    self._value()
                    raise NotNotebook(f"cell {number} has a source that is no text; open and save it in Jupyter")
                pieces.append(self._string())
        else:
            self._value()
            raise NotNotebook(f"cell {number} has a source that is no text; open and save it in Jupyter")
        return Cell(number, start, self._at, tuple(pieces), kind == "[")

    # --- JSON ------------------------------------------------------------------------------------------------

    def _members(self) -> Iterator[str]:
        """The keys of the object that begins here; whoever iterates takes each value."""
        self._expect("{")
        if self._take("}"):
            return
        while True:
            if self._peek() != '"':
                raise json.JSONDecodeError("Expecting property name enclosed in double quotes", self._text, self._at)
            key = self._string().text
            self._expect(":")
            yield key
            if self._take("}"):
                return
            self._expect(",")

    def _elements(self) -> Iterator[None]:
        """Each element of the list that begins here; whoever iterates takes it."""
        self._expect("[")
        if self._take("]"):
            return
        while True:
            yield
            if self._take("]"):
                return
            self._expect(",")

    def _string(self) -> Piece:
        start, text = self._at, self._value()
        return Piece(start, self._at, text)

    def _value(self) -> Any:
        self._peek()
        value, self._at = self._decoder.raw_decode(self._text, self._at)
        return value

    def _peek(self) -> str:
        """The next character that is no white space; empty at the end."""
        space = _SPACE.match(self._text, self._at)
        assert space is not None
        self._at = space.end()
        return self._text[self._at : self._at + 1]

    def _take(self, sign: str) -> bool:
        if self._peek() != sign:
            return False
        self._at += 1
        return True

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise json.JSONDecodeError(f"Expecting '{sign}'", self._text, self._at)


def _no_json(text: str, error: json.JSONDecodeError) -> str:
    conflict = re.search(r"^(<<<<<<<|>>>>>>>)", text, re.MULTILINE)
    if conflict:
        line = text.count("\n", 0, conflict.start()) + 1
        return f"line {line} holds the mark of a merge conflict; resolve it"
    place = f"line {error.lineno}, column {error.colno}"
    return f"is no valid JSON, so no notebook: {error.msg} in {place}; mend or exclude it"


def _is_python(metadata: Any) -> bool:
    """Whether a notebook's own language is Python, which is also what one that says nothing is taken for."""
    language = _get(metadata, "language_info", "name") or _get(metadata, "kernelspec", "language")
    return not isinstance(language, str) or language.lower() in _PYTHON


def _is_python_cell(said: Mapping[str, Any]) -> bool:
    """The same for one cell of a notebook that mixes languages, as VS Code and format 3 mark them."""
    language = said.get("language") or _get(said.get("metadata"), "vscode", "languageId")
    return not isinstance(language, str) or language.lower() in _PYTHON


def _get(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


# --- writing -----------------------------------------------------------------------------------------------------


def _edit(text: str, cell: Cell, source: str) -> Edit:
    """Give a cell another source: lines that stay are kept as they are written, escapes and all."""
    ascii_only = text.isascii() and _ASCII_ONLY.search(text) is not None
    owners: list[int] = []
    written: list[str] = []
    for number, piece in enumerate(cell.pieces):
        lines = _raw_lines(text[piece.start + 1 : piece.end - 1])
        written += lines
        owners += [number] * len(lines)
    apart = cell.listed and len(owners) == len(set(owners))
    old = [json.loads(f'"{line}"') for line in written]
    # Jupyter cuts at form feeds and the like too, so the new source is cut as the old one was.
    new = source.splitlines(keepends=True) if old == cell.text.splitlines(keepends=True) else _LINE.findall(source)
    strings: list[str] = []
    owner = None
    for line, kept in _matched(old, new):
        raw = json.dumps(line, ensure_ascii=ascii_only)[1:-1] if kept is None else written[kept]
        if strings and not apart and (kept is None or owners[kept] == owner or not cell.listed):
            strings[-1] += raw
        else:
            strings.append(raw)
        owner = owner if kept is None else owners[kept]
    if cell.listed:
        return _relisted(text, cell, [f'"{string}"' for string in strings])
    return Edit(cell.start + 1, cell.end - 1, "".join(strings))


def _relisted(text: str, cell: Cell, strings: Sequence[str]) -> Edit:
    """The list of a cell's source with other strings, laid out as it is."""
    if not cell.pieces:
        return Edit(cell.start, cell.end, "[" + ", ".join(strings) + "]")
    first, last = cell.pieces[0], cell.pieces[-1]
    if not strings:
        return Edit(first.start, last.end, "")
    if len(cell.pieces) > 1:
        separator = text[first.end : cell.pieces[1].start]
    else:
        lead = text[cell.start + 1 : first.start]
        separator = "," + (lead if lead else " " if text[cell.start - 1 : cell.start] == " " else "")
    return Edit(first.start, last.end, separator.join(strings))


def _matched(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, int | None]]:
    """Each new line, with the number of the old one that it is."""
    for kind, start, _, first, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        for number in range(first, last):
            yield new[number], start + number - first if kind == "equal" else None


def _characters(raw: str) -> list[str]:
    """What is between the quotes of a JSON string, character by character as Python counts them."""
    return _CHARACTER.findall(raw)


def _raw_lines(raw: str) -> list[str]:
    """What is between the quotes of a JSON string, cut behind each newline that it stands for."""
    lines: list[str] = []
    current = ""
    for part in _characters(raw):
        current += part
        if part == "\\n" or part.lower() == "\\u000a":
            lines.append(current)
            current = ""
    return [*lines, current] if current else lines
