"""A file parsed without its functions' bodies is, once they are asked for, what `ast.parse` makes of it."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from deadlint.index import outline as outlines
from deadlint.index.outline import outline

FILLER = "x = 1\n" * 1000  # short files are parsed whole

PIECES = {
    "plain": "def f(a, b=1):\n    return a\n\n\ndef g():\n    return 2\n",
    "long signature": "def f(\n    a: int,\n    b: str = ')',\n) -> dict[str, int]:\n    return a\n",
    "methods": "class C:\n    def f(self):\n        return 1\n\n    @property\n    def g(self):\n        return 2\n",
    "async and nested": "async def f():\n    def g():\n        return 1\n\n    return g\n",
    "one line": "def f(): return 1\n\n\ndef g():\n    return 2\n",
    "string to the left": "def f():\n    sql = '''\nselect 1\n'''\n    return sql\n\n\ndef g():\n    return 2\n",
    "def in a string": "'''\ndef f():\n    return 1\n'''\n\n\ndef g():\n    return 2\n",
    "odd quotes in a comment": "def f():\n    return 1  # '''\n\n\ndef g():\n    return 2  # '''\n",
    "brackets to the left": "def f():\n    x = [\n1,\n2]\n    return x\n\n\ndef g():\n    return 2\n",
    "comments to the left": "def f():\n    a = 1\n# left\n    return a\n# right\n\n\ndef g():\n    return 2\n",
    "conditional": "if x:\n    def f():\n        return 1\nelse:\n    def f():\n        return 2\n",
    "tabs": "class C:\n\tdef f(self):\n\t\treturn 1\n\n\tdef g(self):\n\t\treturn 2\n",
    "decorated": "@d(\n    1,\n)\ndef f():\n    return 1\n",
    "no newline at the end": "def f():\n    return 1",
    "colons": "def f(a: 'x:y' = {1: 2}, *, b=lambda: 0):\n    return a\n",
    "only a docstring": "def f():\n    '''Text: more.'''\n",
}


def _completed(text: str) -> tuple[str, bool]:
    found = outline(text)
    for node in list(ast.walk(found.tree)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.complete(node)
    return _dump(found.tree), found.whole


def _dump(tree: ast.AST) -> str:
    # Where a compound statement ends depends on a body that may not be there; nothing asks for it.
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.If | ast.Try | ast.ExceptHandler | ast.With | ast.For | ast.While):
            node.end_lineno = node.end_col_offset = 0
    return ast.dump(tree, include_attributes=True)


@pytest.mark.parametrize("name", PIECES)
def test_completed_is_the_same_as_parsed(name: str) -> None:
    text = FILLER + PIECES[name]
    completed, _ = _completed(text)
    assert completed == _dump(ast.parse(text))


def test_bodies_are_left_out() -> None:
    found = outline(FILLER + PIECES["methods"])
    assert not found.whole
    assert len(found.spans) == 2


def test_the_standard_library() -> None:
    folder = Path(ast.__file__).parent
    cut = 0
    for path in [*sorted(folder.glob("*.py"))[::3], Path(outlines.__file__)]:
        text = path.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n")
        completed, whole = _completed(text)
        cut += not whole
        assert completed == _dump(ast.parse(text)), path
    assert cut > 20, f"hardly any file was cut on Python {sys.version}"
