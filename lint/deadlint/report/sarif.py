"""SARIF 2.1.0, which code scanning services and many editors read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, TextIO
from urllib.parse import quote

from deadlint import __version__
from deadlint.fingerprint import fingerprints
from deadlint.model import Edit, FileProblem, Finding, Level, Safety, SilencedBy, Span
from deadlint.report import PLAIN, Options
from deadlint.report.checkout_path import checkout_path, path_bytes
from deadlint.report.json_text import json_text
from deadlint.report.sarif_rules import descriptors
from deadlint.report.source_text import SourceText, SourceTexts
from deadlint.report.whole_fix import whole_fix
from deadlint.report.whole_message import whole_message

if TYPE_CHECKING:
    from deadlint.result import RunResult

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "SRCROOT"
KINDS = {SilencedBy.COMMENT: "inSource", SilencedBy.BASELINE: "external"}
LEVELS = {Level.DEFAULT: "error", Level.STRICT: "warning"}

Json = dict[str, object]


def print_report(result: RunResult, out: TextIO, options: Options = PLAIN) -> None:
    """Print one run with all findings; suppressed ones are results that say so, as the format has it."""
    out.write(json_text(document(result)))


def document(result: RunResult) -> Json:
    """The log, as values that JSON can hold."""
    rules = descriptors(result.findings)
    index = {rule["id"]: position for position, rule in enumerate(rules)}
    texts = SourceTexts(result.source)
    names = fingerprints(result.findings, result.source)
    run: Json = {
        "tool": {"driver": {"name": "deadlint", "semanticVersion": __version__, "rules": rules}},
        "invocations": [_invocation(result)],
        "originalUriBaseIds": {ROOT: {"description": {"text": "The root of the checkout."}}},
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(finding, name, index[finding.code], texts)
            for finding, name in zip(result.findings, names, strict=True)
        ],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(finding: Finding, fingerprint: str, rule: int, texts: SourceTexts) -> Json:
    entry: Json = {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": LEVELS[finding.level],
        "message": {"text": whole_message(finding)},
        "locations": [_location(finding.path, finding.span)],
        "partialFingerprints": {"deadlint/v1": fingerprint},
    }
    if finding.related:
        entry["relatedLocations"] = [
            {"id": number, **_location(place.path, place.span, place.message)}
            for number, place in enumerate(finding.related, 1)
        ]
        entry["codeFlows"] = [_flow(finding)]
    if finding.fix is not None and finding.fix.safety is not Safety.DISPLAY:
        text = texts[finding.path]
        edits = whole_fix(finding.fix, text)
        if edits:
            entry["fixes"] = [_fix(finding, edits, text)]
    if finding.suppressed is not None:
        suppression: Json = {"kind": KINDS[finding.suppressed.by]}
        if finding.suppressed.reason:
            suppression["justification"] = finding.suppressed.reason
        entry["suppressions"] = [suppression]
    return entry


def _flow(finding: Finding) -> Json:
    """The way from the outer limit over the calls to the finding, for viewers that step through it."""
    steps = [_location(place.path, place.span, place.message) for place in finding.related]
    if all((place.path, place.span) != (finding.path, finding.span) for place in finding.related):
        steps.append(_location(finding.path, finding.span, finding.message))
    return {"threadFlows": [{"locations": [{"location": step} for step in steps]}]}


def _fix(finding: Finding, edits: Sequence[Edit], text: SourceText) -> Json:
    """A fix with its imports, so that taking it leaves a file that runs."""
    assert finding.fix is not None
    note = "" if finding.fix.safety is Safety.SAFE else " (may change behaviour)"
    return {
        "description": {"text": f"{finding.fix.title}{note}"},
        "artifactChanges": [
            {
                "artifactLocation": _artifact(finding.path),
                "replacements": [
                    {
                        "deletedRegion": _region(text.span(edit.start, edit.end)),
                        "insertedContent": {"text": edit.text},
                    }
                    for edit in edits
                ],
            }
        ],
    }


def _location(path: str, span: Span, message: str = "") -> Json:
    location: Json = {
        "physicalLocation": {"artifactLocation": _artifact(path), "region": _region(span)},
    }
    if message:
        location["message"] = {"text": message}
    return location


def _region(span: Span) -> Json:
    return {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }


def _artifact(path: str) -> Json:
    """A path as a URI; relative ones hang on the root of the checkout."""
    shown = checkout_path(path)
    uri = quote(path_bytes(shown), safe="/~")
    if PurePath(shown).is_absolute():
        return {"uri": f"file://{uri if uri.startswith('/') else '/' + uri}"}
    return {"uri": uri, "uriBaseId": ROOT}


def _invocation(result: RunResult) -> Json:
    notes = [_notification(problem, "error") for problem in result.problems]
    notes += [_notification(warning, "warning") for warning in result.warnings]
    return {"executionSuccessful": not result.problems, "toolExecutionNotifications": notes}


def _notification(problem: FileProblem, level: str) -> Json:
    return {
        "level": level,
        "message": {"text": problem.message},
        "locations": [{"physicalLocation": {"artifactLocation": _artifact(problem.path)}}],
    }
