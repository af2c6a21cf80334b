"""What fixes need at the top of a file: imports and named constants, and the names that they go by there."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import TypeVar

from deadlint.model import Constant, Edit, Import
from deadlint.source import SourceFile


def imported_as(tree: ast.Module, module: str, name: str) -> str | None:
    """The name under which the top level of the file already has `module.name`; None where it has not."""
    for statement in _leading(tree):
        if isinstance(statement, ast.ImportFrom) and statement.module == module and not statement.level:
            for alias in statement.names:
                if alias.name == name:
                    return alias.asname or alias.name
    return None


def free_import(tree: ast.Module, taken: Collection[str], module: str, name: str) -> Import:
    """The import of `module.name` under its own name, or under an alias where that name is taken in the file."""
    present = imported_as(tree, module, name)
    if present is not None:
        return Import(module, name, None if present == name else present)
    if name not in taken:
        return Import(module, name)
    alias = f"budget_{name}"
    while alias in taken:
        alias = f"_{alias}"
    return Import(module, name, alias)


def _leading(tree: ast.Module) -> Iterable[ast.stmt]:
    """The imports at the top level of the file, in order."""
    return (s for s in tree.body if isinstance(s, ast.Import | ast.ImportFrom))


def edits(
    source: SourceFile, tree: ast.Module, imports: Sequence[Import], constants: Sequence[Constant]
) -> list[Edit]:
    """The edits that give the file these imports and constants; none for what it has already."""
    missing = [i for i in _unique(imports) if not _has_import(tree, i)]
    wanted = [c for c in _unique(constants) if not _has_constant(tree, c)]
    found: list[Edit] = []
    apart: list[tuple[str, str]] = []
    for module in sorted({i.module for i in missing}):
        names = sorted((i for i in missing if i.module == module), key=lambda i: _order(i.name))
        statement = _mergeable(tree, module)
        if statement is None:
            apart.append((module, f"from {module} import {', '.join(_alias(i) for i in names)}"))
        else:
            found.extend(_joined(source, statement, i) for i in names)
    block = _leading_block(tree)
    crowded = _crowded(tree, block)
    if crowded is not None:
        end = source.offset(crowded.end_lineno or crowded.lineno, crowded.end_col_offset or crowded.col_offset)
        behind = "".join(f"; {line}" for line in (*(line for _, line in apart), *_definitions(wanted)))
        return [*found, *([Edit(end, end, behind)] if behind else [])]
    if not block:
        text = [*(line for _, line in apart), *([""] if apart and wanted else []), *_definitions(wanted)]
        return [*found, *([_at_the_top(source, tree, text)] if text else [])]
    found.extend(_import_edit(source, block, module, line) for module, line in apart)
    if wanted:
        found.append(_constant_edit(source, tree, block, wanted))
    return found


def _definitions(constants: Sequence[Constant]) -> list[str]:
    return [f"{c.name} = {c.value}" for c in constants]


_T = TypeVar("_T")


def _unique(items: Sequence[_T]) -> list[_T]:
    return list(dict.fromkeys(items))


def _has_import(tree: ast.Module, wanted: Import) -> bool:
    return any(
        isinstance(s, ast.ImportFrom)
        and not s.level
        and s.module == wanted.module
        and any(a.name == wanted.name and a.asname == wanted.alias for a in s.names)
        for s in _leading(tree)
    )


def _has_constant(tree: ast.Module, wanted: Constant) -> bool:
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if name == wanted.name:
                    return True
    return False


def _mergeable(tree: ast.Module, module: str) -> ast.ImportFrom | None:
    """A `from module import …` near the top that more names can join."""
    for statement in _leading(tree):
        match statement:
            case ast.ImportFrom(module=found, level=0, names=names) if found == module and names[0].name != "*":
                return statement
    return None


def _joined(source: SourceFile, statement: ast.ImportFrom, wanted: Import) -> Edit:
    """Put a name into an import, where it sorts."""
    later = next((a for a in statement.names if _order(a.name) > _order(wanted.name)), None)
    last = statement.names[-1]
    lines = last.lineno != statement.lineno
    if later is not None:
        start = source.offset(later.lineno, later.col_offset)
        space = source.newline + source.line(later.lineno)[: later.col_offset] if lines else " "
        return Edit(start, start, f"{_alias(wanted)},{space}")
    end = source.offset(last.end_lineno or last.lineno, last.end_col_offset or last.col_offset)
    space = source.newline + source.line(last.lineno)[: last.col_offset] if lines else " "
    return Edit(end, end, f",{space}{_alias(wanted)}")


def _order(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions, as import sorters have it."""
    return (0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2, name)


def _alias(wanted: Import) -> str:
    return f"{wanted.name} as {wanted.alias}" if wanted.alias else wanted.name


