"""Syntax that is newer than the running Python: places stay where they are."""

from __future__ import annotations

import ast
import sys

import pytest
from deadlint.index.newer import parse
from deadlint.index.older import older_syntax

NEWER = {
    "type statement": "type Names = list[str]\nx = f(1)\n",
    "generic type statement": "type Pair[T] = tuple[T, T]\nx = f(1)\n",
    "type parameters": "def first[T: int](items: list[T]) -> T:\n    return f(1)\n",
    "generic class": "class Box[T]:\n    x = f(1)\n",
    "quotes within an f-string": 'x = f"{a["b"]}", f(1)\n',
    "f-string over lines": 'x = f"{\na["b"]\n}", f(1)\n',
}


@pytest.mark.parametrize("name", NEWER)
def test_what_is_not_new_keeps_its_place(name: str) -> None:
    text = NEWER[name]
    older = older_syntax(text)
    assert older is not None
    assert len(older) == len(text)
    assert [len(line) for line in older.split("\n")] == [len(line) for line in text.split("\n")]
    (call,) = [n for n in ast.walk(ast.parse(older)) if isinstance(n, ast.Call)]
    assert ast.get_source_segment(text, call) == "f(1)"


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python knows the syntax itself")
@pytest.mark.parametrize("name", NEWER)
def test_an_older_python_reads_it(name: str) -> None:
    with pytest.raises(SyntaxError):
        ast.parse(NEWER[name])
    assert any(isinstance(n, ast.Call) for n in ast.walk(parse(NEWER[name])))


@pytest.mark.parametrize("text", ["def f(:\n", "print 'python 2'\n", "x = (\n"])
def test_what_nobody_can_read_is_an_error(text: str) -> None:
    with pytest.raises(SyntaxError):
        parse(text)
