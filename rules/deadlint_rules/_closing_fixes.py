"""The fix of DL506: what closes a resource, in a `finally` around all that uses it."""

from __future__ import annotations

import ast

from deadlint.model import Edit, Fix, Safety
from deadlint.site import Site

from deadlint_rules._blocks import holds_lines


def in_finally(site: Site, close: ast.Call) -> Fix | None:
    """`try` behind the making and `finally` in front of the closing; None where these are not plain statements of one
    block, on lines of their own."""
    made = site.statement
    closed = site.module.statement(close)
    value = closed.value if isinstance(closed, ast.Expr) else None
    awaited = isinstance(value, ast.Await)
    if value is not close and not (isinstance(value, ast.Await) and value.value is close):
        return None
    block = _block_of(made, site)
    if block is None or closed not in block:
        return None
    between = block[block.index(made) + 1 : block.index(closed)]
    if not between or any(holds_lines(statement) for statement in between):
        return None
    source = site.module.source
    start, _ = source.extent(closed)
    line_start = source.line_starts[closed.lineno - 1]
    indentation = source.text[line_start:start]
    if indentation.strip() or not _has_lines(site, made) or not _has_lines(site, closed):
        return None
    step = "\t" if indentation.startswith("\t") else "    "
    newline = source.newline
    first = source.line_starts[made.end_lineno or made.lineno]  # the line behind the making
    body = source.text[first:line_start].splitlines(keepends=True)
    indented = "".join(step + line if line.strip() else line for line in body)
    text = f"{indentation}try:{newline}{indented}{indentation}finally:{newline}{indentation}{step}"
    plain = isinstance(close.func, ast.Attribute) and close.func.attr in ("close", "quit", "cleanup")
    safety = Safety.SAFE if plain and not awaited else Safety.UNSAFE
    return Fix("close it in a `finally`", safety, (Edit(first, start, text),))


def _block_of(statement: ast.stmt, site: Site) -> list[ast.stmt] | None:
    parent = site.module.walker.parents.get(statement)
    if parent is None and site.function is not None:
        parent = site.function.node
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and statement in block:
            return block
    return None


def _has_lines(site: Site, statement: ast.stmt) -> bool:
    """Whether a statement shares its lines with no other."""
    source = site.module.source
    start, end = source.extent(statement)
    before = source.text[source.line_starts[statement.lineno - 1] : start]
    behind = source.text[end:].partition("\n")[0].partition("#")[0]
    return not before.strip() and not behind.strip()
