"""A notebook as source text: its Python cells joined to one module, so that names of earlier cells resolve.

Everything that reads or edits a `SourceFile` works on the joined text. Where its lines come from stands in it: each
cell begins with a comment line of ours.
"""

from __future__ import annotations

import ast
import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from deadlint.model import Edit, Fix
from deadlint.notebook.document import Document, NotNotebook
from deadlint.notebook.ipython import Masks, as_python, commented, is_no_code
from deadlint.source import CannotEncode, SourceFile, UnreadableSource


@dataclass(frozen=True)
class Notebook(SourceFile):
    """A notebook. `text` is its code as one module; `encode` puts that back where it comes from."""

    document: Document = field(default_factory=lambda: Document("", ()))
    masks: Masks = field(default_factory=lambda: Masks(""))
    broken: tuple[tuple[int, SyntaxError], ...] = ()  # cells that do not parse, and so are comments in `text`

    @classmethod
    def decode(cls, path: str, data: bytes) -> Notebook:
        """Read a notebook. Raises `UnreadableSource`."""
        document = _document(data)
        masks = Masks.for_text(document.text)
        joined, broken = _joined(document, masks)
        return cls(path, joined, "utf-8", data.startswith(codecs.BOM_UTF8), document, masks, broken)

    def with_text(self, text: str) -> Notebook:
        """The same notebook with other code. A fix ends its lines; the last one of a cell has no end."""
        unended = {cell.number for cell in self.document.cells if not cell.text.endswith("\n")}
        for one in reversed(list(sections(text))):
            kept = one.text.rstrip("\r\n") if one.cell in unended else one.text
            text = text[: one.start] + kept + text[one.start + len(one.text) :]
        return replace(self, text=text)

    def encode(self, text: str | None = None) -> bytes:
        """The bytes of the notebook with `text` as its code. Raises `CannotEncode`."""
        made = self.file_text(self.text if text is None else text).encode("utf-8")
        return codecs.BOM_UTF8 + made if self.bom else made

    def file_text(self, text: str) -> str:
        """The text of the file with `text` as the code of its cells. Raises `CannotEncode`."""
        made, at = [], 0
        for edit in self.file_edits(text):
            made += [self.document.text[at : edit.start], edit.text]
            at = edit.end
        return "".join([*made, self.document.text[at:]])

    def file_edits(self, text: str) -> list[Edit]:
        """The edits of the file that make `text` the code of its cells. Raises `CannotEncode`."""
        made = {one.cell: self.masks.removed(one.text) for one in sections(text)}
        if list(made) != [one.cell for one in sections(self.text)]:
            raise CannotEncode("a fix reaches over the end of a cell")
        for cell in self.document.cells:
            if cell.text.startswith("%%") and not made.get(cell.number, "%%").startswith("%%"):
                raise CannotEncode("a fix would stand in front of a cell magic")
        return self.document.edits(made)

    def left_out(self) -> Iterator[tuple[str, SyntaxError]]:
        """The cells that do not parse, and what is wrong with each, at its line and column of `text`."""
        starts = {one.cell: one.line for one in sections(self.text)}
        for cell, error in self.broken:
            moved = SyntaxError(error.msg)
            moved.lineno = starts[cell] + (error.lineno or 1) - 1
            moved.offset = (error.offset or 1) + len(self.masks.comment(""))
            yield f"cell {cell}", moved

    def allows(self, fix: Fix) -> bool:
        """Whether every edit of a fix stays in one cell."""
        return not any(f"#{self.masks.word} cell " in self.text[edit.start : edit.end] for edit in fix.edits)


def code_of(data: bytes) -> bytes:
    """The code of a notebook as it is, cell after cell, for who only looks for words. Raises `UnreadableSource`."""
    return "\n".join(cell.text for cell in _document(data).cells).encode("utf-8", "surrogatepass")


def _document(data: bytes) -> Document:
    try:
        return Document.parse(data.removeprefix(codecs.BOM_UTF8).decode("utf-8"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnreadableSource(f"line {line} is not UTF-8, which a notebook must be; convert it") from error
    except NotNotebook as error:
        raise UnreadableSource(str(error)) from error


@dataclass(frozen=True, slots=True)
class Section:
    """The code of one cell in the text of a notebook."""

    cell: int
    start: int  # offset of its first character
    line: int  # the number of its first line
    text: str  # masked, without the newline that ends its last line


def sections(text: str) -> Iterator[Section]:
    """The cells of the text of a notebook, in order."""
    first = _FIRST.match(text)
    if first is None:
        return
    marks = list(re.finditer(rf"^(?:{_INDENTED})?#{first[1]} cell (\d+)\n", text, re.MULTILINE))
    line, counted = 1, 0
    for mark, end in zip(marks, [*(one.start() for one in marks[1:]), len(text)], strict=True):
        line += len(_NEWLINE.findall(text, counted, mark.end()))
        counted = mark.end()
        yield Section(int(mark[1]), mark.end(), line, text[mark.end() : max(end - 1, mark.end())])


_NEWLINE = re.compile(r"\r\n|\r|\n")
# IPython runs a cell that is indented as a whole.
_INDENTED = "if True: "
_FIRST = re.compile(rf"(?:{_INDENTED})?#(\w+) cell \d+\n")


def masks_of(text: str) -> Masks:
    """The masks in the text of a notebook."""
    first = _FIRST.match(text)
    return Masks(first[1] if first else "DEADLINT_IPYTHON")


def _joined(document: Document, masks: Masks) -> tuple[str, tuple[tuple[int, SyntaxError], ...]]:
    """The code of all cells, and the cells that do not parse."""
    from deadlint.index.newer import parse  # noqa: PLC0415 - few files are notebooks

    parts: list[str] = []
    broken: list[tuple[int, SyntaxError]] = []
    for cell in document.cells:
        original, head = cell.text, ""
        text = as_python(original, masks)
        if text is None:
            continue
        try:
            parse(text)
        except SyntaxError as error:
            lenient = as_python(original, masks, leniently=True)
            if lenient is not None and _parses(lenient):
                text = lenient
            elif original.lstrip("\r\n")[:1] in (" ", "\t") and _parses(f"{_INDENTED}#\n{text}"):
                head = _INDENTED
            elif is_no_code(original):
                continue
            else:
                broken.append((cell.number, error))
                text = commented(original, masks)
        except (ValueError, RecursionError, MemoryError) as error:
            raise UnreadableSource(f"cell {cell.number} cannot be parsed: {error}") from error
        parts.append(f"{head}#{masks.word} cell {cell.number}\n{text}\n")
    return "".join(parts), tuple(broken)


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
