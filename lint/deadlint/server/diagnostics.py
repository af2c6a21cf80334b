"""Findings as the protocol writes them."""

from __future__ import annotations

from lsprotocol import types

from deadlint.model import Finding, Level
from deadlint.report.whole_message import whole_message
from deadlint.server.analysis import Checked
from deadlint.server.pages import page_uri
from deadlint.server.places import Places
from deadlint.suppress import SYNTAX_ERROR, UNUSED

SOURCE = "deadlint"


def diagnostics(checked: Checked, places: Places) -> list[types.Diagnostic]:
    """The diagnostics of a buffer; one at its top where it could not be checked."""
    found = [diagnostic(finding, checked, places) for finding in checked.findings]
    if checked.problem is not None:
        top = types.Range(types.Position(0, 0), types.Position(0, 0))
        text = f"not checked: {checked.problem}"
        found.append(types.Diagnostic(top, text, severity=types.DiagnosticSeverity.Error, source=SOURCE))
    return found


def diagnostic(finding: Finding, checked: Checked, places: Places) -> types.Diagnostic:
    """One finding."""
    href = page_uri(finding.code)
    related = [
        types.DiagnosticRelatedInformation(places.location(one.path, one.span), one.message)
        for one in finding.related
    ]
    return types.Diagnostic(
        range=checked.buffer.positions.of_span(finding.span),
        message=whole_message(finding),
        severity=_severity(finding),
        code=finding.code,
        code_description=types.CodeDescription(href) if href else None,
        source=SOURCE,
        tags=[types.DiagnosticTag.Unnecessary] if finding.code == UNUSED[0] else None,
        related_information=related or None,
    )


def _severity(finding: Finding) -> types.DiagnosticSeverity:
    if finding.code == SYNTAX_ERROR:
        return types.DiagnosticSeverity.Error
    return types.DiagnosticSeverity.Warning if finding.level is Level.DEFAULT else types.DiagnosticSeverity.Information
