"""The modules of a program, each parsed once and kept: a tree is about functions of many files at the same time."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from deadlint.index.values import Values
from deadlint.project import Project, package_root
from deadlint.settings import Settings

if TYPE_CHECKING:
    from deadlint.index.module import Module
    from deadlint.index.scopes import Scope


class Program(Project):
    """A project that lets go of no module, and that finds packages under each source root of its files."""

    def __init__(self, settings: Settings, files: tuple[str, ...], tops: frozenset[str] = frozenset()) -> None:
        """`tops` are the directories that were asked for: no root lies above them."""
        super().__init__(settings)
        self.parsed: dict[str, Module | None] = {}
        self._roots: dict[str, list[str]] = defaultdict(list)  # by the first part of a dotted name
        for root in dict.fromkeys(root for file in files for root in _roots(file, tops)):
            self._note_root(root)

    def _note_root(self, root: str) -> None:
        try:
            names = os.listdir(root)
        except OSError:
            return
        for name in names:
            stem, suffix = os.path.splitext(name)
            if suffix == ".py" or (not suffix and os.path.isdir(os.path.join(root, name))):
                self._roots[stem].append(root)

    def module(self, path: str) -> Module | None:
        """The module of the file at `path`, absolute; None where it cannot be read or parsed."""
        return self._module(path)

    def of(self, scope: Scope) -> Module | None:
        """The module that a scope stands in."""
        return scope.module.home

    def elsewhere(self, target: str, importer: str) -> Values:
        """What a dotted name stands for, as the file `importer` sees it, or else as a file of another root does."""
        found = super().elsewhere(target, importer)
        if found:
            return found
        for root in self._roots.get(target.partition(".")[0], ()):
            found = super().elsewhere(target, os.path.join(root, "_.py"))
            if found:
                return found
        return ()

    def _parsed(self, path: str) -> Module | None:
        if path not in self.parsed:
            self.parsed[path] = super()._parsed(path)
        return self.parsed[path]


def _roots(file: str, tops: frozenset[str]) -> Iterator[str]:
    """Where the imports of a file may begin: above its package and, as packages need no `__init__.py`, further up."""
    root = package_root(file)
    yield root
    while root not in tops and any(root.startswith(f"{top}/") for top in tops):
        root = os.path.dirname(root)
        yield root
