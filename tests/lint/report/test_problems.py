"""Problems of the run: a clear line each."""

from __future__ import annotations

import io

from deadlint.model import FileProblem
from deadlint.report.problems import print_problems
from deadlint.result import RunResult

RESULT = RunResult(
    problems=(FileProblem("a\nb.py", "no such file"),),
    warnings=(FileProblem("empty", "holds no Python file"),),
)


def said(*, quiet: bool) -> str:
    err = io.StringIO()
    print_problems(RESULT, err, quiet=quiet)
    return err.getvalue()


def test_a_line_each() -> None:
    assert said(quiet=False) == "error: a\\nb.py: no such file\nwarning: empty: holds no Python file\n"


def test_quiet_keeps_the_errors() -> None:
    assert said(quiet=True) == "error: a\\nb.py: no such file\n"
