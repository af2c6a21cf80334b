"""Limits by the time that has passed, `time.monotonic() - start > LIMIT_S`, where a budget is at hand."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deadlint.index.scopes import Binding, Scope
from deadlint.model import Edit

if TYPE_CHECKING:
    from deadlint.index.module import Module

_NAMES = ("deadline", "layer", "time_limit")
_ORDERS = ast.Gt | ast.GtE | ast.Lt | ast.LtE

IsClock = Callable[[ast.expr], bool]


@dataclass(frozen=True, slots=True)
class _Test:
    """A comparison of the time that has passed with a limit; `over` where it is true once that is reached."""

    node: ast.Compare
    limit: ast.expr
    over: bool


def elapsed(
    module: Module, function: Scope, is_clock: IsClock, layer: Callable[[str], str]
) -> Iterator[tuple[ast.expr, str, tuple[Edit, ...] | None]]:
    """Each start of such a limit, the source of the limit, and the edits that make a layer of it.

    None for the edits where it cannot be one. `layer` gives the source of a layer of some seconds.
    """
    for name, bindings in function.bindings.items():
        binding = bindings[-1] if bindings else None
        if binding is None or binding.kind != "assign" or binding.value is None or not is_clock(binding.value):
            continue
        loads = [n for n in ast.walk(function.node) if isinstance(n, ast.Name) and n.id == name and _is_load(n)]
        tests = [test for load in loads if (test := _test(module, load, is_clock)) is not None]
        limits = {module.source.segment(test.limit) for test in tests}
        if not limits:
            continue
        plain = len(bindings) == 1 and len(limits) == 1 and _is_settled(tests[0].limit, function, binding)
        made = None
        if plain and isinstance(binding.node, ast.Assign) and len(binding.node.targets) == 1:
            text = layer(next(iter(limits)))
            made = _edits(module, function, binding.node, tests, text, is_used=len(tests) < len(loads))
        yield binding.value, next(iter(limits)), made


def _is_load(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def _test(module: Module, start: ast.Name, is_clock: IsClock) -> _Test | None:
    """The comparison that `clock() - start` stands in."""
    passed = module.walker.parents.get(start)
    match passed:
        case ast.BinOp(left=clock, op=ast.Sub(), right=right) if right is start and is_clock(clock):
            pass
        case _:
            return None
    match module.walker.parents.get(passed):
        case ast.Compare(left=left, ops=[op], comparators=[right]) as node if isinstance(op, _ORDERS):
            if left is passed:
                return _Test(node, right, isinstance(op, ast.Gt | ast.GtE))
            return _Test(node, left, isinstance(op, ast.Lt | ast.LtE))
    return None


def _is_settled(limit: ast.expr, function: Scope, start: Binding) -> bool:
    """Whether a limit is at the start what it is later: nothing in it is called, or bound again."""
    for node in ast.walk(limit):
        match node:
            case ast.Call() | ast.Await() | ast.NamedExpr() | ast.Subscript():
                return False
            case ast.Name(id=name):
                later = [b for b in function.bindings.get(name, ()) if b.position >= start.position]
                if later or len(function.bindings.get(name, ())) > 1:
                    return False
    return True


def _edits(
    module: Module, function: Scope, start: ast.Assign, tests: list[_Test], layer: str, *, is_used: bool
) -> tuple[Edit, ...] | None:
    source = module.source
    taken = {n.id for n in ast.walk(function.node) if isinstance(n, ast.Name)}
    name = next((one for one in _NAMES if one not in taken), None)
    line = source.line(start.lineno)
    if name is None or line.strip() != source.segment(start):
        return None
    if is_used:
        _, end = source.extent(start)
        indentation = line[: len(line) - len(line.lstrip())]
        made = Edit(end, end, f"{source.newline}{indentation}{name} = {layer}")
    else:
        made = Edit(*source.extent(start), f"{name} = {layer}")
    asked = [Edit(*source.extent(t.node), f"{name}.expired" if t.over else f"not {name}.expired") for t in tests]
    return (made, *asked)
