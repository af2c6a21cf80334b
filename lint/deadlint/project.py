"""The modules of a project by dotted name, found as Python finds them and parsed when a name leads there."""

from __future__ import annotations

import gc
import os.path
import sys
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from deadlint.index.evaluation import Effort
from deadlint.index.known import LIBRARIES
from deadlint.index.values import Values, union
from deadlint.place import Kind, Place, shown
from deadlint.settings import Settings
from deadlint.source import SourceFile, UnreadableSource

if TYPE_CHECKING:
    from deadlint.index.module import Module

# Parsed modules that are kept. A tree takes some fifty times the size of its source; imports are local enough
# for a few dozen to serve.
_KEPT = 64
# What these names stand for is known, also where a file or folder of that name lies beside the importing file.
_LIBRARIES = sys.stdlib_module_names | LIBRARIES
# A larger file is generated data, and not worth its parse for a name in it.
_LARGEST = 1_000_000


class Project:
    """What the imports of a file lead to.

    `unsaved` is what an editor holds of files, by absolute path: it counts in place of what the disk has.
    """

    def __init__(self, settings: Settings, unsaved: Mapping[str, str] | None = None) -> None:
        forget()  # the disk may have changed since the last project, as it does under an editor
        self._settings = settings
        self._unsaved = {} if unsaved is None else unsaved
        self._modules: OrderedDict[str, Module | None] = OrderedDict()
        self._dropped = 0
        self.effort = Effort()
        self._asked: dict[str, set[str]] = {}  # by importer, where it looked, whether or not anything was there
        self._places: dict[str, Place] = {}  # what has been read

    def depends_on(self, path: str) -> tuple[Place, ...]:
        """What the findings of the file at `path` rest on elsewhere: files, and the absence of files.

        Complete only after the file was checked.
        """
        return tuple(self._places.get(place) or Place(place, Kind.at(place)) for place in sorted(self.reached(path)))

    def reached(self, path: str) -> set[str]:
        """The paths alone: what is there now is not looked up."""
        return self._reached(os.path.abspath(path)) - {os.path.abspath(path)}

    def forget_file(self, path: str) -> None:
        """Forget what is known of the file at `path`, an absolute path, and of the modules that its names came into."""
        for other in [one for one in self._modules if one == path or path in self._reached(one)]:
            del self._modules[other]
        self._asked.pop(path, None)
        self._places.pop(path, None)

    def _reached(self, path: str) -> set[str]:
        """Where the imports of a file lead, and those of what they lead to."""
        found: set[str] = set()
        stack = [path]
        while stack:
            new = self._asked.get(stack.pop(), set()) - found
            found |= new
            stack += new
        return found

    def elsewhere(self, target: str, importer: str) -> Values:
        """What the dotted name `target` stands for, as the file `importer` sees it.

        Empty where no module of the project defines it.
        """
        key = ("elsewhere", target, importer)
        if not target or target.startswith(".") or key in self.effort.busy:
            return ()
        if target.partition(".")[0] in _LIBRARIES:
            return ()
        path, rest, looked_at = locate(target, package_root(importer), self._settings.root, self._settings.src)
        self._asked.setdefault(os.path.abspath(importer), set()).update(looked_at, package_marks(importer))
        if not self._unsaved.keys().isdisjoint(looked_at):
            path, rest = self._never_saved(target, path, looked_at) or (path, rest)
        if path is None or not rest or _same(path, importer):
            return ()
        module = self._module(path)
        if module is None:
            return ()
        self.effort.busy.add(key)
        try:
            return _followed(module, rest)
        finally:
            self.effort.busy.discard(key)

    def _never_saved(
        self, target: str, path: str | None, looked_at: tuple[str, ...]
    ) -> tuple[str, tuple[str, ...]] | None:
        """The first file looked for that only the editor has, and the rest of the name within it."""
        parts = tuple(target.split("."))
        for candidate in looked_at[: looked_at.index(path)] if path in looked_at else looked_at:
            if candidate in self._unsaved:
                stem = candidate.removesuffix(".py").removesuffix(f"{os.sep}__init__")
                for length in range(len(parts), 0, -1):
                    if stem.endswith(os.sep + os.sep.join(parts[:length])):
                        return candidate, parts[length:]
        return None

    def _module(self, path: str) -> Module | None:
        if path in self._modules:
            self._modules.move_to_end(path)
            return self._modules[path]
        module = self._parsed(path)
        self._modules[path] = module
        while len(self._modules) > _KEPT:
            self._modules.popitem(last=False)
            self._dropped += 1
            if self._dropped % (3 * _KEPT) == 0:
                gc.collect()  # a run has the collector switched off: see `deadlint.work`
        return module

    def _parsed(self, path: str) -> Module | None:
        from deadlint.index.module import Module  # noqa: PLC0415 - modules ask their project in turn

        try:
            source = self._source(path)
            return None if source is None else Module(source, self._settings, self, asked_only=True)
        except (UnreadableSource, SyntaxError, ValueError, RecursionError, MemoryError):
            # The file's own check says what is wrong with it.
            return None

    def _source(self, path: str) -> SourceFile | None:
        """The text of a file; None where it cannot be read or is too large. Raises `UnreadableSource`."""
        unsaved = self._unsaved.get(path)
        if unsaved is not None:
            return SourceFile(shown(path), unsaved)
        try:
            self._places[path], data = Place.read(path)
        except OSError:
            # Not what `Kind.at` says of it: once it can be read, what rests on it is to be found anew.
            self._places[path] = Place(path, Kind.NOTHING)
            return None
        return SourceFile.decode(shown(path), data) if len(data) <= _LARGEST else None


