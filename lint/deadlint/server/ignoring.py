"""The comment that suppresses a finding, put where it holds."""

from __future__ import annotations

from bisect import bisect_right

from deadlint.directives import Directive, Scope, candidates
from deadlint.model import Edit, Finding
from deadlint.source import SourceFile
from deadlint.statements import Statements


def ignoring(source: SourceFile, finding: Finding) -> Edit:
    """The edit that adds `# deadlint: ignore[…]` for a finding, or its code to such a comment that is there."""
    statements = Statements(source)
    first, last = statements.around(finding.span.line)
    for directive in candidates(source.text, ()):
        line = bisect_right(source.line_starts, directive.start)
        if first <= line <= last and _takes_codes(directive) and _in_comment(statements, line, directive):
            assert directive.entries is not None
            end = directive.entries[-1].end
            return Edit(end, end, f", {finding.code}")
    # On the last line: an earlier one may end inside of a string, or in a backslash.
    end = source.line_starts[last - 1] + len(source.line(last).rstrip())
    return Edit(end, end, f"  # deadlint: ignore[{finding.code}]")


def _takes_codes(directive: Directive) -> bool:
    return directive.scope is Scope.STATEMENT and not directive.borrowed and bool(directive.entries)


def _in_comment(statements: Statements, line: int, directive: Directive) -> bool:
    return any(start <= directive.start < end for start, end in statements.comments(line))
