"""What findings depend on beside the files and the settings: Python, deadlint, and the rules installed.

A description of it is kept with what was found. Whether it still holds is told without importing a rule, and
without `importlib.metadata`, whose import costs 25 ms: every installation shows in the names and times of the
metadata directories on `sys.path`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from zlib import crc32

from deadlint import __version__

if TYPE_CHECKING:
    from deadlint.rule import Rule


@dataclass(frozen=True, slots=True)
class Environment:
    """The rules of an installation, and where their source is."""

    rules: tuple[tuple[str, str], ...]  # code and name of each
    sources: tuple[str, ...]  # directories of packages, or files of modules
    description: str = ""  # the text that changes when what findings depend on does

    @classmethod
    def of(cls, rules: Sequence[Rule]) -> Environment:
        """The environment that has just been loaded."""
        modules = {type(rule).__module__ for rule in rules} | {"deadlint"}
        places = {_place(sys.modules[module.partition(".")[0]]) for module in modules}
        here = cls(tuple((rule.code, rule.name) for rule in rules), tuple(sorted(places)))
        return replace(here, description=here.describe())

    def describe(self) -> str:
        """The description, as it is now."""
        lines = [
            f"python\t{sys.version.split()[0]} {sys.implementation.cache_tag}",
            f"deadlint\t{__version__}",
        ]
        lines += [f"path\t{_installed(path)}\t{path}" for path in sys.path]
        lines += [f"rule\t{code}\t{name}" for code, name in self.rules]
        lines += [f"source\t{_content(source)}\t{source}" for source in self.sources]
        return "\n".join(lines)


def still_holds(description: str) -> Environment | None:
    """The environment that `description` is of, if it is the one that we are in."""
    rules: list[tuple[str, str]] = []
    sources: list[str] = []
    for line in description.split("\n"):
        kind, _, rest = line.partition("\t")
        first, _, second = rest.partition("\t")
        if kind == "rule":
            rules.append((first, second))
        elif kind == "source":
            sources.append(second)
    environment = Environment(tuple(rules), tuple(sources), description)
    return environment if environment.describe() == description else None


def _place(module: object) -> str:
    """The directory of a package, or the file of a module."""
    file = os.path.abspath(str(getattr(module, "__file__", "")))
    return os.path.dirname(file) if os.path.basename(file).startswith("__init__.") else file


def _installed(path: str) -> str:
    """What tells whether anything was installed, changed or removed in a directory of `sys.path`."""
    return _summary(_entries(path or ".", (".dist-info", ".egg-info", ".egg-link"), deep=False))


def _content(source: str) -> str:
    """What tells whether any source file at a place has changed."""
    if os.path.isdir(source):
        return _summary(_entries(source, (".py", ".so", ".pyd"), deep=True))
    return _summary(_entries(os.path.dirname(source), (os.path.basename(source),), deep=False))


def _summary(entries: Iterable[tuple[str, int, int]]) -> str:
    """Entries in few characters. A checksum alone would be too short to be trusted with all that changes."""
    found = sorted(entries)
    newest = max((time for _, time, _ in found), default=0)
    checksum = crc32(repr(found).encode("utf-8", "surrogateescape"))
    return f"{len(found)} {sum(size for *_, size in found)} {newest} {checksum:08x}"


def _entries(directory: str, endings: tuple[str, ...], *, deep: bool) -> Iterator[tuple[str, int, int]]:
    """Path, time and size of the entries whose names end so; nothing where the directory cannot be read."""
    stack = [directory]
    while stack:
        try:
            with os.scandir(stack.pop()) as entries:
                for entry in entries:
                    if entry.name.endswith(endings):
                        status = entry.stat()
                        yield (entry.path, status.st_mtime_ns, status.st_size)
                    elif deep and entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
                        stack.append(entry.path)
        except OSError:
            continue
