"""Regions: the piece of source that a fix replaces, as a LibCST tree of its own.

Parsing the whole file costs LibCST seconds a megabyte; a call or statement costs well under a millisecond, and what
lies outside of it cannot change. LibCST is loaded with the first region: it takes 0.2 s, and many runs fix nothing.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from deadlint.model import Edit
from deadlint.source import SourceFile

if TYPE_CHECKING:
    import libcst as cst


def parse_call(source: SourceFile, call: ast.Call) -> cst.Call:
    """The LibCST node of a call, cut from the source."""
    from deadlint import rewriting

    return rewriting.parse_call(source, call)


def code(source: SourceFile, node: cst.CSTNode) -> str:
    """The source text of a LibCST node, with the file's newlines."""
    from deadlint import rewriting

    return rewriting.code(source, node)


def expression(text: str) -> cst.BaseExpression:
    """A LibCST expression of its source text."""
    from deadlint import rewriting

    return rewriting.expression(text)


def rewritten(
    node: cst.Call,
    *,
    function: str | None = None,
    rename: Mapping[str, tuple[str, str | None]] | None = None,
    add: Sequence[tuple[str, str]] = (),
    prepend: Sequence[str] = (),
) -> cst.Call:
    """`node` with another function, keywords renamed in place, keywords added, and arguments put in front.

    `rename` maps a keyword to its new name and, where that changes too, its new value. A keyword that is there
    already is never added.
    """
    from deadlint import rewriting

    return rewriting.rewritten(node, function=function, rename=rename, add=add, prepend=prepend)


def with_keyword_name(arg: cst.Arg, name: str) -> cst.Arg:
    """A positional argument given by keyword."""
    from deadlint import rewriting

    return rewriting.with_keyword_name(arg, name)


def replace_call(source: SourceFile, call: ast.Call, node: cst.BaseExpression, suffix: str = "") -> Edit:
    """The smallest edit that puts `node`, followed by `suffix`, where `call` stands."""
    start, end = source.extent(call)
    return smallest(source, start, end, code(source, node) + suffix)


def smallest(source: SourceFile, start: int, end: int, text: str) -> Edit:
    """The edit that makes `text` of what is between two offsets, less what is the same at its ends."""
    old = source.text[start:end]
    head = 0
    while head < min(len(old), len(text)) and old[head] == text[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(text)) - head and old[-1 - tail] == text[-1 - tail]:
        tail += 1
    return Edit(start + head, end - tail, text[head : len(text) - tail])
