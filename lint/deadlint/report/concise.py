"""One line for each finding: `path:line:col: DL201 message`, for grep, editors and eyes in a hurry."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from deadlint.report import PLAIN, Options
from deadlint.report.printable import encodable, printable
from deadlint.report.summary import statistics, summary

if TYPE_CHECKING:
    from deadlint.model import Finding
    from deadlint.result import RunResult


def concise(finding: Finding) -> str:
    """The line of one finding; one line whatever its path holds."""
    place = f"{finding.path}:{finding.span.line}:{finding.span.column}"
    return printable(f"{place}: {finding.code} {finding.message}")


def print_report(result: RunResult, out: TextIO, options: Options = PLAIN) -> None:
    """Print the open findings, the statistics where asked for, and a closing line unless quiet."""
    lines = [concise(finding) for finding in result.open_findings]
    if options.statistics:
        lines += ["", *statistics(result)]
    if not options.quiet:
        lines.append(summary(result))
    out.write(encodable("".join(f"{line}\n" for line in lines), out))
