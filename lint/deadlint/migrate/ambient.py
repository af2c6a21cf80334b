"""What holds for all that the entry runs: its body in `with budget:`, or in `async with budget.scope():`."""

from __future__ import annotations

import ast

from deadlint.errors import UserError
from deadlint.fix import apply_edits
from deadlint.index.newer import parse
from deadlint.migrate.indentation import under_head
from deadlint.source import SourceFile

_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def around_body(source: SourceFile, function: str, budget: str, *, ambient: bool) -> str:
    """The text with what follows the making of `budget` in `function` in a block of it.

    In a coroutine that is `budget.scope()`, which ends what it awaits and is the ambient budget too; elsewhere
    `with budget:`, where `ambient` asks for it. As it was where there is such a block already. Raises `UserError`
    where it cannot be written.
    """
    node = _find(parse(source.text), function)
    rest = _behind_making(node, budget)
    is_coroutine = isinstance(node, ast.AsyncFunctionDef) and not _yields(node)
    if not rest or not (is_coroutine or ambient) or _entered(node, budget):
        return source.text
    first = rest[0]
    head = f"async with {budget}.scope():" if is_coroutine else f"with {budget}:"
    before = source.text[source.line_starts[first.lineno - 1] : source.offset(first.lineno, first.col_offset)]
    if before.strip() and not getattr(first, "decorator_list", []):
        place = f"{source.path}:{first.lineno}"
        raise UserError(f"{place}: write each statement of `{function}` on a line of its own first")
    return apply_edits(source.text, [under_head(source, first, node.body[-1], head)])


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


def _entered(node: ast.FunctionDef | ast.AsyncFunctionDef, budget: str) -> bool:
    """Whether the function enters the budget, or a scope of it, somewhere."""
    entered = [i.context_expr for n in ast.walk(node) if isinstance(n, ast.With | ast.AsyncWith) for i in n.items]
    return any(ast.unparse(one) in (budget, f"{budget}.scope()") for one in entered)


def _yields(node: ast.AsyncFunctionDef) -> bool:
    """Whether it is a generator, in which a scope would hold for whoever runs between two of its values."""
    inner = {n for d in ast.walk(node) if d is not node and isinstance(d, _FUNCTIONS) for n in ast.walk(d)}
    return any(isinstance(n, ast.Yield | ast.YieldFrom) and n not in inner for n in ast.walk(node))
