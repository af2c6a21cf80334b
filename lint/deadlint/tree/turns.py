"""How often a loop goes round at the most, where that can be read from it."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from math import ceil

from deadlint.index.scopes import dotted
from deadlint.index.values import Sequence as Items
from deadlint.tree.amounts import Frame, amount


def number(node: ast.expr, frame: Frame) -> int | None:
    """The whole number that an expression is on this path; None where it is not known to be one."""
    found = amount(node, frame.scope, frame)
    if found is None or found.seconds is None or found.seconds != int(found.seconds):
        return None
    return int(found.seconds)


def of_iterated(iterated: ast.expr, frame: Frame) -> int | None:
    """How often a loop over something goes round; None where that is not known."""
    match iterated:
        case ast.Call(func=ast.Name(id="range"), args=[_, *_] as args, keywords=[]):
            found = [number(arg, frame) for arg in args]
            whole = [n for n in found if n is not None]
            return max(0, len(range(*whole))) if len(whole) == len(args) and 0 not in whole[2:] else None
        case ast.Call(func=ast.Name(id="enumerate" | "reversed" | "sorted"), args=[inner, *_]):
            return of_iterated(inner, frame)
    if _may_grow(iterated, frame):
        return None
    values = frame.module.resolver.evaluate(iterated, frame.scope)
    lengths = {len(value.items) if isinstance(value, Items) and not value.open else None for value in values}
    return (next(iter(lengths)) or None) if len(lengths) == 1 else None


def _may_grow(iterated: ast.expr, frame: Frame) -> bool:
    """Whether a list that a name stands for may hold more by now than where it was made."""
    name = dotted(iterated)
    if not name:
        return False
    changed = rf"\b{re.escape(name)}(?:\.(?:append|extend|insert|pop|remove|clear)\b|\s*\+=)"
    return re.search(changed, frame.module.source.text) is not None


def of_while(node: ast.While, frame: Frame) -> int | None:
    """How often `while tries < 5` goes round, where each turn that does not leave the loop counts `tries` up."""
    match node.test:
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Lt() | ast.LtE() as op], comparators=[most]):
            first, last = _first(name, node, frame), number(most, frame)
            step = _step(name, node)
            if first is None or last is None or step is None:
                return None
            beyond = last + 1 if isinstance(op, ast.LtE) else last
            return max(0, ceil((beyond - first) / step))
    return None


def _first(name: str, loop: ast.While, frame: Frame) -> int | None:
    """The constant that a counter has before the loop."""
    before = [b for b in frame.scope.bindings.get(name, ()) if b.position <= (loop.lineno, loop.col_offset)]
    match before[-1].value if before else None:
        case ast.Constant(value=int() as value) if value is not True and value is not False:
            return value
    return None


def _step(name: str, loop: ast.While) -> int | None:
    """By how much each turn counts up; None where a turn may not, or where the counter is set otherwise."""
    steps = set()
    for node in ast.walk(loop):
        match node:
            case ast.Continue():
                return None
            case ast.AugAssign(target=ast.Name(id=counted), op=ast.Add(), value=ast.Constant(value=int() as step)):
                if counted == name:
                    steps.add(step)
            case ast.AugAssign(target=ast.Name(id=counted)) | ast.Name(id=counted, ctx=ast.Store()) if counted == name:
                if not isinstance(node, ast.Name) or not _is_counted(node, loop):
                    return None
    if len(steps) != 1 or not _counts(loop.body, name):
        return None
    step = steps.pop()
    return step if step > 0 else None


def _is_counted(target: ast.Name, loop: ast.While) -> bool:
    """Whether a name is stored to by a `+=`."""
    return any(isinstance(node, ast.AugAssign) and node.target is target for node in ast.walk(loop))


def _counts(body: Sequence[ast.stmt], name: str) -> bool:
    """Whether each way through a block counts up or leaves the loop."""
    for statement in body:
        match statement:
            case ast.AugAssign(target=ast.Name(id=counted)) if counted == name:
                return True
            case ast.Return() | ast.Raise() | ast.Break():
                return True
            case ast.Try(body=inner, handlers=[_, *_] as handlers, orelse=orelse, finalbody=final):
                done = _counts([*inner, *orelse], name)
                if _counts(final, name) or (done and all(_counts(handler.body, name) for handler in handlers)):
                    return True
            case ast.If(body=inner, orelse=orelse) if _counts(inner, name) and _counts(orelse, name):
                return True
            case ast.With(body=inner) | ast.AsyncWith(body=inner) if _counts(inner, name):
                return True
    return False
