"""The budget of the entry as the ambient one: its body in a `with` block."""

from __future__ import annotations

import ast

from deadlint.errors import UserError
from deadlint.fix import apply_edits
from deadlint.index.newer import parse
from deadlint.migrate.indentation import under_head
from deadlint.source import SourceFile


def around_body(source: SourceFile, function: str, budget: str) -> str:
    """The text with what follows the making of `budget` in `function` under `with budget:`.

    It is as it was where there is such a block already. Raises `UserError` where that cannot be written.
    """
    node = _find(parse(source.text), function)
    rest = _behind_making(node, budget)
    if not rest or _entered(rest[0], budget):
        return source.text
    first = rest[0]
    before = source.text[source.line_starts[first.lineno - 1] : source.offset(first.lineno, first.col_offset)]
    if before.strip() and not getattr(first, "decorator_list", []):
        place = f"{source.path}:{first.lineno}"
        raise UserError(f"{place}: write each statement of `{function}` on a line of its own first")
    return apply_edits(source.text, [under_head(source, first, node.body[-1], f"with {budget}:")])


def _find(tree: ast.Module, function: str) -> ast.FunctionDef | ast.AsyncFunctionDef:
    body: list[ast.stmt] = tree.body
    for part in function.split("."):
        found = [
            n for n in body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and n.name == part
        ]
        node = found[-1]
        body = node.body
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    return node


def _behind_making(node: ast.FunctionDef | ast.AsyncFunctionDef, budget: str) -> list[ast.stmt]:
    """The statements of a body behind the one that makes its budget."""
    for place, statement in enumerate(node.body):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]) if name == budget:
                return node.body[place + 1 :]
            case ast.With(items=items) | ast.AsyncWith(items=items):
                if any(isinstance(i.optional_vars, ast.Name) and i.optional_vars.id == budget for i in items):
                    return []
    return []


def _entered(statement: ast.stmt, budget: str) -> bool:
    match statement:
        case ast.With(items=items) | ast.AsyncWith(items=items):
            return any(isinstance(i.context_expr, ast.Name) and i.context_expr.id == budget for i in items)
    return False
