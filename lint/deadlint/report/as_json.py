"""The whole result as JSON, for programs; `docs/findings.schema.json` describes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from deadlint import __version__
from deadlint.fingerprint import fingerprints
from deadlint.model import Edit, FileProblem, Finding, Fix, Related, Safety, Span, Suppression
from deadlint.report import PLAIN, Options
from deadlint.report.json_text import json_text
from deadlint.report.source_text import SourceText, SourceTexts
from deadlint.report.summary import fixable
from deadlint.report.whole_fix import whole_fix

if TYPE_CHECKING:
    from deadlint.report.notebooks import Cells, CellViews
    from deadlint.result import RunResult

VERSION = 1  # rises when a reader of the last one would misread the document
APPLIED_BY = {Safety.SAFE: "--fix", Safety.UNSAFE: "--unsafe-fixes", Safety.DISPLAY: None}

Json = dict[str, object]


def print_report(result: RunResult, out: TextIO, options: Options = PLAIN) -> None:
    """Print findings (suppressed ones marked), problems, what was fixed, and the counts."""
    out.write(json_text(document(result, options)))


def document(result: RunResult, options: Options = PLAIN) -> Json:
    """The document, as values that JSON can hold. Times are in it only where statistics are asked for."""
    names = fingerprints(result.findings, result.source)
    values = _Findings(result)
    return {
        "version": VERSION,
        "tool": {"name": "deadlint", "version": __version__},
        "findings": [values.finding(finding, name) for finding, name in zip(result.findings, names, strict=True)],
        "fixed": [values.heading(finding) for finding in result.fixed],
        "changes": [{"path": change.path, "written": result.written} for change in result.changes],
        "problems": [_problem(problem) for problem in result.problems],
        "warnings": [_problem(warning) for warning in result.warnings],
        "statistics": _statistics(result, options),
    }


class _Findings:
    """Turns findings into values, their offsets into lines and columns."""

    def __init__(self, result: RunResult) -> None:
        self._texts = SourceTexts(result.source)
        self._cells = cell_views(result)

    def heading(self, finding: Finding) -> Json:
        """What is said of a finding wherever it is named."""
        return {"code": finding.code, "name": finding.name, **self._located(finding), "message": finding.message}

    def _located(self, one: Finding | Related) -> Json:
        """Path and span; in a notebook the cell, and the span in its lines."""
        cells = self._cells[one.path] if self._cells else None
        section = cells.section(one.span.line) if cells else None
        if cells is None or section is None:
            return {"path": one.path, "span": _span(one.span)}
        return {"path": one.path, "cell": section.cell, "span": _span(cells.span(section, one.span))}

    def finding(self, finding: Finding, fingerprint: str) -> Json:
        """One finding with its fix."""
        hidden = finding.suppressed
        return {
            **self.heading(finding),
            "level": finding.level.value,
            "remedy": finding.remedy,
            "related": [{**self._located(one), "message": one.message} for one in finding.related],
            "fix": None if finding.fix is None else self._fix(finding.fix, finding.path),
            "suppressed": None if hidden is None else self._suppression(hidden, finding.path),
            "fingerprint": fingerprint,
        }

    def _suppression(self, hidden: Suppression, path: str) -> Json:
        cells = self._cells[path] if self._cells else None
        section = cells.section(hidden.line) if cells and hidden.line else None
        line = hidden.line - section.line + 1 if section else hidden.line
        return {"by": hidden.by.value, "line": line, "text": hidden.text, "reason": hidden.reason}

    def _fix(self, fix: Fix, path: str) -> Json:
        text = self._texts[path]
        edits = whole_fix(fix, text) or fix.edits
        cells = self._cells[path] if self._cells else None
        return {
            "title": fix.title,
            "safety": fix.safety.value,
            "applied_by": APPLIED_BY[fix.safety],
            "edits": [_edit(edit, text) if cells is None else _cell_edit(edit, cells) for edit in edits],
        }


def cell_views(result: RunResult) -> CellViews | None:
    """The notebooks that findings are in; None where there are none."""
    if not result.in_notebooks:
        return None
    from deadlint.report.notebooks import CellViews  # noqa: PLC0415 - few results have any

    return CellViews(result.source)


def _edit(edit: Edit, text: SourceText) -> Json:
    return {"start": _place(edit.start, text), "end": _place(edit.end, text), "text": edit.text}


def _cell_edit(edit: Edit, cells: Cells) -> Json:
    """An edit of a cell's source; offsets count in it too."""
    placed = cells.edit(edit)
    if placed is None:
        return _edit(edit, cells.text)
    section, inside = placed
    return {"cell": section.cell, **_edit(inside, SourceText(cells.original(section)))}


def _place(offset: int, text: SourceText) -> Json:
    line, column = text.place(offset)
    return {"offset": offset, "line": line, "column": column}


def _span(span: Span) -> Json:
    return {
        "start": {"line": span.line, "column": span.column},
        "end": {"line": span.end_line, "column": span.end_column},
    }


def _problem(problem: FileProblem) -> Json:
    return {"path": problem.path, "message": problem.message}


def _statistics(result: RunResult, options: Options) -> Json:
    found = result.open_findings
    counts: Json = {
        "files": result.files,
        "findings": len(found),
        "suppressed": len(result.findings) - len(found),
        "fixed": len(result.fixed),
        "fixable": {safety.value: fixable(found, safety) for safety in Safety},
        "rules": dict(result.counts),
    }
    if options.statistics:
        counts["cached"] = result.cached
        counts["seconds"] = round(result.seconds, 6)
        counts["steps"] = [
            {"name": step.name, "seconds": round(step.seconds, 6), "files": step.files} for step in result.steps
        ]
    return counts
