"""Imports whose last use went with a fix: they go too, where that is certain."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath

from deadlint.model import Edit
from deadlint.source import SourceFile


def without_leftovers(source: SourceFile, tree: ast.Module, edits: Sequence[Edit], fixed: str) -> list[Edit]:
    """The edits, and those that take out `import x` lines of which `fixed`, the text after them, uses nothing more.

    Only a plain `import x` at the top level on a line of its own, without a comment; not in an `__init__.py`, which
    is there to be imported from, beside an `__all__`, or in a notebook, whose next cell may not be written yet.
    """
    if PurePath(source.path).name == "__init__.py" or source.path.endswith(".ipynb") or "__all__" in source.text:
        return list(edits)
    found = list(edits)
    for statement in _plain(tree, source):
        name = statement.names[0].name
        word = re.compile(rf"\b{re.escape(name)}\b")
        went = any(word.search(source.text[edit.start : edit.end]) for edit in edits)
        # A comment or a text that names it counts as a use: `mock.patch("module.subprocess.run")`.
        if went and len(word.findall(fixed)) == 1:
            found = _removed(source, statement, found)
    return found


def _plain(tree: ast.Module, source: SourceFile) -> Iterator[ast.Import]:
    for statement in tree.body:
        match statement:
            case ast.Import(names=[ast.alias(name=name, asname=None)]) if "." not in name:
                if source.line(statement.lineno).rstrip() == f"import {name}":
                    yield statement


def _removed(source: SourceFile, statement: ast.Import, edits: list[Edit]) -> list[Edit]:
    """The edits with one for the line, and for the blank line behind it where it was all that its group held."""
    start = source.line_starts[statement.lineno - 1]
    if statement.lineno >= len(source.line_starts):
        return edits  # the last line of the file, without a newline
    end = source.line_starts[statement.lineno]
    if any(edit.start < end and start < edit.end for edit in edits):
        return edits
    alone = _is_blank(source, statement.lineno - 1) and _is_blank(source, statement.lineno + 1)
    here = [edit for edit in edits if edit.start == edit.end == end]
    if alone and not here and statement.lineno + 1 < len(source.line_starts):
        end = source.line_starts[statement.lineno + 1]
        if any(edit.start < end and start < edit.end for edit in edits):
            return edits
    elif alone:
        # What comes in its place, first, needs no blank line in front.
        edits = [replace(e, text=e.text.removeprefix(source.newline)) if e is here[0] else e for e in edits]
    return [*edits, Edit(start, end, "")]


def _is_blank(source: SourceFile, number: int) -> bool:
    """Whether there is no line of that number, or nothing on it."""
    return number < 1 or number > len(source.line_starts) or not source.line(number).strip()
