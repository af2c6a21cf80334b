"""Azure Pipelines logging commands: an issue at the line of each finding, in the log of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from deadlint.model import Finding, Level
from deadlint.report import PLAIN, Options
from deadlint.report.checkout_path import checkout_path
from deadlint.report.printable import encodable, printable
from deadlint.report.whole_message import whole_message

if TYPE_CHECKING:
    from deadlint.result import RunResult

LEVELS = {Level.DEFAULT: "error", Level.STRICT: "warning"}


def print_report(result: RunResult, out: TextIO, options: Options = PLAIN) -> None:
    """Print a command for each open finding and each problem."""
    lines = [issue(finding) for finding in result.open_findings]
    lines += [
        f"##vso[task.logissue type=error;sourcepath={_property(checkout_path(problem.path))};]{_data(problem.message)}"
        for problem in result.problems
    ]
    out.write(encodable("".join(f"{line}\n" for line in lines), out))


def issue(finding: Finding) -> str:
    """The command of one finding."""
    return (
        f"##vso[task.logissue type={LEVELS[finding.level]};"
        f"sourcepath={_property(checkout_path(finding.path))};"
        f"linenumber={finding.span.line};columnnumber={finding.span.column};code={finding.code};]"
        f"{_data(whole_message(finding))}"
    )


def _data(text: str) -> str:
    """A per cent sign would begin an escape; the agent decodes `%AZP25` to one."""
    return printable(text).replace("%", "%AZP25")


def _property(text: str) -> str:
    """Escape what would end a property or the command too."""
    return _data(text).replace(";", "%3B").replace("]", "%5D")
