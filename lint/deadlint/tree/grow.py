"""The tree of a request: discover the files, find the entries, build each, leave out what another one holds."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from deadlint.config import Configurations
from deadlint.discover import Discovery, discover
from deadlint.errors import UserError
from deadlint.index.module import Module
from deadlint.index.scopes import Scope
from deadlint.patterns import Patterns
from deadlint.place import shown
from deadlint.project import package_of
from deadlint.settings import Settings
from deadlint.tree.build import Builder
from deadlint.tree.entries import Entry, entries_of, may_have_entries
from deadlint.tree.judged import judged
from deadlint.tree.model import Node, Tree
from deadlint.tree.program import Program
from deadlint.tree.scripts import scripts_of

_DEEP = 20_000  # Python frames; a call that is followed takes some fifteen


def tree_of(paths: Sequence[str], entry: str | None, configurations: Configurations) -> Tree:
    """The tree of what lies below `paths`. Raises `UserError` where `entry` is not found or nothing can be read."""
    found = discover(paths, configurations)
    files = tuple(_files(found))
    named = {os.path.abspath(path) for path in paths}
    problems = [f"{problem.path}: {problem.message}" for problem in (*found.problems, *found.warnings)]
    if not files:
        raise UserError("\n".join(problems) or "no Python file in sight; name a directory that has some")
    settings = found.folders[0].settings
    program = Program(settings, files, frozenset(named))
    with _room_to_recurse():
        if entry:
            entries = [_named(entry, program, files)]
        else:
            entries = list(_entries(program, files, settings, named, problems))
            entries += _scripts(program, files, named, {one.scope for one in entries if one.block is None})
        roots = _roots(program, entries, keep_all=entry is not None)
    return Tree(judged(roots), os.getcwd(), len(program.parsed), tuple(problems))


def _files(found: Discovery) -> Iterator[str]:
    for folder in found.folders:
        for name in folder.names:
            if name.endswith(".py"):
                yield os.path.join(folder.path, name)


@contextmanager
def _room_to_recurse() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEEP))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _entries(
    program: Program, files: Sequence[str], settings: Settings, named: set[str], problems: list[str]
) -> Iterator[Entry]:
    """The entries of all files, those of tests left out unless they are named."""
    tests = Patterns(settings.root, settings.tests)
    for path in files:
        if (tests.covers(path) and path not in named) or not _worth_parsing(path):
            continue
        module = program.module(path)
        if module is not None:
            yield from entries_of(module)
        else:
            problems.append(f"{shown(path)}: cannot be parsed; `deadlint check` says why")


def _scripts(program: Program, files: Sequence[str], named: set[str], known: set[Scope]) -> Iterator[Entry]:
    """The functions of the scripts that the projects install, where they are no entries already."""
    for script, where, name in scripts_of(files, named):
        path = next((path for path in files if _is_called(path, where)), None)
        module = program.module(path) if path is not None else None
        if module is None:
            continue
        for function in _functions(module):
            if function.qualified_name == name and function not in known:
                known.add(function)
                yield Entry("script", script, module, function)


def _worth_parsing(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return may_have_entries(file.read())
    except OSError:
        return False


def _roots(program: Program, entries: Sequence[Entry], *, keep_all: bool) -> list[Node]:
    """The trees of the entries that no other one leads to, the outermost layers first."""
    builder = Builder(program)
    built = [(entry, *builder.entry(entry)) for entry in sorted(entries, key=lambda entry: entry.sort_key)]
    kept: list[Node] = []
    for entry, node, reached in built:
        held = entry.block is None and any(
            entry.scope in theirs and (other.scope not in reached or other.sort_key < entry.sort_key)
            for other, tree, theirs in built
            if other is not entry and tree is not None and other.rank <= entry.rank
        )
        if node is not None and (keep_all or not (held or _only_starts(node, kept))):
            kept.append(node)
    return kept


def _only_starts(node: Node, kept: Sequence[Node]) -> bool:
    """Whether a script only starts what has a tree of its own."""
    places = {one.place for one in kept}
    return node.layer == "script" and all(child.place in places for child in node.children)


# --- --entry -------------------------------------------------------------------------------------------------


def _named(entry: str, program: Program, files: Sequence[str]) -> Entry:
    """The function that `pkg.module:function` or `path.py:function` names. Raises `UserError`."""
    where, colon, name = entry.rpartition(":")
    if not colon or not where or not name:
        raise UserError(f"--entry {entry}: write it as package.module:function, or as path.py:function")
    paths = [path for path in files if _is_called(path, where)]
    if not paths:
        raise UserError(f"--entry {entry}: no module `{where}` below the paths{_close(where, map(_dotted, files))}")
    modules = [module for path in paths if (module := program.module(path)) is not None]
    if not modules:
        raise UserError(f"--entry {entry}: {paths[0]} cannot be parsed; `deadlint check` says why")
    names: list[str] = []
    for module in modules:
        functions = {scope.qualified_name: scope for scope in _functions(module)}
        if name in functions:
            return Entry("function", name, module, functions[name])
        names += functions
    raise UserError(f"--entry {entry}: `{where}` has no function `{name}`{_close(name, names)}")


def _functions(module: Module) -> Iterator[Scope]:
    pending = [module.scope]
    while pending:
        scope = pending.pop()
        yield from (function for function in scope.functions if function.kind == "function")
        pending.extend(scope.classes)


def _is_called(path: str, where: str) -> bool:
    if where.endswith(".py"):
        return os.path.abspath(where) == path or path.endswith(f"/{where.removeprefix('./')}")
    dotted = _dotted(path)
    return dotted == where or dotted.endswith(f".{where}") or _from_path(path).endswith(f".{where}")


def _dotted(path: str) -> str:
    """The dotted name of the module at `path`, as its own package has it."""
    package, stem = package_of(path), os.path.basename(path).removesuffix(".py")
    if stem == "__init__":
        return package
    return f"{package}.{stem}" if package else stem


def _from_path(path: str) -> str:
    """The same for packages without `__init__.py`: the path with dots."""
    return path.removesuffix(".py").removesuffix("/__init__").replace(os.sep, ".")


def _close(name: str, names: Iterator[str] | Sequence[str]) -> str:
    close = difflib.get_close_matches(name, list(names), 3, 0.75)
    return f"; did you mean {' or '.join(f'`{one}`' for one in close)}?" if close else ""
