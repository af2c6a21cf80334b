"""The file that lists the findings which are known and not reported: one line each, sorted, made to be merged.

    pipelines/tiles.py: DL101 3f2a9c0d1e5b7a884c1d2e3f

A line is a path from the directory of the file, the rule, and what `fingerprint.identities` calls the finding; a
number follows where one path has several that are alike. No two lines are equal, so that all lines of two
branches together are a baseline again.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from deadlint.errors import UserError
from deadlint.fingerprint import VERSION
from deadlint.write import CannotWrite, put_file

NAME = "deadlint-baseline.txt"  # where none is named
HEADER = f"# deadlint baseline {VERSION}"
_NOTE = "# Findings that are known and not reported. `deadlint baseline update` takes out those that are gone."

_LINE = re.compile(r"(?P<path>.+): (?P<code>[A-Z]+[0-9]+) (?P<identity>[0-9a-f]{24})(?: (?P<number>[0-9]+))?")
_HEADER = re.compile(r"# deadlint baseline (?P<version>[0-9]+)")
_CONFLICT = re.compile(r"<{7}( |$)|={7}$|>{7}( |$)|\|{7}( |$)")
_ODD = re.compile("[\x00-\x1f%\x7f\x85\u2028\u2029]")  # what would end a line, and what stands for it
_ESCAPED = re.compile("%([0-9A-F]{2,4});")


class Entry(NamedTuple):
    """A finding that is known: the path with slashes from the directory of the file, the rule, the fingerprint."""

    path: str
    code: str
    identity: str


Baselines = Mapping[str, Sequence[Entry]]  # by their absolute paths


def read(path: str, *, merging: bool = False) -> list[Entry]:
    """The entries of a baseline. Raises `UserError` where it is none.

    With `merging`, both sides of a merge conflict count.
    """
    shown = os.path.relpath(path)
    try:
        lines = _content(path).decode("utf-8", "surrogateescape").splitlines()
    except FileNotFoundError:
        raise UserError(f"{shown}: there is no such baseline; `deadlint baseline create` makes it") from None
    except OSError as error:
        raise UserError(f"{shown}: the baseline cannot be read: {error.strerror}") from error
    return [entry for entry, _ in sorted(set(_entries(shown, lines, merging=merging)))]


def is_one(path: str) -> bool:
    """Whether there is a baseline at `path`, of whatever version, or an empty file."""
    try:
        content = _content(path)
    except OSError:
        return False
    return not content or any(_HEADER.fullmatch(line) for line in content.decode("latin-1").splitlines())


def _content(path: str) -> bytes:
    """What a regular file holds: a pipe that a configuration names must not hold us. Raises `OSError`."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "it is no file")
    with open(path, "rb") as file:
        return file.read()


def _entries(shown: str, lines: Iterable[str], *, merging: bool) -> Iterator[tuple[Entry, int]]:
    for number, line in enumerate(lines, 1):
        if header := _HEADER.fullmatch(line):
            if int(header["version"]) != VERSION:
                raise UserError(
                    f"{shown}: is a baseline of version {header['version']}, and this deadlint has {VERSION}; "
                    "make it anew with `deadlint baseline create --force`"
                )
        elif found := _LINE.fullmatch(line):
            entry = Entry(_unescaped(found["path"]), found["code"], found["identity"])
            yield entry, int(found["number"] or 1)
        elif _CONFLICT.match(line):
            if not merging:
                raise UserError(
                    f"{shown}: line {number} is the mark of a merge conflict; `deadlint baseline update` mends it"
                )
        elif line.strip() and not line.startswith("#"):
            raise UserError(f"{shown}: line {number} is no entry of a baseline: {line[:80]!r}; take it out")


def write(path: str, entries: Iterable[Entry]) -> None:
    """Write a baseline, as a whole. Raises `UserError` where that cannot be done."""
    try:
        put_file(path, text(entries).encode("utf-8", "surrogateescape"))
    except CannotWrite as error:
        raise UserError(f"{os.path.relpath(path)}: {error}") from error


def text(entries: Iterable[Entry]) -> str:
    """What a baseline of these entries holds."""
    lines = [HEADER, _NOTE]
    for entry, count in sorted(Counter(entries).items()):
        lines += [line(entry, number) for number in range(1, count + 1)]
    return "\n".join(lines) + "\n"


def line(entry: Entry, number: int = 1) -> str:
    """The line of an entry; `number` tells it from others that are alike."""
    path = _ODD.sub(lambda found: f"%{ord(found.group()):02X};", entry.path)
    if path.startswith("#"):
        path = "%23;" + path[1:]
    return f"{path}: {entry.code} {entry.identity}" + (f" {number}" if number > 1 else "")


def _unescaped(path: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), path)
