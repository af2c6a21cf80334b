"""The budget of the entry as the ambient one: its body in a `with` block."""

from __future__ import annotations

import ast
import io
import tokenize

from deadlint.errors import UserError
from deadlint.index.newer import parse
from deadlint.source import SourceFile


def around_body(source: SourceFile, function: str, budget: str) -> str:
    """The text with what follows the making of `budget` in `function` under `with budget:`.

    It is as it was where there is such a block already. Raises `UserError` where that cannot be written.
    """
    node = _find(parse(source.text), function)
    rest = _behind_making(node, budget)
    if not rest or _entered(rest[0], budget):
        return source.text
    first, last = rest[0], node.body[-1]
    decorators = getattr(first, "decorator_list", [])
    line = min([first.lineno, *(d.lineno for d in decorators)])
    start = source.line_starts[line - 1]
    text = source.line(line)
    indentation = text[: len(text) - len(text.lstrip())]
    if source.text[start : source.offset(first.lineno, first.col_offset)].strip() and not decorators:
        raise UserError(f"{source.path}:{line}: write each statement of `{function}` on a line of its own first")
    step = "\t" if indentation.startswith("\t") else "    "
    held = _inside_texts(source.text)
    lines = source.text.splitlines(keepends=True)
    for number in range(line, (last.end_lineno or last.lineno) + 1):
        if number not in held and lines[number - 1].strip():
            lines[number - 1] = step + lines[number - 1]
    lines.insert(line - 1, f"{indentation}with {budget}:{source.newline}")
    return "".join(lines)


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


def _inside_texts(text: str) -> set[int]:
    """The lines that begin inside of a text of several lines: to indent them would change it."""
    found: set[int] = set()
    opened: list[int] = []
    for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
        name = tokenize.tok_name[token.type]
        if name == "STRING":
            found.update(range(token.start[0] + 1, token.end[0] + 1))
        elif name in ("FSTRING_START", "TSTRING_START"):
            opened.append(token.start[0])
        elif name in ("FSTRING_END", "TSTRING_END"):
            found.update(range(opened.pop() + 1, token.end[0] + 1))
    return found