def _followed(module: Module, names: tuple[str, ...]) -> Values:
    values = module.resolver.exported(names[0])
    for name in names[1:]:
        values = union(*(module.resolver.attribute(value, name) for value in values))
    return values


def _same(path: str, other: str) -> bool:
    return os.path.abspath(path) == os.path.abspath(other)


@lru_cache(maxsize=65536)
def _is_file(path: str) -> bool:
    return os.path.isfile(path)


@lru_cache(maxsize=8192)
def package_root(path: str) -> str:
    """The directory from which the file's own package is imported: the first above it without `__init__.py`."""
    return os.path.dirname(package_marks(path)[-1])


@lru_cache(maxsize=8192)
def package_marks(path: str) -> tuple[str, ...]:
    """Where an `__init__.py` makes the directory of a file, or one above it, part of a package.

    The last is the one that is missing: there the package is imported from.
    """
    directory = os.path.dirname(os.path.abspath(path))
    marks = [os.path.join(directory, "__init__.py")]
    while _is_file(marks[-1]) and os.path.dirname(directory) != directory:
        directory = os.path.dirname(directory)
        marks.append(os.path.join(directory, "__init__.py"))
    return tuple(marks)


@lru_cache(maxsize=8192)
def package_of(path: str) -> str:
    """The dotted package that the file's relative imports start from; empty for a script."""
    directory = os.path.dirname(os.path.abspath(path))
    relative = os.path.relpath(directory, package_root(path))
    return "" if relative == "." else relative.replace(os.sep, ".")


@lru_cache(maxsize=65536)
def locate(
    name: str, root: str, project: str, src: tuple[str, ...]
) -> tuple[str | None, tuple[str, ...], tuple[str, ...]]:
    """The file that defines a dotted name, the rest of the name within it, and every path looked at.

    Looked for where the importing file's package stands, then further up to the project's root, since a package needs
    no `__init__.py`, then in the directories `src` of the project.
    """
    parts = name.split(".")
    looked_at: list[str] = []
    for start in _starts(root, project, src):
        looked_at += (os.path.join(start, f"{parts[0]}.py"), os.path.join(start, parts[0]))
        # The common case, a name of an installed library, is answered by its first part alone.
        if not (_is_file(os.path.join(start, f"{parts[0]}.py")) or _is_directory(os.path.join(start, parts[0]))):
            continue
        for length in range(len(parts), 0, -1):
            base = os.path.join(start, *parts[:length])
            for candidate in (f"{base}.py", os.path.join(base, "__init__.py")):
                looked_at.append(candidate)
                if _is_file(candidate):
                    return candidate, tuple(parts[length:]), tuple(looked_at)
    return None, (), tuple(looked_at)


def _starts(root: str, project: str, src: tuple[str, ...]) -> Iterator[str]:
    top = os.path.abspath(project)
    above = [root]
    while above[-1].startswith(top.rstrip("/") + "/"):
        above.append(os.path.dirname(above[-1]))
    yield from dict.fromkeys((*above, top, *(os.path.normpath(os.path.join(top, one)) for one in src)))


@lru_cache(maxsize=65536)
def _is_directory(path: str) -> bool:
    return os.path.isdir(path)


def forget() -> None:
    """Look at the disk anew from here on."""
    for known in (_is_file, _is_directory, locate, package_root, package_marks, package_of):
        known.cache_clear()
