"""Patterns like those of .gitignore, relative to one directory: quick where they are simple, always exact.

`pathspec` decides. Its import costs 25 ms and each pattern 0.3 µs a file, and nearly all patterns are plain
names or `*.suffix`; so these are looked up here, and only what may match goes to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pathspec

_PLAIN = re.compile(r"[^*?\[\]\\!#/\s]+")


class Patterns:
    """The lines of one ignore file, or of one setting, for the paths below `root`."""

    def __init__(self, root: str, lines: Iterable[str]) -> None:
        self.root = root if root.endswith("/") else root + "/"
        self.lines = tuple(lines)
        self._names: set[str] = set()  # of files and directories
        self._directories: set[str] = set()
        self._endings: tuple[str, ...] = ()
        self._directory_endings: tuple[str, ...] = ()
        self._others: list[str] = []  # by name too, but not plain
        self._paths: list[tuple[str, str]] = []  # of those with a slash inside, how they begin and end
        self._negated = False
        for line in self.lines:
            self._sort(line)
        self._starts = tuple(start for start, _ in self._paths)
        self._ends = tuple(end for _, end in self._paths)
        self._by_name: dict[tuple[str, bool], bool] = {}

    def _sort(self, line: str) -> None:
        """Put a line where it is looked up."""
        text = line.rstrip("\r\n")
        if not text.rstrip(" ").endswith("\\"):
            text = text.rstrip(" ")
        if not text or text.startswith("#"):
            return
        if text.startswith("!"):
            self._negated = True
            text = text[1:]
        only_directories = text.endswith("/")
        body = text.rstrip("/")
        name = body.removeprefix("**/")
        if "/" in name:
            self._paths.append(_literal_ends(body))
        elif _PLAIN.fullmatch(name):
            (self._directories if only_directories else self._names).add(name)
        elif name.startswith("*") and _PLAIN.fullmatch(name[1:]):
            if only_directories:
                self._directory_endings += (name[1:],)
            else:
                self._endings += (name[1:],)
        else:
            self._others.append(text)

    def verdict(self, path: str, name: str, directory: bool) -> bool | None:
        """Whether `path`, whose last part is `name`, is ignored; None where no line speaks of it.

        Says nothing about the directories above it: a walk that starts at the top has asked for each of them.
        """
        if not (self._may_match_name(name, directory) or self._may_match_path(path, name)):
            return None
        if not self._negated and self._plain(name, directory):
            return True
        found = self._exact.check_file(self._below(path) + ("/" if directory else "")).include
        return found if isinstance(found, bool) else None

    def covers(self, path: str) -> bool:
        """Whether a file is ignored, by itself or with a directory between it and the root."""
        start = len(self.root) if path.startswith(self.root) else 1
        end = start
        while end < len(path):
            end = path.find("/", start)
            end = len(path) if end < 0 else end
            if self.verdict(path[:end], path[start:end], end < len(path)):
                return True
            start = end + 1
        return False

    def _below(self, path: str) -> str:
        """A path as the patterns see it. Elsewhere than below the root only names can match."""
        return path[len(self.root) :] if path.startswith(self.root) else path.lstrip("/")

    def _plain(self, name: str, directory: bool) -> bool:
        return (
            name in self._names
            or name.endswith(self._endings)
            or (directory and (name in self._directories or name.endswith(self._directory_endings)))
        )

    def _may_match_name(self, name: str, directory: bool) -> bool:
        if self._plain(name, directory):
            return True
        if not self._others:
            return False
        known = self._by_name.get((name, directory))
        if known is None:
            shown = name + "/" if directory else name
            known = self._by_name[name, directory] = self._by_other_names.check_file(shown).include is not None
        return known

    def _may_match_path(self, path: str, name: str) -> bool:
        if not self._paths or not name.endswith(self._ends):
            return False
        below = self._below(path)
        return below.startswith(self._starts) and any(
            below.startswith(start) and name.endswith(end) for start, end in self._paths
        )

    @cached_property
    def _exact(self) -> pathspec.GitIgnoreSpec:
        return _spec(self.lines)

    @cached_property
    def _by_other_names(self) -> pathspec.GitIgnoreSpec:
        return _spec(self._others)


def _literal_ends(body: str) -> tuple[str, str]:
    """The text that every path begins with, and every last part ends with, where a pattern matches it."""
    start = re.match(r"[^*?\[\\ ]*", body.lstrip("/"))
    end = re.search(r"[^*?\[\]\\/ ]*$", body)
    return start.group() if start else "", end.group() if end else ""


def _spec(lines: Iterable[str]) -> pathspec.GitIgnoreSpec:
    """The lines as pathspec reads them, without those that it refuses; Git passes over these as well."""
    import pathspec  # noqa: PLC0415 - most runs on few files never ask it

    patterns: list[Any] = []
    for line in lines:
        try:
            patterns.extend(pathspec.GitIgnoreSpec.from_lines([line]).patterns)
        except ValueError:
            continue
    return pathspec.GitIgnoreSpec(patterns)


def patterns_in(file: str, root: str) -> Patterns | None:
    """The patterns that an ignore file holds for the paths below `root`; None where it cannot be read."""
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as lines:
            return Patterns(root, lines.read().split("\n"))
    except OSError:
        return None
