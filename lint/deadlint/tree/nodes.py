"""Making nodes: groups whose worst case follows from their children, and limits and attempts around one."""

from __future__ import annotations

import ast
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from deadlint.index.retries import Retries
from deadlint.tree import worst
from deadlint.tree.model import Amount, Kind, Known, Mark, Node, Order, Place, Worst

if TYPE_CHECKING:
    from deadlint.index.module import Module
    from deadlint.index.scopes import Scope


def place_of(module: Module, node: ast.expr | ast.stmt) -> Place:
    """Where a node stands."""
    offset = module.source.offset(node.lineno, node.col_offset)
    span = module.source.span(offset, offset)
    return Place(os.path.abspath(module.source.path), span.line, span.column)


def definition_of(function: Scope, module: Module) -> Place:
    """Where a function is defined: its `def`, below its decorators."""
    node = function.definition
    assert isinstance(node, ast.stmt | ast.expr), "functions and lambdas only"
    return place_of(module, node)


def group(layer: str, name: str, place: Place, children: Sequence[Node], order: Order = Order.SEQUENCE) -> Node:
    """A node whose worst case is that of its children."""
    inside = worst.joined(order, (child.worst for child in children))
    return Node(layer, name, place, worst=inside, inside=inside, order=order, children=tuple(children))


def either(place: Place, branches: Sequence[list[Node]]) -> list[Node]:
    """Nodes for branches of which one is taken: what is in the only one that has any, else one that holds all."""
    full = [branch for branch in branches if branch]
    if len(full) < 2:
        return full[0] if full else []
    parts: list[Node] = []
    for branch in full:
        match branch:
            case [Node(layer="either", children=inner)]:  # `elif`
                parts += inner
            case [one]:
                parts.append(one)
            case _:
                parts.append(group("branch", "", branch[0].place, branch))
    return [group("either", "", place, parts, Order.EITHER)]


def limited(node: Node, limit: Amount | None, tried: Retries | None = None) -> Node:
    """`node` under a limit of its own, and with its attempts."""
    attempt = worst.of_amount(limit) if limit is not None else node.inside
    marks = node.marks
    if limit is not None and limit.known is Known.BUDGET:
        marks = (*marks, Mark(Kind.BUDGET, limit.note))
    if tried is None:
        return replace(node, limit=limit, worst=attempt, marks=marks)
    return replace(
        node,
        limit=limit,
        attempts=tried.attempts,
        pauses=tried.pauses,
        until=tried.begins_until,
        worst=_tried(attempt, tried),
        marks=marks,
    )


def _tried(attempt: Worst, tried: Retries) -> Worst:
    """The worst case of all attempts: by their number, or until one may begin, whichever is less."""
    found = []
    if tried.attempts is not None:
        found.append(worst.repeated(attempt, tried.attempts, tried.pauses))
    if tried.begins_until is not None:
        found.append(worst.joined(Order.SEQUENCE, (Worst(tried.begins_until), attempt)))
    return min(found, key=lambda one: one.seconds, default=attempt)
