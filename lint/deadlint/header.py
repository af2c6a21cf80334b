"""What fixes need at the top of a file: imports and named constants, and the names that they go by there."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import TypeVar

from deadlint.index.scopes import Scope
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


def free_import(tree: ast.Module, scope: Scope, module: str, name: str) -> Import:
    """The import of `module.name` under its own name, or under an alias where that name is taken in the file."""
    present = imported_as(tree, module, name)
    if present is not None:
        return Import(module, name, None if present == name else present)
    taken = _bound_names(tree, scope)
    if name not in taken:
        return Import(module, name)
    alias = f"budget_{name}"
    while alias in taken:
        alias = f"_{alias}"
    return Import(module, name, alias)


def _bound_names(tree: ast.Module, scope: Scope) -> set[str]:
    """Every name that some scope of the file binds."""
    names: set[str] = set()
    pending = [scope]
    while pending:
        current = pending.pop()
        names.update(name for name, bindings in current.bindings.items() if bindings)
        pending.extend((*current.functions, *current.classes))
    # Functions that nobody asked about are not walked yet; their names are in the tree all the same.
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.alias(name=target, asname=alias):
                names.add(alias or target.partition(".")[0])
    return names


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
    apart: list[Import] = []
    for module in dict.fromkeys(i.module for i in missing):
        group = [i for i in missing if i.module == module]
        statement = _mergeable(tree, module)
        if statement is None:
            apart.extend(group)
        else:
            found.append(_merged(source, statement, group))
    if apart or wanted:
        found.append(_inserted(source, tree, apart, wanted))
    return found


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
        if isinstance(statement, ast.ImportFrom) and statement.module == module and not statement.level:
            if not any(alias.name == "*" for alias in statement.names):
                return statement
    return None


def _merged(source: SourceFile, statement: ast.ImportFrom, group: Sequence[Import]) -> Edit:
    """Join names to an import behind the name that sorts before them."""
    names = ", ".join(_alias(i) for i in sorted(group, key=lambda i: i.name))
    last = statement.names[-1]
    end = source.offset(last.end_lineno or last.lineno, last.end_col_offset or last.col_offset)
    multi_line = last.lineno != statement.lineno
    if multi_line:
        indentation = source.line(last.lineno)[: last.col_offset]
        return Edit(end, end, f",{source.newline}{indentation}{names}")
    return Edit(end, end, f", {names}")


def _alias(wanted: Import) -> str:
    return f"{wanted.name} as {wanted.alias}" if wanted.alias else wanted.name


def _inserted(
    source: SourceFile, tree: ast.Module, imports: Sequence[Import], constants: Sequence[Constant]
) -> Edit:
    """New imports and constants, behind the imports at the top."""
    newline = source.newline
    statements = []
    for module in sorted({i.module for i in imports}):
        names = ", ".join(_alias(i) for i in sorted((i for i in imports if i.module == module), key=lambda i: i.name))
        statements.append(f"from {module} import {names}")
    definitions = [f"{c.name} = {c.value}" for c in constants]
    anchor, after_import = _anchor(tree)
    body = newline.join(statements)
    if definitions:
        body += (newline * 2 if statements else "") + newline.join(definitions)
    if anchor is None:
        offset = _first_line(source)
        return Edit(offset, offset, body + newline * 2)
    offset = _line_end(source, anchor.end_lineno or anchor.lineno)
    lead = newline if after_import and statements else newline * 2
    at_end = offset == len(source.text) and not source.text.endswith(("\n", "\r"))
    text = (lead if at_end else lead[len(newline) :]) + body + ("" if at_end else newline)
    following = _following(source, anchor)
    if following is not None and definitions and not _is_blank(source, following):
        text += newline
    elif following is not None and not after_import and not _is_blank(source, following):
        text += newline
    return Edit(offset, offset, text)


def _anchor(tree: ast.Module) -> tuple[ast.stmt | None, bool]:
    """The statement behind which new imports go, and whether it is an import that is no `__future__` one."""
    anchor: ast.stmt | None = None
    plain = False
    for i, statement in enumerate(tree.body):
        match statement:
            case ast.Expr(value=ast.Constant(value=str())) if i == 0:
                anchor = statement
            case ast.ImportFrom(module="__future__"):
                anchor = statement
            case ast.Import() | ast.ImportFrom():
                anchor, plain = statement, True
            case _:
                break
    return anchor, plain


def _line_end(source: SourceFile, line: int) -> int:
    """The offset behind the newline of a line."""
    return source.line_starts[line] if line < len(source.line_starts) else len(source.text)


def _first_line(source: SourceFile) -> int:
    """The offset of the first line that is no shebang, encoding declaration or other leading comment."""
    for number, start in enumerate(source.line_starts, 1):
        if not source.line(number).lstrip().startswith("#"):
            return start
    return len(source.text)


def _following(source: SourceFile, anchor: ast.stmt) -> int | None:
    line = (anchor.end_lineno or anchor.lineno) + 1
    return line if line <= len(source.line_starts) and source.line_starts[line - 1] < len(source.text) else None


def _is_blank(source: SourceFile, line: int) -> bool:
    return not source.line(line).strip()
