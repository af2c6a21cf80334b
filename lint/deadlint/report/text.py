"""Findings for a person: the source with the span underlined, the related places, the remedy and the fix."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, TextIO

from rich.cells import cell_len
from rich.console import Console

from deadlint.model import Finding, Fix, Level, Safety
from deadlint.report import PLAIN, Options
from deadlint.report.excerpt import Mark, Row, excerpt
from deadlint.report.folding import folded
from deadlint.report.line_view import LineView
from deadlint.report.page_writer import Line, PageWriter, console_for
from deadlint.report.preview import Changed, preview
from deadlint.report.printable import printable
from deadlint.report.source_text import SourceTexts
from deadlint.report.summary import statistics, summary
from deadlint.report.whole_fix import whole_fix
from deadlint.report.wrapping import wrapped

if TYPE_CHECKING:
    from deadlint.result import RunResult

WIDEST = 110  # cells; a sentence that runs across a wide screen is hard to read
PIPED = 100  # the same where there is no terminal to ask
LONGEST_PREVIEW = 12  # lines of a fix that are shown; `--diff` shows all of it
MOST_ROWS = 3  # for one of them, if it is long

# How a fix is offered: what applies it, and the style of that.
OFFERS = {
    Safety.SAFE: ("fix (safe, --fix)", "safe"),
    Safety.UNSAFE: ("fix (unsafe, --unsafe-fixes)", "unsafe"),
    Safety.DISPLAY: ("suggestion (not applied)", "display"),
}


def print_report(result: RunResult, out: TextIO, options: Options = PLAIN) -> None:
    """Print the open findings; then, unless quiet, the closing line."""
    write_report(console_for(out), result, options)


def write_report(console: Console, result: RunResult, options: Options = PLAIN) -> None:
    """The same on a console of the caller's, such as one that records."""
    asked = console.is_terminal or os.environ.get("COLUMNS", "").isdecimal()
    page = _Page(result, min(console.width, WIDEST) if asked else PIPED)
    PageWriter(console).write(_lines(page, result, options))


def _lines(page: _Page, result: RunResult, options: Options) -> Iterator[Line]:
    """All blocks of the report, an empty line between them."""
    blocks: list[Iterable[Line]] = [page.finding(finding) for finding in result.open_findings]
    if options.statistics:
        blocks.append(((line, "message"),) for line in statistics(result))
    if not options.quiet:
        blocks.append(((line, "message"),) for line in wrapped(summary(result), page.width))
    for number, block in enumerate(blocks):
        if number:
            yield ()
        yield from block


class _Page:
    """Lays findings out for one width."""

    def __init__(self, result: RunResult, width: int) -> None:
        self._texts = SourceTexts(result.source)
        self.width = width

    def finding(self, finding: Finding) -> Iterator[Line]:
        """The block of one finding."""
        yield from self._heading(finding)
        blocks = self._blocks(finding)
        numbers = [row.number for _, rows in blocks for row in rows if row.number is not None]
        gutter = len(str(max(numbers, default=1)))
        for place, rows in blocks:
            if place:
                yield ((f" {' ' * gutter} ├ ", "frame"), (printable(place), "place"))
            for row in rows:
                yield _row(row, gutter)
        yield from self._hanging(gutter + 3, (("remedy: ", "head"),), finding.remedy)
        if finding.fix is not None:
            yield from self._fix(finding, finding.fix, gutter)

    def _heading(self, finding: Finding) -> Iterator[Line]:
        place = printable(f"{finding.path}:{finding.span.line}:{finding.span.column}")
        code = "code strict" if finding.level is Level.STRICT else "code"
        start: Line = ((place, "path"), (": ", "frame"), (finding.code, code), (" ", "message"))
        return self._hanging(0, start, finding.message, further=4)

    def _hanging(self, indent: int, start: Line, text: str, further: int = 2) -> Iterator[Line]:
        """`start` and `text`, wrapped at words; what follows the first line stands `further` to the right."""
        begun = sum(cell_len(piece) for piece, _ in start)
        first, *rest = wrapped(printable(text), max(self.width - indent, 20), first=begun, further=further)
        yield ((" " * indent, "message"), *start, (first, "message"))
        for line in rest:
            yield ((" " * indent + line, "message"),)

    def _blocks(self, finding: Finding) -> list[tuple[str, list[Row]]]:
        """The excerpts of a finding: its own file, then the others in the order in which they are related."""
        width = self.width - 8
        here = [related for related in finding.related if related.path == finding.path]
        elsewhere = [related for related in finding.related if related.path != finding.path]
        marks = [Mark(finding.span, primary=True), *(Mark(related.span, related.message) for related in here)]
        blocks = [("", excerpt(self._texts[finding.path].lines, marks, width))]
        for path, group in groupby(elsewhere, key=lambda related: related.path):
            places = list(group)
            rows = excerpt(self._texts[path].lines, [Mark(p.span, p.message) for p in places], width)
            where = f"{path}:{places[0].span.line}:{places[0].span.column}"
            # Without its source a place is still worth its words.
            said = "" if rows else ": " + "; ".join(place.message for place in places)
            blocks.append((where + said, rows))
        return blocks

    def _fix(self, finding: Finding, fix: Fix, gutter: int) -> Iterator[Line]:
        head, role = OFFERS[fix.safety]
        yield from self._hanging(gutter + 3, ((f"{head}: ", role),), fix.title)
        text = self._texts[finding.path]
        changed = preview(text, whole_fix(fix, text) or fix.edits)
        for line in changed[:LONGEST_PREVIEW]:
            yield from self._changed(line, gutter)
        if len(changed) > LONGEST_PREVIEW:
            more = f"… {len(changed) - LONGEST_PREVIEW} more lines; --diff shows them"
            yield ((" " * (gutter + 5), "frame"), (more, "frame"))

    def _changed(self, line: Changed, gutter: int) -> Iterator[Line]:
        role = "removed" if line.sign == "-" else "added"
        roles = {"source": role, "span": f"{role} span"}
        room = self.width - gutter - 4
        view = LineView.of(line.text, line.columns, room * MOST_ROWS)
        pieces = [(text, roles.get(kind, kind)) for text, kind in view.pieces(line.columns)]
        number = str(line.number) if line.sign == "-" else ""
        for row, folded_pieces in enumerate(folded(pieces, room)):
            head, sign = ("", " ") if row else (number, line.sign)
            yield ((f" {head:>{gutter}} ", "number"), (f"{sign} ", role), *folded_pieces)


def _row(row: Row, gutter: int) -> Line:
    number = "" if row.number is None else str(row.number)
    bar = "┆" if row.gap else "│"
    return ((f" {number:>{gutter}} ", "number"), (f"{bar} ", "frame"), *row.pieces)
