"""The lines that close a report: how much was found, what fixes can do about it, counts for each rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from deadlint.model import Safety, SilencedBy
from deadlint.report.cell_path import file_of

if TYPE_CHECKING:
    from deadlint.model import Finding
    from deadlint.result import RunResult


def plural(count: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def fixable(findings: Iterable[Finding], safety: Safety) -> int:
    """How many findings have a fix of that safety."""
    return sum(1 for finding in findings if finding.fix is not None and finding.fix.safety is safety)


def summary(result: RunResult) -> str:
    """One line on the whole run, without a newline."""
    found = _after_fixing(result) if result.changes else _found(result)
    return " ".join(part for part in (found, _unchecked(result)) if part)


def _found(result: RunResult) -> str:
    count = len(result.open_findings)
    if not count:
        return f"No findings in {plural(result.files, 'file')}{_suppressed(result)}."
    return f"Found {plural(count, 'finding')} in {_files(result)}{_fixes(result)}{_suppressed(result)}."


def _after_fixing(result: RunResult) -> str:
    """What was fixed and what is left; of a diff, what would be."""
    count = len(result.open_findings)
    fixed = f"{plural(len(result.fixed), 'finding')} in {plural(len(result.changes), 'file')}"
    left = f"{count} left in {_files(result)}{_fixes(result)}" if count else "none left"
    return f"{'Fixed' if result.written else 'Would fix'} {fixed}, {left}{_suppressed(result)}."


def _files(result: RunResult) -> str:
    return plural(len({file_of(finding.path) for finding in result.open_findings}), "file")


def _fixes(result: RunResult) -> str:
    safe, unsafe = (fixable(result.open_findings, safety) for safety in (Safety.SAFE, Safety.UNSAFE))
    said = f", {safe} fixable with --fix" if safe else ""
    return said + (f", {unsafe} {'more' if safe else 'fixable'} with --unsafe-fixes" if unsafe else "")


def _suppressed(result: RunResult) -> str:
    """How many findings were not reported, and why."""
    counted = Counter(finding.suppressed.by for finding in result.findings if finding.suppressed)
    said = [(counted[SilencedBy.COMMENT], "suppressed"), (counted[SilencedBy.BASELINE], "in the baseline")]
    return "".join(f", {count} {how}" for count, how in said if count)


def _unchecked(result: RunResult) -> str:
    if not result.problems:
        return ""
    return f"{plural(len({problem.path for problem in result.problems}), 'path')} could not be checked."


def statistics(result: RunResult) -> list[str]:
    """A table of the rules by how often each was found, and where the time went; lines without newlines."""
    lines = _counts(result)
    if result.steps:
        took = f" of {result.seconds:.2f} s" if result.seconds else ""
        lines += ["", f"Time{took}, {result.cached} of {plural(result.files, 'file')} from the cache:"]
        lines += [f"{s.seconds:8.3f} s  {s.name}  ({plural(s.files, 'file')})" for s in result.steps]
    return lines


def _counts(result: RunResult) -> list[str]:
    findings = result.open_findings
    names = {finding.code: finding.name for finding in findings}
    width = max((len(name) for name in names.values()), default=0)
    lines = []
    for code, count in result.counts.items():
        of_code = [finding for finding in findings if finding.code == code]
        ways = [
            f"{number} with {option}"
            for safety, option in ((Safety.SAFE, "--fix"), (Safety.UNSAFE, "--unsafe-fixes"))
            if (number := fixable(of_code, safety))
        ]
        lines.append(f"{count:5}  {code}  {names[code]:{width}}  {', '.join(ways)}".rstrip())
    return lines
