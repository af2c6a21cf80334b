"""Passing the budget on: a keyword at each call, a `partial` where a function is handed over by itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from deadlint import header
from deadlint.migrate.reach import Means, Reach, Reached, holder
from deadlint.migrate.uses import How, Use
from deadlint.model import Edit, Import
from deadlint.region import parse_call, replace_call, rewritten

_PARTIAL = ("functools", "partial")


@dataclass(frozen=True, slots=True)
class Pass:
    """One use that is given the budget, in the file at `path`."""

    path: str
    line: int
    caller: Reached
    callee: Reached
    edits: tuple[Edit, ...]
    imports: tuple[Import, ...] = ()


def passes(reach: Reach) -> Iterator[Pass]:
    """Every use of a function that takes the budget, where its caller has one and does not pass it yet."""
    for callee in reach.holders:
        if not callee.parameter:
            continue
        for use in reach.uses.by_function.get(callee.scope, ()):
            caller = holder(use, reach)
            if caller is not None and caller.budget and not _is_given(use, callee):
                yield _pass(use, caller, callee)


def _is_given(use: Use, callee: Reached) -> bool:
    """Whether the call passes the parameter already, or may."""
    assert isinstance(use.node, ast.Call)
    if callee.means is not Means.GIVEN:
        return False
    if any(k.arg in (callee.parameter, None) for k in use.node.keywords) or any(
        isinstance(a, ast.Starred) for a in use.node.args
    ):
        return True
    definition = callee.scope.definition
    assert isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef)
    positional = [a.arg for a in (*definition.args.posonlyargs, *definition.args.args)]
    if callee.parameter not in positional:
        return False
    place = positional.index(callee.parameter) - (1 if callee.scope.owner is not None else 0)
    handed = 1 if use.argument is not None and use.how is How.CALL else 0
    return len(use.node.args) - handed > place


def _pass(use: Use, caller: Reached, callee: Reached) -> Pass:
    source = use.module.source
    assert isinstance(use.node, ast.Call)
    keyword = f"{callee.parameter}={caller.budget}"
    if use.how is How.CALL:
        node = rewritten(parse_call(source, use.node), add=[(callee.parameter, caller.budget)])
        return Pass(source.path, use.node.lineno, caller, callee, (replace_call(source, use.node, node),))
    assert use.argument is not None
    wanted = header.free_import(use.module.tree, use.module.bound_names, *_PARTIAL)
    start, end = source.extent(use.argument)
    edits = (Edit(start, start, f"{wanted.alias or wanted.name}("), Edit(end, end, f", {keyword})"))
    return Pass(source.path, use.node.lineno, caller, callee, edits, (wanted,))
