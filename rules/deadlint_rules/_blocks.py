"""A statement in a `with` block of its own, with some of its expressions replaced."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from deadlint.site import Site

_PLAIN = ast.Expr | ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return


@dataclass(frozen=True, slots=True)
class Wrapped:
    """New text for what stands between two offsets."""

    start: int
    end: int
    text: str


def wrapped(
    site: Site, header: str, replaced: Sequence[tuple[ast.expr, str]], *, since: ast.stmt | None = None
) -> Wrapped | None:
    """The statement of a call under `header`; None where it is compound, shares a line, or holds a text of several.

    With `since`, the statements from that one on, which is of the same block.
    """
    statement = site.statement
    since = since or statement
    plain = isinstance(statement, _PLAIN) and isinstance(since, _PLAIN)
    if not plain or site.scope.kind == "lambda" or site.target.partial is not None:
        return None
    source = site.module.source
    start, _ = source.extent(since)
    _, end = source.extent(statement)
    line_start = source.line_starts[since.lineno - 1]
    indentation = source.text[line_start:start]
    behind = source.text[end:].partition("\n")[0].partition("#")[0]
    if indentation.strip() or behind.strip() or holds_lines(statement) or holds_lines(since):
        return None
    body, place = "", start
    for node, text in sorted(replaced, key=lambda pair: source.extent(pair[0])):
        first, last = source.extent(node)
        body += source.text[place:first] + text
        place = last
    body += source.text[place:end]
    step = "\t" if indentation.startswith("\t") else "    "
    first_line, *lines = body.splitlines(keepends=True)
    indented = indentation + step + first_line + "".join(step + line if line.strip() else line for line in lines)
    return Wrapped(start, end, f"{header}{source.newline}{indented}")


def holds_lines(statement: ast.stmt) -> bool:
    """Whether a text of several lines stands in a statement: to indent it would change it."""
    return any(
        isinstance(node, ast.Constant | ast.JoinedStr)
        and isinstance(getattr(node, "value", ""), str)
        and node.lineno != node.end_lineno
        for node in ast.walk(statement)
    )
