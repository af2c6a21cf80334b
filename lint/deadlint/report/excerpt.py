"""Source lines with spans underlined, as rows of text with roles; colours are the writer's matter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.cells import cell_len

from deadlint.model import Span
from deadlint.report.line_view import Columns, LineView, Piece
from deadlint.report.printable import printable
from deadlint.report.wrapping import wrapped

HEAD, TAIL = 4, 2  # lines of a long span that are shown at its start and at its end
BRIDGE = 1  # lines between two marks that are shown, not passed over: the row that says so is as long
NARROWEST = 20  # cells that source and labels get however narrow the terminal


@dataclass(frozen=True, slots=True)
class Mark:
    """A span to underline, and what to say about it."""

    span: Span
    label: str = ""
    primary: bool = False

    @property
    def role(self) -> str:
        """What colours it."""
        return "mark" if self.primary else "related"

    @property
    def sign(self) -> str:
        """What underlines it, so that the two kinds differ without colours too."""
        return "^" if self.primary else "-"

    def columns(self, line: str) -> Columns:
        """Where it begins and ends in the line on which it begins."""
        start = min(self.span.column - 1, len(line))
        end = self.span.end_column - 1 if self.span.end_line == self.span.line else len(line.rstrip())
        return start, max(min(end, len(line)), start)

    def columns_inside(self, number: int, line: str) -> list[Columns]:
        """What it covers of any of its lines, leading space apart: both ends of that are worth showing."""
        if not self.span.line <= number <= self.span.end_line:
            return []
        start = self.span.column - 1 if number == self.span.line else len(line) - len(line.lstrip())
        end = self.span.end_column - 1 if number == self.span.end_line else len(line.rstrip())
        return [(min(start, len(line)), max(min(end, len(line)), min(start, len(line))))]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of an excerpt. `number` is the line it shows, None beneath a line and at a gap."""

    number: int | None
    pieces: tuple[Piece, ...]
    gap: bool = False


def excerpt(lines: Sequence[str], marks: Iterable[Mark], width: int) -> list[Row]:
    """The lines that `marks` are about, each with its marks beneath, no row wider than `width` cells.

    A mark outside of the text is left out: the file may have changed since it was read.
    """
    inside = sorted((m for m in marks if 1 <= m.span.line <= len(lines)), key=lambda m: (m.span, not m.primary))
    tall = next((m for m in inside if m.primary and m.span.end_line > m.span.line), None)
    layout = _Layout(lines, inside, tall, max(width - (2 if tall else 0), NARROWEST))
    rows: list[Row] = []
    previous = 0
    for number in layout.numbers():
        if previous and number > previous + 1:
            rows.append(Row(None, layout.lane(number - 1), gap=True))
        previous = number
        rows += layout.rows(number)
    return rows


@dataclass(frozen=True, slots=True)
class _Layout:
    """What the rows of one excerpt share; `tall` is a mark over several lines, drawn as a bracket."""

    lines: Sequence[str]
    marks: Sequence[Mark]
    tall: Mark | None
    room: int

    def numbers(self) -> list[int]:
        """The numbers of the lines to show."""
        wanted: set[int] = set()
        for mark in self.marks:
            first = mark.span.line
            last = min(mark.span.end_line, len(self.lines)) if mark.primary else first
            if last - first < HEAD + TAIL + BRIDGE:
                wanted.update(range(first, last + 1))
            else:
                wanted.update(range(first, first + HEAD), range(last - TAIL + 1, last + 1))
        ordered = sorted(wanted)
        for number, following in pairwise(ordered):
            if following - number - 1 <= BRIDGE:
                wanted.update(range(number, following))
        return sorted(wanted)

    def rows(self, number: int) -> list[Row]:
        """A line, and beneath it a row for each mark that is on it."""
        line, tall = self.lines[number - 1], self.tall
        here = [mark for mark in self.marks if mark.span.line == number and mark is not tall]
        columns = [mark.columns(line) for mark in here]
        if tall is not None:
            columns += tall.columns_inside(number, line)
        view = LineView.of(line, columns, self.room)
        spans = [mark.columns(line) for mark in here if mark.primary]
        rows = [Row(number, (*self.lane(number), *view.pieces(spans)))]
        for mark in sorted(here, key=lambda mark: not mark.primary):
            start, end = (view.cell(column) for column in mark.columns(line))
            below = mark.sign * max(end - start, 1)
            rows += self._labelled(mark, self.lane(number, beneath=True), start, below)
        if tall is not None and number == tall.span.line and not self._opens_line(tall):
            corner = "╭" + "─" * (view.cell(tall.span.column - 1) + 1) + tall.sign
            rows.append(Row(None, ((corner, tall.role),)))
        if tall is not None and number == tall.span.end_line:
            corner = "╰" + "─" * (view.cell(max(tall.span.end_column - 2, 0)) + 1) + tall.sign
            rows += self._labelled(tall, (), 0, corner)
        return rows

    def lane(self, number: int, *, beneath: bool = False) -> tuple[Piece, ...]:
        """The two cells in front of a line, or of what is beneath it, with the bracket of the tall mark."""
        tall = self.tall
        if tall is None:
            return ()
        sign = " "
        if number == tall.span.line and self._opens_line(tall):
            sign = "│" if beneath else "╭"
        elif tall.span.line < number <= tall.span.end_line:
            sign = "│"
        return ((f"{sign} ", tall.role),)

    def _opens_line(self, mark: Mark) -> bool:
        return not self.lines[mark.span.line - 1][: mark.span.column - 1].strip()

    def _labelled(self, mark: Mark, lane: tuple[Piece, ...], indent: int, below: str) -> list[Row]:
        """The row under a line, with its label beside where there is room, else in rows of its own."""
        label, role = printable(mark.label), f"{mark.role} label"
        underline = (*lane, (" " * indent, "source"), (below, mark.role))
        if not label:
            return [Row(None, underline)]
        if indent + len(below) + 1 + cell_len(label) <= self.room:
            return [Row(None, (*underline, (f" {label}", role)))]
        indent = min(indent, self.room // 3)
        texts = wrapped(label, self.room - indent)
        return [
            Row(None, underline),
            *(Row(None, (*lane, (" " * indent, "source"), (t, role))) for t in texts),
        ]
