"""What goes into the judging of one file and what comes out: small, for a warm run to load quickly."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from deadlint.model import Finding, Level, Safety
from deadlint.result import Change
from deadlint.settings import Settings

if TYPE_CHECKING:
    from deadlint.place import Place

DIGEST_BYTES = 16

Status = tuple[int, int, int, int]  # mtime and ctime in nanoseconds, size, inode
# By the absolute path of a file that is called: what is around the calls, as `exits.encode` writes it.
Exits = tuple[tuple[str, bytes], ...]


class Target(NamedTuple):
    """A file to judge."""

    folder: str  # absolute
    shown: str  # the path as reports write it
    name: str
    settings: Settings
    digest: bytes | None = None  # of the content that is known already, if any
    named: bool = False  # asked for by name, or one of a few: then it is parsed though it holds nothing of interest
    entered: bytes = b""  # what callers in other files have around their calls, as `Join.entered` gives it
    indexed: bool = False  # not asked for: only what it has around its calls of others is wanted

    @property
    def path(self) -> str:
        """The absolute path."""
        return os.path.join(self.folder, self.name)


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be done with each file."""

    fix: frozenset[Safety] = frozenset()
    write: bool = False  # whether fixed files are written, or only shown
    with_digest: bool = False  # whether the outcome is to be remembered
    debug: bool = False  # whether an internal error comes with its traceback


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one file: all findings of either level, or why it could not be checked."""

    findings: tuple[Finding, ...] = ()
    problem: str | None = None
    known: bool = False  # the content has the digest that was given, so what was known of it still holds
    status: Status | None = None  # of the file as it was read, or as it was written
    digest: bytes | None = None  # None where the screen left the file out: it is read as fast as hashed
    fixed: tuple[Finding, ...] = ()
    change: Change | None = None
    depends: tuple[Place, ...] = ()  # what the findings rest on beside the file itself
    exits: Exits = ()  # what it has around its calls of functions of other files
    partial: bool = False  # whether only what has changed was looked at


def is_shown(finding: Finding, level: Level) -> bool:
    """Whether a reader at `level` is shown a finding."""
    return level is Level.STRICT or finding.level is Level.DEFAULT


def status_of(status: os.stat_result) -> Status:
    """What tells a changed file from an unchanged one without reading it."""
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