def _at_the_top(source: SourceFile, tree: ast.Module, lines: Sequence[str]) -> Edit:
    """New lines in a file without imports: behind its docstring, else behind its leading comments."""
    newline = source.newline
    match tree.body:
        case [ast.Expr(value=ast.Constant(value=str())) as docstring, *rest]:
            offset = _line_end(source, docstring.end_lineno or docstring.lineno)
            at_end = not source.text[:offset].endswith(("\n", "\r"))
            text = newline * (2 if at_end else 1) + newline.join(lines) + ("" if at_end else newline)
            following = source.text[offset:].startswith(("\n", "\r"))
            return Edit(offset, offset, text + ("" if following or at_end or not rest else newline))
    offset = _first_line(source)
    return Edit(offset, offset, newline.join(lines) + newline * 2)


def _import_edit(source: SourceFile, block: Sequence[ast.stmt], module: str, line: str) -> Edit:
    """A new import where it sorts: standard library, then other packages, then relative ones."""
    newline = source.newline
    section = _section(module)
    before = [s for s in block if _place(s) < (section, 1, module.lower())]
    after = block[len(before)] if len(before) < len(block) else None
    if not before:
        assert after is not None
        offset = source.line_starts[after.lineno - 1]
        return Edit(offset, offset, line + newline * (1 if _section_of(after) == section else 2))
    offset = _line_end(source, before[-1].end_lineno or before[-1].lineno)
    at_end = not source.text[:offset].endswith(("\n", "\r"))
    lead = newline if at_end else ""
    if _section_of(before[-1]) != section:
        lead += newline
        if after is not None and _section_of(after) == section:
            # Its own section is there already, and what it has sorts behind.
            offset = source.line_starts[after.lineno - 1]
            return Edit(offset, offset, line + newline)
    trail = newline if after is not None and _section_of(after) != section and not _blank_at(source, offset) else ""
    return Edit(offset, offset, lead + line + ("" if at_end else newline) + trail)


def _constant_edit(
    source: SourceFile, tree: ast.Module, block: Sequence[ast.stmt], constants: Sequence[Constant]
) -> Edit:
    """New constants behind the imports, or beside constants that stand there."""
    newline = source.newline
    lines = newline.join(_definitions(constants))
    beside = None
    for statement in tree.body[tree.body.index(block[-1]) + 1 :]:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant()) if name.isupper():
                beside = statement
            case _:
                break
    anchor = beside or block[-1]
    offset = _line_end(source, anchor.end_lineno or anchor.lineno)
    at_end = not source.text[:offset].endswith(("\n", "\r"))
    lead = (newline if at_end else "") + ("" if beside is not None else newline)
    trail = "" if at_end or offset == len(source.text) or beside or _blank_at(source, offset) else newline
    return Edit(offset, offset, lead + lines + ("" if at_end else newline) + trail)


def _leading_block(tree: ast.Module) -> list[ast.stmt]:
    """The imports at the top of the file, up to the first other statement."""
    block: list[ast.stmt] = []
    for i, statement in enumerate(tree.body):
        match statement:
            case ast.Expr(value=ast.Constant(value=str())) if i == 0:
                continue
            case ast.Import() | ast.ImportFrom():
                block.append(statement)
            case _:
                break
    return block


def _crowded(tree: ast.Module, block: Sequence[ast.stmt]) -> ast.stmt | None:
    """What has to have new lines behind it within its own: `import os; os.fork()`; None where whole lines will do.

    Below such a line they would come too late for the code in it; above, in front of a docstring or a `__future__`.
    """
    top = ([] if ast.get_docstring(tree, clean=False) is None else tree.body[:1]) + list(block)
    for statement, following in reversed(list(pairwise(tree.body[: len(top) + 1]))):
        # `_section_of` is 0 for a docstring as for a `__future__`, which have to stay first.
        needed = following not in block or (_section_of(statement) == 0 and _section_of(following) != 0)
        if needed and statement.end_lineno == following.lineno:
            return statement
    return None


def _place(statement: ast.stmt) -> tuple[int, int, str]:
    """Where an import sorts: its section, plain imports before `from` ones, its module."""
    match statement:
        case ast.ImportFrom(module=module, level=level):
            return (_section("." * level + (module or "")), 1, (module or "").lower())
        case ast.Import(names=[alias, *_]):
            return (_section(alias.name), 0, alias.name.lower())
    return (0, 0, "")


def _section_of(statement: ast.stmt) -> int:
    return _place(statement)[0]


def _section(module: str) -> int:
    if module == "__future__":
        return 0
    if module.startswith("."):
        return 3
    return 1 if module.partition(".")[0] in sys.stdlib_module_names else 2


def _blank_at(source: SourceFile, offset: int) -> bool:
    return source.text[offset:].startswith(("\n", "\r"))


def _line_end(source: SourceFile, line: int) -> int:
    """The offset behind the newline of a line."""
    return source.line_starts[line] if line < len(source.line_starts) else len(source.text)


def _first_line(source: SourceFile) -> int:
    """The offset of the first line that is no shebang, encoding declaration or other leading comment."""
    for number, start in enumerate(source.line_starts, 1):
        if not source.line(number).lstrip().startswith("#"):
            return start
    return len(source.text)
