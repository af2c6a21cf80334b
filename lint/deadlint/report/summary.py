"""The lines that close a report: how much was found, what fixes can do about it, counts for each rule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from deadlint.model import Safety

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
    parts = [part for part in (_fixed(result), _found(result), _unchecked(result)) if part]
    return " ".join(parts)


def _found(result: RunResult) -> str:
    findings = result.open_findings
    suppressed = len(result.findings) - len(findings)
    if not findings:
        aside = f", {suppressed} suppressed" if suppressed else ""
        return f"No findings in {plural(result.files, 'file')}{aside}."
    count = len(findings)
    files = plural(len({finding.path for finding in findings}), "file")
    left = "left " if result.fixed and result.written else ""
    parts = [f"Found {plural(count, 'finding')} {left}in {files}"]
    safe, unsafe = fixable(findings, Safety.SAFE), fixable(findings, Safety.UNSAFE)
    if safe:
        parts.append(f"{safe} fixable with --fix")
    if unsafe:
        parts.append(f"{unsafe} {'more' if safe else 'fixable'} with --unsafe-fixes")
    if suppressed:
        parts.append(f"{suppressed} suppressed")
    return ", ".join(parts) + "."


def _fixed(result: RunResult) -> str:
    if not result.changes:
        return ""
    verb = "Fixed" if result.written else "Would fix"
    return f"{verb} {plural(len(result.fixed), 'finding')} in {plural(len(result.changes), 'file')}."


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
