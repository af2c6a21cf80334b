"""GitLab's code quality report: a JSON list that a merge request compares with its target's."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from deadlint.fingerprint import fingerprints
from deadlint.model import Finding, Level
from deadlint.report import PLAIN, Options
from deadlint.report.checkout_path import checkout_path
from deadlint.report.json_text import json_text
from deadlint.report.whole_message import whole_message

if TYPE_CHECKING:
    from deadlint.result import RunResult

SEVERITIES = {Level.DEFAULT: "major", Level.STRICT: "minor"}


def print_report(result: RunResult, out: TextIO, options: Options = PLAIN) -> None:
    """Print the open findings. The fingerprints tell GitLab which ones are new."""
    names = fingerprints(result.open_findings, result.source)
    pairs = zip(result.open_findings, names, strict=True)
    out.write(json_text([violation(finding, name) for finding, name in pairs]))


def violation(finding: Finding, fingerprint: str) -> dict[str, object]:
    """One entry of the list."""
    span = finding.span
    return {
        "type": "issue",
        "check_name": f"{finding.code} {finding.name}",
        "description": whole_message(finding),
        "categories": ["Bug Risk"],
        "severity": SEVERITIES[finding.level],
        "fingerprint": fingerprint,
        "location": {
            "path": checkout_path(finding.path),
            "lines": {"begin": span.line, "end": span.end_line},
        },
    }
