"""Findings in notebooks at the places that a reader knows: the cell and its line, or the line of the file.

Within deadlint the code of a notebook is one text. A person looks for a cell and a line in it. A service that shows
files, and knows nothing of cells, can only be told where in the JSON text that line stands.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from deadlint.fingerprint import identity
from deadlint.model import NOTEBOOK, Edit, Finding, Fix, Related, Span
from deadlint.notebook.source import Notebook, Section, masks_of, sections
from deadlint.report.cell_path import CellPath
from deadlint.report.source_text import SourceText
from deadlint.report.whole_fix import whole_fix
from deadlint.result import RunResult
from deadlint.source import CannotEncode, SourceFile, UnreadableSource

Source = Callable[[str], str | None]


class Cells:
    """The text of one notebook, and where its places are in the cells."""

    def __init__(self, text: str) -> None:
        self.text = SourceText(text)
        self.masks = masks_of(text)
        self._sections = list(sections(text))
        self._starts = [one.start for one in self._sections]

    def section(self, line: int) -> Section | None:
        """The cell that a line of the text is in; None in a text without cells."""
        index = bisect_right([one.line for one in self._sections], line) - 1
        return self._sections[max(index, 0)] if self._sections else None

    def original(self, section: Section) -> str:
        """The source of a cell as it is in the notebook."""
        return self.masks.removed(section.text)

    def span(self, section: Section, span: Span) -> Span:
        """A span of the text in the lines of a cell."""
        ends = ((span.line, span.column), (span.end_line, span.end_column))
        (line, column), (end_line, end_column) = (
            (line - section.line + 1, self.masks.column(self._line(line), column)) for line, column in ends
        )
        return Span(line, column, end_line, end_column)

    def _line(self, number: int) -> str:
        return self.text.lines[number - 1] if 1 <= number <= len(self.text.lines) else ""

    def edit(self, edit: Edit) -> tuple[Section, Edit] | None:
        """A cell and the edit of its source that an edit of the text is."""
        if not self._sections:
            return None
        index = max(bisect_right(self._starts, edit.start) - 1, 0)
        section = self._sections[index]
        start, end = edit.start - section.start, edit.end - section.start
        text = edit.text
        if start > len(section.text):  # behind the newline of the last line, which a cell does not have
            start = end = len(section.text)
            text = "\n" + text.rstrip("\r\n")
        elif end > len(section.text):
            end = len(section.text)
            text = text.removesuffix("\n").removesuffix("\r")
        start, end = (len(self.masks.removed(section.text[:offset])) for offset in (start, end))
        return section, Edit(start, end, text)


class CellViews:
    """The notebooks of a result by path; None for what is none."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._known: dict[str, Cells] = {}

    def __getitem__(self, path: str) -> Cells | None:
        if not path.endswith(NOTEBOOK):
            return None
        if path not in self._known:
            self._known[path] = Cells(self._source(path) or "")
        return self._known[path]


# --- by cell -----------------------------------------------------------------------------------------------------


def by_cell(result: RunResult) -> RunResult:
    """The result with each cell as a file of its own, named `path.ipynb:cell`."""
    views = CellViews(result.source)
    texts: dict[str, str] = {}

    def placed(path: str, span: Span) -> tuple[str, Span]:
        cells = views[path]
        section = cells.section(span.line) if cells else None
        if cells is None or section is None:
            return path, span
        name = CellPath(path, section.cell)
        texts[name] = cells.original(section)
        return name, cells.span(section, span)

    def moved(finding: Finding) -> Finding:
        cells = views[finding.path]
        path, span = placed(finding.path, finding.span)
        related = tuple(Related(*placed(one.path, one.span), one.message) for one in finding.related)
        fix = finding.fix if cells is None else _fix_in_cell(finding, cells)
        return replace(finding, path=path, span=span, related=related, fix=fix)

    findings = tuple(map(moved, result.findings))
    return replace(result, findings=findings, source=lambda path: texts[path] if path in texts else result.source(path))


def _fix_in_cell(finding: Finding, cells: Cells) -> Fix | None:
    """The fix as far as it is in the finding's own cell, and in words what it does in others."""
    fix, section = finding.fix, cells.section(finding.span.line)
    if fix is None or section is None:
        return fix
    found = [placed for edit in whole_fix(fix, cells.text) or fix.edits if (placed := cells.edit(edit))]
    here = tuple(edit for where, edit in found if where.cell == section.cell)
    others = sorted({where.cell for where, _ in found if where.cell != section.cell})
    title = fix.title + "".join(f", with what it needs in cell {number}" for number in others)
    return Fix(title, fix.safety, here)


# --- by the file -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _OnDisk:
    """A notebook as its file has it."""

    notebook: Notebook
    cells: Cells

    @cached_property
    def file(self) -> SourceText:
        return SourceText(self.notebook.document.text)

    def span(self, span: Span) -> Span:
        """A span of the code in lines and columns of the file."""
        section = self.cells.section(span.line)
        cell = next((one for one in self.notebook.document.cells if section and one.number == section.cell), None)
        if section is None or cell is None:
            return _TOP
        inside = self.cells.span(section, span)
        text = SourceText(cell.text)
        start = text.starts[inside.line - 1] + inside.column - 1
        last = text.starts[inside.end_line - 1] + inside.end_column - 2
        position = self.notebook.document.position
        first = position(cell, start)
        return self.file.span(first, max(position(cell, last), first) + 1)

    def fix(self, fix: Fix) -> Fix | None:
        """A fix as edits of the file."""
        from deadlint.fix import apply_edits  # noqa: PLC0415 - brings in the index

        edits = whole_fix(fix, self.cells.text)
        if edits is None:
            return None
        try:
            changed = self.notebook.file_edits(apply_edits(self.cells.text.text, edits))
        except CannotEncode:
            return None
        return Fix(fix.title, fix.safety, tuple(changed))


_TOP = Span(1, 1, 1, 2)


def by_file(result: RunResult) -> RunResult:
    """The result with lines and columns of the notebooks' files, and the cell in front of each message."""
    views = CellViews(result.source)
    disk: dict[str, _OnDisk | None] = {}

    def on_disk(path: str, cells: Cells) -> _OnDisk | None:
        if path not in disk:
            notebook = _read(path)
            disk[path] = _OnDisk(notebook, cells) if notebook and notebook.text == cells.text.text else None
        return disk[path]

    def placed(path: str, span: Span, message: str) -> tuple[Span, str]:
        cells = views[path]
        section = cells.section(span.line) if cells else None
        if cells is None or section is None:
            return span, message
        found = on_disk(path, cells)
        line = cells.span(section, span).line
        return (found.span(span) if found else _TOP), f"Cell {section.cell}, line {line}: {message}"

    def moved(finding: Finding) -> Finding:
        cells = views[finding.path]
        related = tuple(Related(one.path, *placed(one.path, one.span, one.message)) for one in finding.related)
        if cells is None:
            return replace(finding, related=related)
        found = on_disk(finding.path, cells)
        span, message = placed(finding.path, finding.span, finding.message)
        fix = found.fix(finding.fix) if found and finding.fix else None
        name = identity(finding, cells.text.lines)
        return replace(finding, span=span, message=message, related=related, fix=fix, identity=name)

    def source(path: str) -> str | None:
        found = disk.get(path)
        return found.notebook.document.text if found else result.source(path)

    return replace(result, findings=tuple(map(moved, result.findings)), source=source)


def _read(path: str) -> Notebook | None:
    try:
        source = SourceFile.read(path)
    except (OSError, UnreadableSource):
        return None
    return source if isinstance(source, Notebook) else None
