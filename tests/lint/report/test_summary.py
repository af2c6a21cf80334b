"""The closing line says what was found and what can be done about it, in every way a run can end."""

from __future__ import annotations

from dataclasses import replace

import pytest
from deadlint.model import FileProblem, Finding, Safety, Suppression
from deadlint.report.summary import statistics, summary
from deadlint.result import Change, RunResult, Step

from tests.lint.report.made_by_hand import FLOWS, result_of

CHANGE = Change("flows.py", "a", "b")


def run(*findings: Finding, **rest: object) -> RunResult:
    return result_of({"flows.py": FLOWS, "b.py": ""}, *findings, **rest)


def test_what_fixes_can_do(untimed: Finding) -> None:
    assert untimed.fix is not None
    plain = replace(untimed, fix=None)
    unsafe = replace(untimed, fix=replace(untimed.fix, safety=Safety.UNSAFE))
    shy = replace(untimed, fix=replace(untimed.fix, safety=Safety.DISPLAY))
    hidden = replace(plain, suppressed=Suppression(5, "# noqa"))
    assert summary(run(plain)) == "Found 1 finding in 1 file."
    assert summary(run(plain, shy)) == "Found 2 findings in 1 file."
    assert summary(run(plain, unsafe)) == "Found 2 findings in 1 file, 1 fixable with --unsafe-fixes."
    assert (
        summary(run(untimed, unsafe, unsafe))
        == "Found 3 findings in 1 file, 1 fixable with --fix, 2 more with --unsafe-fixes."
    )
    assert summary(run(untimed, hidden)) == "Found 1 finding in 1 file, 1 fixable with --fix, 1 suppressed."


@pytest.mark.parametrize(("written", "verb"), [(True, "Fixed"), (False, "Would fix")])
def test_what_was_fixed(untimed: Finding, written: bool, verb: str) -> None:
    fixed = run(fixed=(untimed, untimed), changes=(CHANGE,), written=written)
    assert summary(fixed) == f"{verb} 2 findings in 1 file, none left."


def test_what_is_left(untimed: Finding) -> None:
    left = run(replace(untimed, fix=None), fixed=(untimed,), changes=(CHANGE,), written=True)
    assert summary(left) == "Fixed 1 finding in 1 file, 1 left in 1 file."


def test_what_could_not_be_checked() -> None:
    broken = run(problems=(FileProblem("a", "x"), FileProblem("a", "y"), FileProblem("b", "z")))
    assert summary(broken) == "No findings in 2 files. 2 paths could not be checked."


def test_statistics_say_where_the_time_went(untimed: Finding) -> None:
    timed = run(untimed, untimed, steps=(Step("index", 0.25, 2), Step("DL201", 0.012, 1)), seconds=0.5, cached=1)
    assert statistics(timed) == [
        "    2  DL201  request-without-timeout  2 with --fix",
        "",
        "Time of 0.50 s, 1 of 2 files from the cache:",
        "   0.250 s  index  (2 files)",
        "   0.012 s  DL201  (1 file)",
    ]
