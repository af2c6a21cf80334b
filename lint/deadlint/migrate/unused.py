"""Imports that a migration leaves without a use: it takes out those that the file used before and uses no more."""

from __future__ import annotations

import ast

from deadlint.index.newer import parse
from deadlint.source import SourceFile


def without_unused_imports(before: SourceFile, text: str) -> str:
    """`text` less the plain top-level imports that `before` used and `text` does not.

    Each fix takes its own along; this is for what went with several, and for `from` imports. A name that stands in a
    string (`__all__`, a `patch` target) counts as used, and so does one with a comment.
    """
    if before.text == text or before.path.endswith("__init__.py"):
        return text
    source = before.with_text(text)
    old, new = _used(parse(before.text)), parse(text)
    now = _used(new)
    lines = text.splitlines(keepends=True)
    for node in reversed(new.body):
        match node:
            case ast.Import(names=[ast.alias(name=name, asname=asname)]):
                bound = asname or name
            case ast.ImportFrom(module=str() as module, names=[ast.alias(name=name, asname=asname)]):
                bound = asname or name
                if module == "__future__":
                    continue
            case _:
                continue
        alone = node.lineno == node.end_lineno and source.line(node.lineno) == source.segment(node)
        if alone and bound in old and bound not in now and _stands_in(before, source.line(node.lineno)):
            _take_out(lines, node.lineno - 1)
    return "".join(lines)


def _take_out(lines: list[str], place: int) -> None:
    """Delete a line, and the blank lines that would then stand at the beginning, or follow another."""
    del lines[place]
    while place < len(lines) and not lines[place].strip() and not "".join(lines[:place]).strip():
        del lines[place]
    if 0 < place < len(lines) and not lines[place - 1].strip() and not lines[place].strip():
        del lines[place]


def _used(tree: ast.Module) -> set[str]:
    """The names that a module reads, and the words of its texts."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name):
                found.add(name)
            case ast.Constant(value=str() as words):
                found.update(words.replace(".", " ").replace("[", " ").replace("]", " ").split())
    return found


def _stands_in(before: SourceFile, line: str) -> bool:
    return line in before.text.splitlines()
