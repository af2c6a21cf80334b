"""The files of a project in memory, parsed whole: as they are on disk, or as a migration would leave them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deadlint.config import Configurations
from deadlint.discover import discover
from deadlint.model import FileProblem
from deadlint.patterns import Patterns
from deadlint.project import Project
from deadlint.settings import Settings
from deadlint.source import SourceFile, UnreadableSource
from deadlint.write import Snapshot

if TYPE_CHECKING:
    from deadlint.index.module import Module


@dataclass(frozen=True, slots=True)
class File:
    """A file of the project: as it was read, and how it is shown."""

    snapshot: Snapshot
    shown: str
    settings: Settings
    source: SourceFile
    is_test: bool


@dataclass(frozen=True, slots=True)
class Files:
    """What lies below the given paths, by absolute path; and what could not be read."""

    by_path: Mapping[str, File]
    problems: tuple[FileProblem, ...]


def read_files(paths: tuple[str, ...], configurations: Configurations) -> Files:
    """The Python files below `paths`. Raises `UserError` where a configuration is wrong."""
    found = discover(paths, configurations)
    problems = list(found.problems)
    files: dict[str, File] = {}
    for folder in found.folders:
        tests = Patterns(folder.settings.root, folder.settings.tests)
        for name in folder.names:
            path, shown = os.path.join(folder.path, name), os.path.join(folder.shown, name)
            if not name.endswith(".py"):
                continue
            try:
                snapshot = Snapshot.read(path)
                source = SourceFile.decode(path, snapshot.data)
            except OSError as error:
                problems.append(FileProblem(shown, f"cannot be read: {error.strerror}"))
                continue
            except UnreadableSource as error:
                problems.append(FileProblem(shown, str(error)))
                continue
            files[path] = File(snapshot, shown, folder.settings, source, tests.covers(path))
    return Files(files, tuple(problems))


class Sources(Project):
    """The modules of a project, each parsed whole and kept, so that a function is one object wherever it is used."""

    def __init__(self, settings: Settings, files: Files, texts: Mapping[str, str] | None = None) -> None:
        """`texts` are those that differ from what was read."""
        super().__init__(settings)
        self.files = files
        self.settings = settings
        self.texts = dict(texts or {})
        self._whole: dict[str, Module | None] = {}

    def changed(self, texts: Mapping[str, str]) -> Sources:
        """The same project with other texts for some files."""
        return Sources(self.settings, self.files, {**self.texts, **texts})

    def source(self, path: str) -> SourceFile:
        """The file at `path`, an absolute path below those that were given, as it is by now."""
        source = self.files.by_path[path].source
        return source.with_text(self.texts[path]) if path in self.texts else source

    def module(self, path: str) -> Module | None:
        """The module at an absolute path; None where it cannot be parsed."""
        if path not in self._whole:
            self._whole[path] = None
            self._whole[path] = self._parse(path)
        return self._whole[path]

    def modules(self) -> Iterator[Module]:
        """All modules below the given paths, by path."""
        for path in sorted(self.files.by_path):
            module = self.module(path)
            if module is not None:
                yield module

    def _module(self, path: str, shown: str = "") -> Module | None:
        return self.module(path)

    def _parse(self, path: str) -> Module | None:
        from deadlint.index.module import Module  # noqa: PLC0415 - modules ask their project in turn

        known = self.files.by_path.get(path)
        try:
            if known is not None:
                return Module(self.source(path), known.settings, self)
            return Module(SourceFile.read(path), self.settings, self, asked_only=True)
        except (OSError, UnreadableSource, SyntaxError, ValueError, RecursionError, MemoryError):
            return None
