"""A keyword-only parameter for a function that has none for its budget: where it stands, and its annotation."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from deadlint.index.scopes import FunctionNode
from deadlint.migrate.docstring import docstring_edit
from deadlint.model import Edit
from deadlint.source import SourceFile

# In the order in which they are tried; the second needs its annotation to be known for what it is.
NAMES = ("budget", "time_budget", "deadline_budget", "_time_budget")


@dataclass(frozen=True, slots=True)
class Parameter:
    """The parameter that a function gets. `type_name` is what the file calls `Budget`."""

    name: str
    required: bool
    type_name: str


@dataclass(frozen=True, slots=True)
class _Head:
    """The parentheses of a definition, the end of the last parameter, as offsets; and whether a comma follows that."""

    opened: int
    last: int
    closed: int
    trailing_comma: bool


def free_name(node: FunctionNode) -> str:
    """The name that a budget can have in a function: one that nothing in it uses."""
    own = {n for a in ast.walk(node) if isinstance(a, ast.Assign) and _makes_budget(a.value) for n in a.targets}
    names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    # A budget that it makes under that name is made of the parameter: `budget = budget.limit(…)`.
    own_names = {n.id for n in own if isinstance(n, ast.Name)}
    stored = {n.id for n in names if isinstance(n.ctx, ast.Store) and n not in own}
    free = own_names - stored
    taken = {n.id for n in names} - free | {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
    return next(name for name in NAMES if name not in taken)


def _makes_budget(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func).endswith("Budget.of")


def is_annotated(node: FunctionNode) -> bool:
    """Whether a function has annotations."""
    args = node.args
    arguments = (*args.posonlyargs, *args.args, *args.kwonlyargs)
    return node.returns is not None or any(a.annotation is not None for a in arguments)


def needs_type(node: FunctionNode, name: str) -> bool:
    """Whether the parameter comes with its annotation: the function has others, or its name says too little."""
    return is_annotated(node) or name != NAMES[0]


def declared(node: FunctionNode, parameter: Parameter) -> str:
    """The source of the parameter."""
    if not needs_type(node, parameter.name):
        return parameter.name if parameter.required else f"{parameter.name}=None"
    if parameter.required:
        return f"{parameter.name}: {parameter.type_name}"
    return f"{parameter.name}: {parameter.type_name} | None = None"


def signature_edits(source: SourceFile, node: FunctionNode, parameter: Parameter) -> list[Edit]:
    """The edits that give a function the parameter, and its docstring an entry where that has some."""
    text = declared(node, parameter)
    if not (node.args.kwonlyargs or node.args.vararg):
        text = f"*, {text}"
    edits = [_before_rest(source, node, text) if node.args.kwarg else _at_the_end(source, node, text)]
    documented = docstring_edit(source, node, parameter.name, _typed(node, parameter))
    return edits if documented is None else [*edits, documented]


def _typed(node: FunctionNode, parameter: Parameter) -> str:
    """The type as a docstring that names types has it."""
    return parameter.type_name if parameter.required else f"{parameter.type_name}, optional"


def _before_rest(source: SourceFile, node: FunctionNode, text: str) -> Edit:
    """In front of `**kwargs`."""
    rest = node.args.kwarg
    assert rest is not None
    name = source.offset(rest.lineno, rest.col_offset)
    stars = source.text.rindex("**", 0, name)
    line_start = source.text.rfind("\n", 0, stars) + 1
    indentation = source.text[line_start:stars]
    if indentation.strip():
        return Edit(stars, stars, f"{text}, ")
    lines = text.replace("*, ", f"*,{source.newline}{indentation}", 1) if text.startswith("*, ") else text
    return Edit(stars, stars, f"{lines},{source.newline}{indentation}")


def _at_the_end(source: SourceFile, node: FunctionNode, text: str) -> Edit:
    head = _head(source, node)
    inside = source.text[head.opened + 1 : head.closed]
    if not inside.strip():
        return Edit(head.opened + 1, head.closed, text)
    line_start = source.text.rfind("\n", 0, head.closed) + 1
    own_line = not source.text[line_start : head.closed].strip() and "\n" in inside
    if not own_line:
        return Edit(head.last, head.last, f", {text}")
    indentation = _indentation(source, node)
    lines = text.replace("*, ", f"*,{source.newline}{indentation}", 1) if text.startswith("*, ") else text
    if _one_a_line(source, node):
        comma = "" if head.trailing_comma else ","
        behind = source.text[head.last:line_start]  # a comma, and perhaps a comment
        added = f"{indentation}{lines},{source.newline}"
        return Edit(head.last, line_start, f"{comma}{behind}{added}")
    return Edit(head.last, head.last, f", {text}")


def _one_a_line(source: SourceFile, node: FunctionNode) -> bool:
    """Whether the parameters stand one to a line."""
    args = node.args
    lines = [a.lineno for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    return len(lines) == len(set(lines)) and (len(lines) > 1 or bool(lines and lines[0] != node.lineno))


def _indentation(source: SourceFile, node: FunctionNode) -> str:
    args = node.args
    first = next(iter((*args.posonlyargs, *args.args, *([args.vararg] if args.vararg else []), *args.kwonlyargs)))
    line = source.line(first.lineno)
    return line[: len(line) - len(line.lstrip())]


def _head(source: SourceFile, node: FunctionNode) -> _Head:
    """The parentheses around the parameters."""
    opened = last = depth = square = 0
    comma = False
    for text, start, end in _tokens(source, node):
        if not opened and text in ("[", "]"):
            square += 1 if text == "[" else -1  # the type parameters of Python 3.12
        elif not square and text in ("(", "[", "{"):
            opened = opened or start + 1
            depth += 1
        elif opened and text in (")", "]", "}"):
            depth -= 1
            if not depth:
                return _Head(opened - 1, last, start, comma)
        comma = text == "," and depth == 1
        last = last if comma else end
    raise AssertionError("a definition that has been parsed has parentheses")


def _tokens(source: SourceFile, node: FunctionNode) -> Iterator[tuple[str, int, int]]:
    """The tokens of a definition, comments and newlines left out: text, start and end offset."""
    base = source.offset(node.lineno, node.col_offset)
    skipped = (tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT)

    def offset(row: int, column: int) -> int:
        return base + column if row == 1 else source.line_starts[node.lineno + row - 2] + column

    for token in tokenize.generate_tokens(io.StringIO(source.text[base:], newline="").readline):
        if token.type not in skipped:
            yield token.string if token.type == tokenize.OP else "", offset(*token.start), offset(*token.end)
