"""Checking anew only the function that is being typed in. What was found elsewhere in the file before is kept, moved to
where it is now, until the whole is checked again: that takes longer than a keystroke should.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from deadlint.model import Finding, Span

_NEWLINE = re.compile(r"\r\n|\r|\n")
MADE_LAST = ("DL001", "DL002")  # found of a whole file, with what else is found in it


@dataclass(frozen=True, slots=True)
class Before:
    """A text, and all that was found in it, suppressed or not."""

    text: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A function in whose body alone a text differs from the one before: its lines.

    What was behind the line `changed` has moved by so many lines.
    """

    first: int
    last: int
    changed: int
    moved: int

    def __contains__(self, line: object) -> bool:
        return isinstance(line, int) and self.first <= line <= self.last

    def kept(self, before: Before) -> Iterator[Finding]:
        """What was found outside of the function, where it is now."""
        for finding in before.findings:
            line = finding.span.line
            if finding.code not in MADE_LAST and not self.first <= line <= self.last - self.moved:
                related = (
                    replace(one, span=self._now(one.span)) if one.path == finding.path else one
                    for one in finding.related
                )
                yield replace(finding, span=self._now(finding.span), related=tuple(related), suppressed=None)

    def _now(self, span: Span) -> Span:
        if span.line <= self.changed:
            return span
        return replace(span, line=span.line + self.moved, end_line=span.end_line + self.moved)


def part(before: str, after: str, tree: ast.Module) -> Part | None:
    """The function in whose body alone `after`, whose tree is given, differs; None where there is none.

    A changed head counts as a change elsewhere: its decorators and parameters concern those who call the function.
    """
    old, new = _NEWLINE.split(before), _NEWLINE.split(after)
    lead = _alike(old, new)
    trail = _alike(old[lead:][::-1], new[lead:][::-1])
    first, last = lead + 1, len(new) - trail
    first = min(first, last)  # where lines were only taken out, the one before them tells where
    for function in _functions(tree.body):
        end = function.end_lineno or function.lineno
        begin = function.body[0].lineno
        if function.lineno < begin <= first and last <= end:
            head = min((decorator.lineno for decorator in function.decorator_list), default=function.lineno)
            return Part(head, end, len(old) - trail, len(new) - len(old))
    return None


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines two texts begin with alike."""
    for number, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return number
    return min(len(one), len(other))


def _functions(body: Sequence[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions and methods that are inside of no other."""
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield statement
            case ast.ClassDef(body=inner):
                yield from _functions(inner)
