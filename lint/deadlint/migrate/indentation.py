"""Statements in a block of their own: indented, but for the lines of texts that go over several."""

from __future__ import annotations

import ast
import io
import tokenize

from deadlint.model import Edit
from deadlint.source import SourceFile


def under_head(source: SourceFile, first: ast.stmt, last: ast.stmt, head: str) -> Edit:
    """The edit that puts the statements from `first` to `last`, each on lines of its own, under `head`.

    Comments right above the first go with it.
    """
    decorators = getattr(first, "decorator_list", [])
    line = min([first.lineno, *(d.lineno for d in decorators)])
    text = source.line(line)
    indentation = text[: len(text) - len(text.lstrip())]
    while line > 1 and source.line(line - 1).startswith(f"{indentation}#"):
        line -= 1
    step = "\t" if indentation.startswith("\t") else "    "
    held = _inside_texts(source.text)
    start, end_line = source.line_starts[line - 1], last.end_lineno or last.lineno
    end = source.line_starts[end_line] if end_line < len(source.line_starts) else len(source.text)
    lines = source.text[start:end].splitlines(keepends=True)
    for number, each in enumerate(lines):
        if line + number not in held and each.strip():
            lines[number] = step + each
    return Edit(start, end, "".join([f"{indentation}{head}{source.newline}", *lines]))


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
