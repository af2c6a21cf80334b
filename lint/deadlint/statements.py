"""Which physical lines make up one statement, and where the real comments on them are.

The tree is parsed when first asked for: nearly all files hold nothing that asks.
"""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterator, Sequence
from functools import cached_property

from deadlint.source import SourceFile


class Statements:
    """The statements of one file. Of a compound statement only the head counts, not what it holds.

    Where the file does not parse, every line counts as a statement of its own. `tree` is its own, if it is at hand.
    """

    def __init__(self, source: SourceFile, tree: ast.Module | None = None) -> None:
        self._source = source
        self._tree = tree

    def around(self, line: int) -> tuple[int, int]:
        """The first and last line of the statements that `line` is part of; itself where there is none."""
        return self._by_line.get(line, (line, line))

    def comments(self, line: int) -> Iterator[tuple[int, int]]:
        """Start and end offset of each comment on `line`: what only looks like one in a string is none."""
        first, last = self.around(line)
        lines = iter([self._source.line(number) + "\n" for number in range(first, last + 1)])
        try:
            for token in tokenize.generate_tokens(lambda: next(lines, "")):
                if token.type == tokenize.COMMENT and first + token.start[0] - 1 == line:
                    start = self._source.line_starts[line - 1] + token.start[1]
                    yield start, start + len(token.string)
        except (tokenize.TokenError, SyntaxError):
            return  # an open bracket at the end of a head, or a line of a file that does not parse

    @cached_property
    def _by_line(self) -> dict[int, tuple[int, int]]:
        """For each line of a statement that has more than one, the lines of it and of what shares these."""
        try:
            tree = self._tree or ast.parse(self._source.text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return {}
        joined: list[tuple[int, int]] = []
        for first, last in sorted(self._heads(tree.body)):
            if joined and first <= joined[-1][1]:  # `a; b`: comments are found by reading from where `a` begins
                joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
            else:
                joined.append((first, last))
        return {line: lines for lines in joined for line in range(lines[0], lines[1] + 1)}

    def _heads(self, body: Sequence[ast.stmt]) -> Iterator[tuple[int, int]]:
        """The lines of each simple statement and of each head, as deep as they go."""
        stack: list[Sequence[ast.stmt | ast.ExceptHandler | ast.match_case]] = [body]
        while stack:
            for node in stack.pop():
                inner = [block for block in _blocks(node) if block]
                first = _first_line(node)
                if inner:
                    yield first, self._last_of_head(first, _first_line(inner[0][0]))
                elif not isinstance(node, ast.match_case):
                    yield first, node.end_lineno or first
                stack.extend(inner)

    def _last_of_head(self, first: int, body: int) -> int:
        """The last line of a head that begins on `first` and whose body begins on `body`."""
        last = max(first, body - 1)
        while last > first and self._source.line(last).lstrip()[:1] in ("", "#"):
            last -= 1
        return last


def _blocks(
    node: ast.stmt | ast.ExceptHandler | ast.match_case,
) -> Iterator[Sequence[ast.stmt | ast.ExceptHandler | ast.match_case]]:
    for name in ("body", "cases", "handlers", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block


def _first_line(node: ast.stmt | ast.ExceptHandler | ast.match_case) -> int:
    if isinstance(node, ast.match_case):
        return node.pattern.lineno
    decorators = getattr(node, "decorator_list", None)
    return decorators[0].lineno if decorators else node.lineno
