"""Parsing a file without the bodies of its functions, each of which is parsed when something asks for it.

`ast.parse` reads some 4 MB a second and most functions of most files hold nothing of interest, so this is what a cold
run over a large tree spends its time on. Bodies are found by their indentation; wherever that could mislead (a string
with lines further left, an odd number of triple quotes, brackets that do not close) the file is parsed as a whole.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

# A `def` whose signature ends on its own line or on a later one that closes it; what follows is its body.
_DEFINITION = re.compile(
    r"^(?P<indent>[ \t]*)(?:async[ \t]+)?def[ \t]+(?P<name>\w+)[ \t]*\("
    r"(?:[^\n]*\)[ \t]*(?:->[^\n:]+)?:[ \t]*(?:#[^\n]*)?$"
    r"|[^\n]*\n(?:(?![ \t]*(?:async[ \t]+)?def\b)[^\n]*\n){0,40}?[ \t]*\)[ \t]*(?:->[^\n:]+)?:[ \t]*(?:#[^\n]*)?$)",
    re.MULTILINE,
)
_TRIPLE = re.compile(r'"""|\'\'\'')
# Below this a file is parsed as fast as it is cut up.
_WORTH_IT = 4_000


@dataclass(slots=True)
class Outline:
    """A module's tree in which some functions have no body yet, and where in the text those stand."""

    tree: ast.Module
    text: str
    spans: dict[int, tuple[int, int]] = field(default_factory=dict)  # line of the `def` → the function's extent

    @property
    def whole(self) -> bool:
        """Whether nothing was left out."""
        return not self.spans

    def complete(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Give a function its body, if that was left out. Raises `SyntaxError`."""
        span = self.spans.get(node.lineno)
        if span is None:
            return
        full = _function(self.text[slice(*span)], node.lineno)
        node.body = full.body
        node.end_lineno, node.end_col_offset = full.end_lineno, full.end_col_offset


def outline(text: str) -> Outline:
    """Parse `text`, without the bodies of its functions where that is safe. Raises `SyntaxError`."""
    if len(text) > _WORTH_IT and "\r" not in text and "\f" not in text:
        cut = _cut(text)
        if cut is not None:
            return cut
    return Outline(ast.parse(text), text)


def _cut(text: str) -> Outline | None:
    """The outline of a file; None where its layout does not allow one."""
    pieces: list[str] = []
    spans: dict[int, tuple[int, int]] = {}
    position = 0
    line, counted = 1, 0
    match = _DEFINITION.search(text)
    while match is not None:
        start = match.end() + 1
        end, doubtful = _body_end(text, start, len(match["indent"]))
        if doubtful and not _stands_alone(text[match.start() : end]):
            return None
        if end > start:
            line += text.count("\n", counted, match.start())
            counted = match.start()
            spans[line] = (match.start(), end)
            body = text[start:end]
            pieces += [text[position:start], match["indent"], " pass", "\n" * body.count("\n")]
            position = end
        match = _DEFINITION.search(text, max(end, match.end()))
    if not spans:
        return None
    try:
        tree = ast.parse("".join([*pieces, text[position:]]))
    except SyntaxError:
        return None
    # A `def` in a string is none: such a file is parsed as it is.
    return Outline(tree, text, spans) if spans.keys() <= set(_definitions(tree)) else None


def _definitions(tree: ast.Module) -> Iterator[int]:
    """The lines of the functions outside of functions."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno
            continue
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            pending.extend(getattr(node, name, ()))


def _body_end(text: str, start: int, indent: int) -> tuple[int, bool]:
    """The offset behind a body, before the first line indented no deeper than its `def`; and whether to doubt it."""
    boundary = _boundary(indent)
    end, doubtful = start, False
    while True:
        found = boundary.search(text, end)
        end = found.start() if found else len(text)
        if len(_TRIPLE.findall(text, start, end)) % 2 == 0:
            return end, doubtful
        # Inside of a string, it seems: look further.
        doubtful = True
        if found is None:
            return end, doubtful
        end = found.end()


def _stands_alone(text: str) -> bool:
    """Whether a piece of source is one function."""
    try:
        _function(text, 2)
    except SyntaxError:
        return False
    return True


_boundaries: dict[int, re.Pattern[str]] = {}


def _boundary(indent: int) -> re.Pattern[str]:
    if indent not in _boundaries:
        _boundaries[indent] = re.compile(rf"^[ \t]{{0,{indent}}}[^\s#]", re.MULTILINE)
    return _boundaries[indent]


def _function(text: str, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """A function from its source, at its line. Raises `SyntaxError`."""
    body = ast.parse("\n" * (line - 2) + "if 1:\n" + text if text[0] in " \t" else "\n" * (line - 1) + text).body
    match body:
        case [ast.FunctionDef() | ast.AsyncFunctionDef() as function]:
            return function
        case [ast.If(body=[ast.FunctionDef() | ast.AsyncFunctionDef() as function])]:
            return function
    raise SyntaxError("a body was cut wrongly")
