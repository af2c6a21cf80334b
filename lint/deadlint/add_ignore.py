"""Writing `# deadlint: ignore[…]` for findings: on the line where each begins, or the next that can hold one."""

from __future__ import annotations

import ast
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from deadlint.directives import Directive, Scope, candidates
from deadlint.errors import UserError
from deadlint.fix import apply_edits
from deadlint.index.newer import parse
from deadlint.model import Edit, Finding
from deadlint.source import CannotEncode, SourceFile
from deadlint.statements import Statements
from deadlint.suppress import RuleNames, suppress

# Comments are not for these: the file has to be mended, or the comment that is there taken out.
NOT_IGNORED = ("DL001", "DL002")

# What `directives` would take for the comment of another tool, with which the reason ends.
_ENDS_REASON = re.compile(r"#[ \t]*[A-Za-z]")


class CannotIgnore(Exception):
    """No comment was written into a file; the text says why, as the rest of a sentence."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """A file with its new comments, and how many there are."""

    source: SourceFile
    comments: int


def check_reason(reason: str) -> str:
    """The reason as it is written. Raises `UserError` where a comment could not hold it."""
    text = reason.strip(" \t:-")
    if not text or not text.isprintable():
        raise UserError(f"--reason {reason!r}: give a reason, in one line of text")
    if _ENDS_REASON.search(text):
        raise UserError(f"--reason {reason!r}: `#` before a word begins another comment; leave it out")
    return text


def with_comments(source: SourceFile, findings: Sequence[Finding], reason: str, known: RuleNames) -> Ignored:
    """`source` with comments that suppress `findings`, all of this file; nothing but comments is changed.

    `known` are the codes and names of all rules; the reason may be empty. Raises `CannotIgnore`.
    """
    lines = _Lines(source, known)
    codes: dict[int, set[str]] = defaultdict(set)
    for finding in findings:
        codes[lines.for_comment(finding)].add(finding.code)
    edits = [lines.edit(line, sorted(codes[line]), reason) for line in sorted(codes)]
    made = source.with_text(apply_edits(source.text, edits))
    _prove(source, made, findings, known)
    return Ignored(made, len(edits))


def _prove(before: SourceFile, after: SourceFile, findings: Sequence[Finding], known: RuleNames) -> None:
    """Raise `CannotIgnore` unless the program is the same, and each finding suppressed."""
    try:
        same = ast.dump(parse(before.text)) == ast.dump(parse(after.text))
        after.encode()
    except SyntaxError as error:
        raise CannotIgnore(f"does not parse with the comments ({error}); nothing was changed") from error
    except (CannotEncode, UnicodeEncodeError) as error:
        raise CannotIgnore(f"cannot hold the comments ({error}); nothing was changed") from error
    bare = [replace(finding, suppressed=None) for finding in findings]
    left = [one for one in suppress(after, bare, known, ()) if one.suppressed is None]
    if not same or left:
        line = left[0].span.line if left else 1
        raise CannotIgnore(f"line {line} has no place for a comment; nothing was changed, so suppress it by hand")


@dataclass(slots=True)
class _Lines:
    """Where comments may go in a file, and what comments there are."""

    source: SourceFile
    known: RuleNames
    statements: Statements = field(init=False)
    comments: dict[int, tuple[int, int]] = field(default_factory=dict)  # offsets, by line
    closed: set[int] = field(default_factory=set)  # lines that end inside a string
    directives: list[Directive] = field(init=False)

    def __post_init__(self) -> None:
        self.statements = Statements(self.source)
        self.directives = list(candidates(self.source.text, self.known))
        open_strings: list[int] = []
        try:
            for token in self._tokens():
                first, last = token.start[0], token.end[0]
                name = tokenize.tok_name[token.type]
                if name == "COMMENT":
                    start = self.source.line_starts[first - 1] + token.start[1]
                    self.comments[first] = (start, start + len(token.string.rstrip()))
                elif name == "FSTRING_START":
                    open_strings.append(first)
                elif name == "FSTRING_END":
                    self.closed.update(range(open_strings.pop(), last))
                elif name not in ("NEWLINE", "NL"):
                    self.closed.update(range(first, last))
        except (tokenize.TokenError, SyntaxError, IndexError) as error:
            raise CannotIgnore(f"cannot be read token by token ({error}); nothing was changed") from error

    def _tokens(self) -> Iterator[tokenize.TokenInfo]:
        lines = iter([f"{self.source.line(number)}\n" for number in range(1, len(self.source.line_starts) + 1)])
        return tokenize.generate_tokens(lambda: next(lines, ""))

    def for_comment(self, finding: Finding) -> int:
        """The line for the comment: that of the finding, else the nearest of its statement, below before above."""
        line = finding.span.line
        first, last = self.statements.around(line)
        lines: list[int] = [*range(line, last + 1), *range(line - 1, first - 1, -1)]
        for candidate in lines:
            text = self.source.line(candidate).strip()
            if candidate not in self.closed and text and not text.endswith("\\"):
                return candidate
        return last

    def edit(self, line: int, codes: Sequence[str], reason: str) -> Edit:
        """Write a comment on `line`, behind one that is there, or into the list of one of ours with that reason."""
        listed = ", ".join(codes)
        if line in self.comments:
            start, end = self.comments[line]
            for ours in self._ours(start, end):
                if ours.entries and ours.reason == reason:
                    place = ours.entries[-1].end
                    return Edit(place, place, f", {listed}")
            return Edit(end, end, f"  # deadlint: ignore[{listed}] {reason}".rstrip())
        start = self.source.line_starts[line - 1]
        text = self.source.line(line)
        at = start + len(text.rstrip())
        return Edit(at, start + len(text), f"  # deadlint: ignore[{listed}] {reason}".rstrip())

    def _ours(self, start: int, end: int) -> Iterable[Directive]:
        for one in self.directives:
            if start <= one.start < end and one.scope is Scope.STATEMENT and not one.borrowed:
                yield one
