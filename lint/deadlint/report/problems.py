"""What went wrong with the run itself, a line each, for standard error in every format."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from deadlint.report.printable import encodable, printable

if TYPE_CHECKING:
    from deadlint.result import RunResult


def print_problems(result: RunResult, err: TextIO, *, quiet: bool = False) -> None:
    """Print the problems, and unless quiet the warnings."""
    said = [("error", problem) for problem in result.problems]
    if not quiet:
        said += [("warning", warning) for warning in result.warnings]
    for kind, problem in said:
        err.write(encodable(f"{kind}: {printable(problem.path)}: {printable(problem.message)}\n", err))
