"""What can only be said of a node where it stands: whether its limit fits into the one around it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from deadlint.tree.model import Kind, Mark, Node, Order
from deadlint.tree.seconds import seconds

_SHOWN_ONCE = 4  # nodes; what is larger than that is shown where it comes first, and named after that


@dataclass(frozen=True, slots=True)
class _Outer:
    """The tightest limit around a place."""

    seconds: float = math.inf
    label: str = ""


@dataclass(eq=False)
class _Judge:
    """Goes down one tree."""

    shown: set[tuple[int, float]] = field(default_factory=set)
    sizes: dict[int, int] = field(default_factory=dict)
    exceeded: set[int] = field(default_factory=set)  # outer limits that one inner limit alone is longer than

    def node(self, node: Node, outer: _Outer) -> Node:
        if node.has(Kind.ELSEWHERE):
            outer = _Outer()
        against = _against(node, outer)
        if against:
            self.exceeded.add(id(outer))
        marks = [*against, *node.marks]
        key = (id(node.children), outer.seconds)
        if key in self.shown and self._size(node) > _SHOWN_ONCE:
            marks.append(Mark(Kind.ABOVE, "what is inside is shown above"))
            return replace(node, marks=tuple(marks), children=())
        self.shown.add(key)
        inner = _tightest(outer, node)
        children = tuple(self.node(child, inner) for child in node.children)
        if inner is outer or id(inner) not in self.exceeded:
            marks[:0] = _within(node)
        return replace(node, marks=tuple(marks), children=children)

    def _size(self, node: Node) -> int:
        known = self.sizes.get(id(node.children))
        if known is None:
            known = self.sizes[id(node.children)] = 1 + sum(self._size(child) for child in node.children)
        return known


def judged(roots: Iterable[Node]) -> tuple[Node, ...]:
    """The roots with the marks that follow from what is around each node; what is repeated is shown once."""
    judge = _Judge()
    return tuple(judge.node(root, _Outer()) for root in roots)


def _label(node: Node) -> str:
    return f"{node.layer} `{node.name}`" if node.name else node.layer


def _tightest(outer: _Outer, node: Node) -> _Outer:
    limit = node.limit.seconds if node.limit is not None else None
    if limit is None or limit <= 0 or limit >= outer.seconds or node.layer == "budget":
        return outer
    return _Outer(limit, _label(node))


def _against(node: Node, outer: _Outer) -> list[Mark]:
    """Whether a limit, or all attempts under it, is longer than the one around it."""
    if node.limit is None or node.limit.seconds is None or math.isinf(outer.seconds):
        return []
    limit, above = node.limit.seconds, f"inside {outer.label}, which ends at {seconds(outer.seconds)}"
    if node.limit.pool is not None and limit <= outer.seconds:
        return []
    # A budget of just the limit around it has no reserve, which is another fault.
    if limit > outer.seconds or (limit == outer.seconds and node.layer != "budget"):
        return [Mark(Kind.INVERTED, f"may run {seconds(limit)} {above}")]
    total = node.worst.seconds
    if node.attempts != 1 and node.layer != "loop" and total > outer.seconds and math.isfinite(total):
        return [Mark(Kind.OUTLASTS, f"{attempts(node)} take {seconds(total)} {above}")]
    return []


def attempts(node: Node) -> str:
    """How the worst case of a node comes about: `4 attempts × 600 s + 180 s of pauses`."""
    limit = node.limit.seconds if node.limit is not None else None
    each = f" × {seconds(limit)}" if limit is not None else ""
    pauses = f" + {seconds(node.pauses)} of pauses" if node.pauses else ""
    return f"{node.attempts} attempts{each}{pauses}" if node.attempts is not None else "attempts"


def _within(node: Node) -> list[Mark]:
    """Whether what is inside adds up to more than the limit."""
    limit = node.limit.seconds if node.limit is not None else None
    inside = node.inside.seconds
    if limit is None or not node.children or inside <= limit or math.isinf(inside):
        return []
    how = "adds up to" if node.order is Order.SEQUENCE and len(node.children) > 1 else "may take"
    return [Mark(Kind.OVERRUN, f"what is inside {how} {seconds(inside)}, and it ends at {seconds(limit)}")]
