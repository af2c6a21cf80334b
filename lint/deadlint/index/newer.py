"""Parsing files whose syntax is newer than the running Python."""

from __future__ import annotations

import ast


def parse(text: str) -> ast.Module:
    """The tree of a text that `ast` alone cannot parse. Raises the `SyntaxError` of the original otherwise."""
    try:
        return ast.parse(text)
    except SyntaxError as error:
        from deadlint.index.older import older_syntax  # noqa: PLC0415 - LibCST takes 0.2 s to load

        older = older_syntax(text)
        if older is None:
            raise
        try:
            return ast.parse(older)
        except SyntaxError:
            raise error from None
