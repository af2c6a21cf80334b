"""Comments that suppress findings, and those that suppress none (DL002)."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from deadlint.directives import Directive, Entry, Scope, candidates
from deadlint.model import Edit, Finding, Fix, Safety, Suppression
from deadlint.source import SourceFile
from deadlint.statements import Statements

SYNTAX_ERROR = "DL001"
UNUSED = ("DL002", "unused-suppression")

RuleNames = Sequence[tuple[str, str]]


def suppress(
    source: SourceFile,
    findings: Sequence[Finding],
    known: RuleNames,
    active: RuleNames,
    tree: ast.Module | None = None,
) -> list[Finding]:
    """`findings` with those marked that a comment suppresses, and with DL002 for comments without effect.

    `known` are the codes and names of all rules, `active` of those that were checked in this file: only
    theirs can be without effect. Pass the findings of every level, else a comment for a strict one looks
    unused.
    """
    found = [one for one in candidates(source.text, known) if findings or _can_be_unused(one)]
    if not found:
        return list(findings)
    comments = _in_comments(source, found, tree)
    marked = [_mark(finding, comments) for finding in findings]
    if UNUSED in active and not any(finding.code == SYNTAX_ERROR for finding in findings):
        marked += [_mark(unused, comments) for unused in _unused(source, comments, active)]
    return sorted(marked, key=lambda finding: finding.sort_key)


@dataclass(slots=True)
class _Comment:
    """A directive that really stands in a comment, the lines that it holds for, and what made use of it."""

    directive: Directive
    line: int
    first: int
    last: int
    used: set[Entry | None] = field(default_factory=set)  # None where it lists nothing

    def suppression(self, finding: Finding) -> Suppression | None:
        """How it suppresses `finding`, if it does."""
        directive = self.directive
        here = directive.scope is Scope.FILE or self.first <= finding.span.line <= self.last
        if not here or directive.scope is Scope.NOTHING:
            return None
        if directive.entries is None:
            # A blanket comment does not excuse itself.
            by: list[Entry | None] = [] if finding.code == UNUSED[0] and directive.scope is not Scope.FILE else [None]
        else:
            by = [entry for entry in directive.entries if entry.covers(finding.code, finding.name)]
        self.used.update(by)
        return Suppression(self.line, directive.text, directive.reason) if by else None


def _can_be_unused(directive: Directive) -> bool:
    """Whether a directive may be reported though nothing is found: all but a bare `noqa` or `ignore-file`."""
    return directive.entries is not None or not (directive.borrowed or directive.scope is Scope.FILE)


def _in_comments(source: SourceFile, found: Iterable[Directive], tree: ast.Module | None) -> list[_Comment]:
    statements = Statements(source, tree)
    comments = []
    for directive in found:
        line = bisect_right(source.line_starts, directive.start)
        if any(start <= directive.start < end for start, end in statements.comments(line)):
            comments.append(_Comment(directive, line, *statements.around(line)))
    return comments


def _mark(finding: Finding, comments: Iterable[_Comment]) -> Finding:
    """`finding` with the first comment that suppresses it; all that do count as used."""
    marks = [mark for comment in comments if (mark := comment.suppression(finding)) is not None]
    return replace(finding, suppressed=marks[0]) if marks else finding


def _unused(source: SourceFile, comments: Iterable[_Comment], active: RuleNames) -> list[Finding]:
    """DL002 for each comment that suppressed nothing, or that lists what it did not."""
    reported = []
    for comment in comments:
        directive = comment.directive
        if directive.scope is Scope.NOTHING:
            reported.append(_not_understood(source, directive))
        elif directive.entries is None:
            if _can_be_unused(directive) and None not in comment.used:
                reported.append(_report(source, directive, ()))
        else:
            idle = [one for one in directive.entries if one not in comment.used and _is_idle(one, directive, active)]
            if idle:
                reported.append(_report(source, directive, idle))
    return reported


def _is_idle(entry: Entry, directive: Directive, active: RuleNames) -> bool:
    """Whether an entry that suppressed nothing is to be reported.

    Not where its rule was not checked, nor where it belongs to another tool; nor DL002 itself.
    """
    if entry.covers(*UNUSED):
        return False
    if not entry.ours:
        return not directive.borrowed
    return any(entry.covers(code, name) for code, name in active)


def _report(source: SourceFile, directive: Directive, idle: Sequence[Entry]) -> Finding:
    whole = not idle or len(idle) == len(directive.entries or ())
    place = (directive.start, directive.start + len(directive.text)) if whole else (idle[0].start, idle[0].end)
    listed = ", ".join(entry.text for entry in idle)
    unknown = [entry.text for entry in idle if not entry.ours]
    message = f"`{directive.text}` suppresses nothing" + (f": {listed} is not found here" if not whole else "")
    if unknown:
        message = f"{', '.join(unknown)} in `{directive.text}` is the code or name of no rule"
    fix = Fix(
        title="remove the comment" if whole else f"remove {listed} from the list",
        safety=Safety.SAFE,
        edits=(_without(source.text, directive) if whole else _shortened(source.text, directive, idle),),
    )
    return Finding(
        code=UNUSED[0],
        name=UNUSED[1],
        path=source.path,
        span=source.span(*place),
        message=message,
        remedy=fix.title,
        fix=fix,
    )


def _not_understood(source: SourceFile, directive: Directive) -> Finding:
    return Finding(
        code=UNUSED[0],
        name=UNUSED[1],
        path=source.path,
        span=source.span(directive.start, directive.start + len(directive.text)),
        message=f"`{directive.text}` is not understood, so it suppresses nothing",
        remedy="write `# deadlint: ignore[DL201] reason` or `# deadlint: ignore-file`",
    )


def _without(text: str, directive: Directive) -> Edit:
    """Remove a directive, with the line if nothing else is on it, else with the space that it leaves."""
    start, end = directive.start, directive.end
    line_start = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    line_end = end
    while line_end < len(text) and text[line_end] not in "\r\n":
        line_end += 1
    if text[end:line_end].strip():
        return Edit(start, end + len(text[end:line_end]) - len(text[end:line_end].lstrip()), "")
    before = text[line_start:start]
    if before.strip():
        return Edit(line_start + len(before.rstrip()), line_end, "")
    if text.startswith("\r\n", line_end):
        line_end += 1
    return Edit(line_start, min(line_end + 1, len(text)), "")


def _shortened(text: str, directive: Directive, idle: Sequence[Entry]) -> Edit:
    """Remove entries from a list; the others keep what separates them."""
    entries = directive.entries or ()
    kept = ""
    for before, entry in zip((None, *entries), entries, strict=False):
        if entry not in idle:
            separator = text[before.end : entry.start] if before is not None and kept else ""
            kept += separator + entry.text
    return Edit(entries[0].start, entries[-1].end, kept)
