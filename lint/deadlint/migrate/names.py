"""Names that last: functions keep theirs while the text of their file changes."""

from __future__ import annotations

import ast
import os.path
from collections.abc import Iterator
from typing import NamedTuple

from deadlint.index.scopes import Scope
from deadlint.project import package_of


class FunctionName(NamedTuple):
    """A function of the project: the absolute path of its file, and its dotted name there (`Client.fetch`)."""

    path: str
    qualified: str

    @property
    def last(self) -> str:
        """The name without what it stands in."""
        return self.qualified.rpartition(".")[2]

    def holds(self, qualified: str) -> bool:
        """Whether a function of the same file is this one, or stands in it."""
        return qualified == self.qualified or qualified.startswith(f"{self.qualified}.")


def name_of(function: Scope) -> FunctionName:
    """The lasting name of a function."""
    return FunctionName(function.module.path or "", function.qualified_name)


def dotted_module(path: str) -> str:
    """The dotted name of the module at a path, as its package has it."""
    package, stem = package_of(path), os.path.basename(path).removesuffix(".py")
    if stem == "__init__":
        return package
    return f"{package}.{stem}" if package else stem


class Extent(NamedTuple):
    """The lines of a function, decorators included."""

    qualified: str
    first: int
    last: int


def extents(tree: ast.AST, prefix: str = "") -> Iterator[Extent]:
    """The functions in a tree, what stands in others behind these."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                qualified = f"{prefix}.{node.name}" if prefix else node.name
                if not isinstance(node, ast.ClassDef):
                    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                    yield Extent(qualified, first, node.end_lineno or node.lineno)
                yield from extents(node, qualified)
            case _:
                yield from extents(node, prefix)


def function_at(found: list[Extent], line: int) -> str | None:
    """The dotted name of the innermost function that a line lies in; None outside any."""
    holding = [one for one in found if one.first <= line <= one.last]
    return holding[-1].qualified if holding else None
