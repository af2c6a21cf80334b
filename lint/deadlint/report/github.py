"""GitHub workflow commands: an annotation at the line of each finding, in the log of an Actions run."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from deadlint.model import Finding, Level
from deadlint.report import PLAIN, Options
from deadlint.report.checkout_path import checkout_path
from deadlint.report.printable import encodable, printable
from deadlint.report.summary import statistics, summary
from deadlint.report.whole_message import whole_message

if TYPE_CHECKING:
    from deadlint.result import RunResult

LEVELS = {Level.DEFAULT: "error", Level.STRICT: "warning"}


def print_report(result: RunResult, out: TextIO, options: Options = PLAIN) -> None:
    """Print a command for each open finding and each problem, then the closing line, which the log shows."""
    lines = [annotation(finding) for finding in result.open_findings]
    lines += [
        f"::error title=deadlint,file={_property(checkout_path(problem.path))}::{_data(problem.message)}"
        for problem in result.problems
    ]
    if options.statistics:
        lines += statistics(result)
    if not options.quiet:
        lines.append(summary(result))
    out.write(encodable("".join(f"{line}\n" for line in lines), out))


def annotation(finding: Finding) -> str:
    """The command of one finding. GitHub shows the columns only where the span is on one line."""
    span = finding.span
    place = {
        "title": f"{finding.code} {finding.name}",
        "file": checkout_path(finding.path),
        "line": str(span.line),
        "endLine": str(span.end_line),
    }
    if span.end_line == span.line:
        place |= {"col": str(span.column), "endColumn": str(span.end_column)}
    properties = ",".join(f"{name}={_property(value)}" for name, value in place.items())
    where = f"{finding.path}:{span.line}:{span.column}: {finding.code}"
    return f"::{LEVELS[finding.level]} {properties}::{_data(f'{where} {whole_message(finding)}')}"


def _data(text: str) -> str:
    """A per cent sign would begin an escape; the log decodes `%25` to one."""
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    return printable(text).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
