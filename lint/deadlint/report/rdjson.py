"""Reviewdog's diagnostic format: findings as comments on a pull request, local fixes as suggestions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from deadlint.model import Edit, Finding, Level, Safety, Span
from deadlint.report import PLAIN, Options
from deadlint.report.checkout_path import checkout_path
from deadlint.report.json_text import json_text
from deadlint.report.source_text import SourceText, SourceTexts
from deadlint.report.whole_fix import whole_fix
from deadlint.report.whole_message import whole_message

if TYPE_CHECKING:
    from deadlint.result import RunResult

SEVERITIES = {Level.DEFAULT: "ERROR", Level.STRICT: "WARNING"}

Json = dict[str, object]


def print_report(result: RunResult, out: TextIO, options: Options = PLAIN) -> None:
    """Print the open findings."""
    texts = SourceTexts(result.source)
    found = [diagnostic(finding, texts[finding.path]) for finding in result.open_findings]
    out.write(json_text({"source": {"name": "deadlint"}, "diagnostics": found}))


def diagnostic(finding: Finding, text: SourceText) -> Json:
    """One finding. Columns count UTF-8 bytes from 1, as the format has it."""
    entry: Json = {
        "message": whole_message(finding),
        "location": {"path": checkout_path(finding.path), "range": _range(finding.span, text)},
        "severity": SEVERITIES[finding.level],
        "code": {"value": finding.code},
    }
    edits = _local_edits(finding, text)
    if edits:
        entry["suggestions"] = [_suggestion(edits, text)]
    return entry


def _local_edits(finding: Finding, text: SourceText) -> tuple[Edit, ...]:
    """The edits of a fix that stays within the lines of the finding; none of any other.

    A suggestion has to be the whole fix: a reader who takes half of one, without its import, breaks the code.
    """
    if finding.fix is None or finding.fix.safety is Safety.DISPLAY:
        return ()
    edits = whole_fix(finding.fix, text) or ()
    lines = range(finding.span.line, finding.span.end_line + 1)
    places = (text.place(offset)[0] for edit in edits for offset in (edit.start, edit.end))
    return edits if all(line in lines for line in places) else ()


def _suggestion(edits: Sequence[Edit], text: SourceText) -> Json:
    """All edits as one: reviewdog takes several suggestions for alternatives."""
    start, end = edits[0].start, max(edit.end for edit in edits)
    parts, at = [], start
    for edit in edits:
        parts += [text.text[at : edit.start], edit.text]
        at = edit.end
    return {"range": _range(text.span(start, end), text), "text": "".join(parts)}


def _range(span: Span, text: SourceText) -> Json:
    return {
        "start": {"line": span.line, "column": text.utf8_column(span.line, span.column)},
        "end": {"line": span.end_line, "column": text.utf8_column(span.end_line, span.end_column)},
    }
