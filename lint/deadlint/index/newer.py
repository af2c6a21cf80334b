"""Parsing files whose syntax is newer than the running Python."""

from __future__ import annotations

import ast
import threading
from contextlib import suppress

# LibCST's parser recurses on the stack of the machine and, where that ends, takes the process with it: at 3,000
# levels with the usual 8 MB. The pages of a larger one are only taken when they are touched.
_STACK_BYTES = 512 * 1024 * 1024


def parse(text: str) -> ast.Module:
    """The tree of a text that `ast` alone cannot parse. Raises the `SyntaxError` of the original otherwise."""
    try:
        return ast.parse(text)
    except SyntaxError as error:
        older = _older(text)
        if older is None:
            raise
        try:
            return ast.parse(older)
        except SyntaxError:
            raise error from None


def _older(text: str) -> str | None:
    """The text in older syntax, made where there is room for deep nesting; None where that cannot be done."""
    from deadlint.index.older import older_syntax  # noqa: PLC0415 - LibCST takes 0.2 s to load

    found: list[str | None] = []

    def work() -> None:
        with suppress(Exception):  # what is no Python of any version makes it fail in more ways than one
            found.append(older_syntax(text))

    before = threading.stack_size(_STACK_BYTES)
    try:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
    except RuntimeError:
        return None
    finally:
        threading.stack_size(before)
    thread.join()
    return found[0] if found else None
