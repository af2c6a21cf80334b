"""The whole result as JSON, for programs; `docs/findings.schema.json` describes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from deadlint import __version__
from deadlint.fingerprint import fingerprints
from deadlint.model import Edit, FileProblem, Finding, Fix, Related, Safety, Span
from deadlint.report import PLAIN, Options
from deadlint.report.json_text import json_text
from deadlint.report.source_text import SourceText, SourceTexts
from deadlint.report.summary import fixable
from deadlint.report.whole_fix import whole_fix

if TYPE_CHECKING:
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
        "fixed": [_heading(finding) for finding in result.fixed],
        "changes": [{"path": change.path, "written": result.written} for change in result.changes],
        "problems": [_problem(problem) for problem in result.problems],
        "warnings": [_problem(warning) for warning in result.warnings],
        "statistics": _statistics(result, options),
    }


class _Findings:
    """Turns findings into values, their offsets into lines and columns."""

    def __init__(self, result: RunResult) -> None:
        self._texts = SourceTexts(result.source)

    def finding(self, finding: Finding, fingerprint: str) -> Json:
        """One finding with its fix."""
        hidden = finding.suppressed
        return {
            **_heading(finding),
            "level": finding.level.value,
            "remedy": finding.remedy,
            "related": [_related(related) for related in finding.related],
            "fix": None if finding.fix is None else self._fix(finding.fix, self._texts[finding.path]),
            "suppressed": None
            if hidden is None
            else {"line": hidden.line, "text": hidden.text, "reason": hidden.reason},
            "fingerprint": fingerprint,
        }

    def _fix(self, fix: Fix, text: SourceText) -> Json:
        edits = whole_fix(fix, text) or fix.edits
        return {
            "title": fix.title,
            "safety": fix.safety.value,
            "applied_by": APPLIED_BY[fix.safety],
            "edits": [_edit(edit, text) for edit in edits],
        }


def _edit(edit: Edit, text: SourceText) -> Json:
    return {"start": _place(edit.start, text), "end": _place(edit.end, text), "text": edit.text}


def _place(offset: int, text: SourceText) -> Json:
    line, column = text.place(offset)
    return {"offset": offset, "line": line, "column": column}


def _heading(finding: Finding) -> Json:
    return {
        "code": finding.code,
        "name": finding.name,
        "path": finding.path,
        "span": _span(finding.span),
        "message": finding.message,
    }


def _related(related: Related) -> Json:
    return {"path": related.path, "span": _span(related.span), "message": related.message}


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
