"""What a comment tells deadlint: `# noqa: …` as other tools know it, and `# deadlint: ignore[…]`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from deadlint.rule import matches

# A reason or a list ends where another tool's comment begins on the same line.
_REST = r"(?P<rest>(?:(?![ \t]*#[ \t]*[A-Za-z])[^\r\n])*)"
_START = re.compile(r"#[ \t]*(?:noqa(?![\w-])|deadlint[ \t]*:)", re.IGNORECASE)
_NOQA = re.compile(rf"#[ \t]*noqa(?P<colon>[ \t]*:)?{_REST}", re.IGNORECASE)
_OURS = re.compile(
    rf"#[ \t]*deadlint[ \t]*:[ \t]*(?P<verb>[\w-]*)[ \t]*(?P<listed>\[(?P<list>[^\]\r\n]*)\])?{_REST}",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z][\w-]*")
_CODE = re.compile(r"[A-Z]+[0-9]+")


class Scope(Enum):
    """How far a directive reaches."""

    STATEMENT = auto()
    FILE = auto()
    NOTHING = auto()  # addressed to us, but not understood


@dataclass(frozen=True, slots=True)
class Entry:
    """One code or name in the list of a directive, and where it stands in the file."""

    text: str
    start: int
    end: int
    ours: bool  # whether some rule of ours has that code, prefix or name

    def covers(self, code: str, name: str) -> bool:
        """Whether a rule is meant."""
        return matches(code, name, self.text.upper()) or matches(code, name, self.text)


@dataclass(frozen=True, slots=True)
class Directive:
    """A comment, or the part of one, that suppresses findings."""

    scope: Scope
    start: int
    end: int
    text: str
    entries: tuple[Entry, ...] | None  # None: everything
    reason: str
    borrowed: bool  # `noqa`, which other tools read as well


def candidates(text: str, rules: Sequence[tuple[str, str]]) -> Iterator[Directive]:
    """What looks like a directive; whether it stands in a comment is for the caller to see.

    `rules` are the codes and names of all rules. A `noqa` that lists only codes of other tools is not ours.
    """
    for start in _START.finditer(text):
        ours = _OURS.match(text, start.start())
        if ours:
            yield _ours(ours, rules)
        elif noqa := _NOQA.match(text, start.start()):
            yield from _noqa(noqa, rules)


def _noqa(found: re.Match[str], rules: Sequence[tuple[str, str]]) -> Iterator[Directive]:
    entries: list[Entry] = []
    end = found.start("rest")
    if found["colon"]:
        for word in _WORD.finditer(found.string, end, found.end()):
            between = found.string[end : word.start()]
            entry = _entry(word, rules)
            if between.strip(" \t,") or not (entry.ours or _CODE.fullmatch(entry.text.upper())):
                break  # the reason begins
            entries.append(entry)
            end = word.end()
        if not any(entry.ours for entry in entries) and (entries or found["rest"].strip()):
            return
    reason = found.string[end : found.end()].strip(" \t,;:-")
    scope, listed = Scope.STATEMENT, tuple(entries) or None
    yield Directive(scope, found.start(), found.end(), found.group().rstrip(), listed, reason, borrowed=True)


def _ours(found: re.Match[str], rules: Sequence[tuple[str, str]]) -> Directive:
    verbs = {"ignore": Scope.STATEMENT, "ignore-file": Scope.FILE}
    entries = None
    if found["listed"]:
        words = _WORD.finditer(found.string, found.start("list"), found.end("list"))
        entries = tuple(_entry(word, rules) for word in words)
    return Directive(
        scope=verbs.get(found["verb"].lower(), Scope.NOTHING),
        start=found.start(),
        end=found.end(),
        text=found.group().rstrip(),
        entries=entries,
        reason=found["rest"].strip(" \t:-"),
        borrowed=False,
    )


def _entry(word: re.Match[str], rules: Sequence[tuple[str, str]]) -> Entry:
    entry = Entry(word.group(), word.start(), word.end(), ours=False)
    known = any(entry.covers(code, name) for code, name in rules)
    return Entry(word.group(), word.start(), word.end(), ours=known)
