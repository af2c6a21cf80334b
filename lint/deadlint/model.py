"""What a finding is: the one model that rules fill, fixes apply and every report prints."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

NOTEBOOK = ".ipynb"  # how the name of a notebook ends


class Level(StrEnum):
    """Whom a finding is for: nearly every reader, or those who asked for more."""

    DEFAULT = "default"
    STRICT = "strict"


class Safety(StrEnum):
    """What applying a fix may change, and so what applies it."""

    SAFE = "safe"  # --fix
    UNSAFE = "unsafe"  # --unsafe-fixes
    DISPLAY = "display"  # shown, never applied


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of source. Lines and columns count from 1, columns in characters; the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that a finding is about, such as the outer limit or a call on the path to it."""

    path: str
    span: Span
    message: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the characters from `start` up to `end` of the decoded file by `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Import:
    """`from module import name [as alias]` that a fix needs at the top of the file."""

    module: str
    name: str
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class Constant:
    """`name = value` that a fix needs at the top of the module; `value` is source text."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A repair: its own edits, and what it needs at the top of the file.

    Imports and constants are kept apart from the edits because several fixes of one file share them.
    """

    title: str
    safety: Safety
    edits: tuple[Edit, ...]
    imports: tuple[Import, ...] = ()
    constants: tuple[Constant, ...] = ()


class SilencedBy(StrEnum):
    """What keeps a finding from being reported."""

    COMMENT = "comment"
    BASELINE = "baseline"


@dataclass(frozen=True, slots=True)
class Suppression:
    """What silences a finding: the comment on a line of the file, or the baseline named by `text` (line 0)."""

    line: int
    text: str
    reason: str = ""
    by: SilencedBy = SilencedBy.COMMENT


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault at one place. `message` says what happens, `remedy` what to do about it."""

    code: str
    name: str
    path: str
    span: Span
    message: str
    remedy: str
    level: Level = Level.DEFAULT
    related: tuple[Related, ...] = ()
    fix: Fix | None = field(default=None, compare=False)
    suppressed: Suppression | None = None
    # What its fingerprint is made of, where its place is no longer that in the text in which it was found.
    identity: str | None = field(default=None, compare=False)

    @property
    def sort_key(self) -> tuple[str, int, int, str]:
        """Path, then place, then code: the order of every report."""
        return (self.path, self.span.line, self.span.column, self.code)


@dataclass(frozen=True, slots=True)
class FileProblem:
    """A file or path that could not be checked; the run goes on without it and ends with exit status 2."""

    path: str
    message: str
