"""Where each node of a tree is drawn: from when to when on the time axis, and in which row.

Lengths are to scale. What is longer than the limit around it ends there, and the rest of it is kept apart as its
overrun. What nothing bounds takes the room that is left inside of the limit around it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from deadlint.tree import worst
from deadlint.tree.model import Kind, Node, Order

_NOMINAL = 0.05  # of the axis: what something gets at least whose length is not known
_MOST_TICKS = 200
_ROUNDING = 1e-6  # seconds


@dataclass(frozen=True, slots=True)
class Bar:
    """A node as it is drawn. Seconds from the beginning of its entry.

    What begins before the limit around it is over ends there, and `over` is the rest; `after` is what begins later.
    """

    node: Node
    parent: int | None  # the number of its parent's bar
    row: int
    start: float
    end: float
    over: tuple[float, float] | None
    after: bool
    open: str  # "unbounded", "unknown", or empty where the length is known
    ticks: tuple[float, ...] = ()  # where further attempts or turns begin


@dataclass(slots=True)
class Icicle:
    """The bars of one entry, each after its parent, and how long the axis is."""

    bars: list[Bar] = field(default_factory=list)
    seconds: float = 0.0
    rows: int = 0


def icicle_of(root: Node) -> Icicle:
    """The bars of an entry."""
    drawing = _Drawing(_base(root) * _NOMINAL)
    length = drawing.length(root)
    room = length if length is not None else max(drawing.need(root), _base(root)) * 1.1
    drawing.place(root, None, _Stretch(0.0, room))
    bars = _in_rows(drawing.bars)
    ends = [bar.over[1] if bar.over else bar.end for bar in bars]
    return Icicle(bars, max(ends, default=1.0) or 1.0, max((bar.row for bar in bars), default=0) + 1)


def _bar(
    node: Node, parent: int | None, at: _Stretch, start: float, end: float, kind: str, ticks: tuple[float, ...] = ()
) -> Bar:
    if start >= at.bound:
        return Bar(node, parent, 0, start, end, None, True, kind, ticks)
    over = (at.bound, end) if end > at.bound and node.worst.bounded else None
    return Bar(node, parent, 0, start, min(end, at.bound), over, False, kind, ticks)


def _meet(bar: Bar, begin: float, end: float) -> bool:
    """Whether a bar and a stretch have more in common than what rounding makes of an end and a begin."""
    return min(bar.end, end) - max(bar.start, begin) > _ROUNDING


def _in_rows(bars: Sequence[Bar]) -> list[Bar]:
    """The bars, each below its parent in the first row that has room for it and for those beside it."""
    rows = [0] * len(bars)
    taken: dict[int, list[tuple[float, float]]] = defaultdict(list)
    inside: dict[int, list[int]] = defaultdict(list)
    for number, bar in enumerate(bars):
        if bar.parent is not None:
            inside[bar.parent].append(number)

    def put(group: Sequence[int], row: int) -> int:
        while any(_meet(bars[n], begin, end) for n in group for begin, end in taken[row]):
            row += 1
        for number in group:
            rows[number] = row
            taken[row].append((bars[number].start, bars[number].end))
        return row

    def fill(number: int) -> None:
        row = rows[number] + 1
        budgets = [n for n in inside[number] if bars[n].node.layer == "budget"]
        others = [n for n in inside[number] if bars[n].node.layer != "budget"]
        for one in budgets:
            row = put([one], row) + 1
        if bars[number].node.order is Order.SEQUENCE:
            put(others, row)
            for one in others:
                fill(one)
            return
        for one in others:
            row = put([one], row) + 1
            fill(one)

    put([0], 0)
    fill(0)
    return [replace(bar, row=row) for bar, row in zip(bars, rows, strict=True)]


def _base(root: Node) -> float:
    """How long an entry is, as far as that can be said: the measure of what has no length of its own."""
    if root.worst.bounded and root.worst.seconds > 0:
        return root.worst.seconds
    known = [node.worst.seconds for node in root.walk() if node.worst.bounded]
    own = [node.limit.seconds for node in root.walk() if node.limit is not None and node.limit.seconds is not None]
    return max((*known, *own), default=0.0) or 60.0


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Where a node may be drawn: its begin, the room of what nothing bounds, and what ends it besides.

    `bound` is the end of the limits around it: what is longer is an overrun. `most` is where the budget that it draws
    on has nothing left for it: nothing is drawn after that.
    """

    start: float
    room: float
    bound: float = math.inf
    most: float = math.inf


@dataclass(slots=True)
class _Drawing:
    nominal: float
    bars: list[Bar] = field(default_factory=list)

    def length(self, node: Node) -> float | None:
        """How long a node is drawn; None where that is not known, or nothing bounds it."""
        if node.layer == "budget":
            return 0.0
        return node.worst.seconds if node.worst.bounded and node.worst.exact else None

    def sure(self, node: Node) -> float:
        """How long a node is at the least in its worst case: what is bounded in it."""
        if node.worst.bounded:
            return node.worst.seconds
        parts = [self.sure(child) for child in node.children]
        return sum(parts) if node.order is Order.SEQUENCE else max(parts, default=0.0)

    def need(self, node: Node) -> float:
        """The least room that a node needs to be seen with all that is in it."""
        length = self.length(node)
        if length is not None:
            return length
        parts = [self.need(child) for child in node.children]
        inside = sum(parts) if node.order is Order.SEQUENCE else max(parts, default=0.0)
        return max(inside, self.sure(node), self.nominal)

    def place(self, node: Node, parent: int | None, at: _Stretch) -> None:
        """Draw a node and all below it."""
        length = self.length(node)
        end = min(at.start + (at.room if length is None else length), at.most)
        number = len(self.bars)
        turn = self._turn(node, end - at.start)
        kind = "unbounded" if not node.worst.bounded else "unknown" if not node.worst.exact else ""
        last = end if at.start >= at.bound else at.bound
        ticks = tuple(tick for tick in self._ticks(node, at.start, end, turn) if tick < last)
        self.bars.append(_bar(node, parent, at, at.start, end, kind, ticks))
        limit = node.limit.seconds if node.limit is not None and node.layer != "budget" else None
        bound = at.bound if limit is None or limit <= 0 else min(at.bound, at.start + limit)
        most = at.start if node.has(Kind.ELSEWHERE) else at.most  # no time passes here
        self._children(node, number, _Stretch(at.start, turn, bound, most))

    def _turn(self, node: Node, length: float) -> float:
        """How long the first attempt or turn is."""
        limit = node.limit.seconds if node.limit is not None else None
        if node.layer != "loop" and limit is not None and limit > 0:
            return min(limit, length) if length else limit
        if node.attempts is None or node.attempts < 2:
            return length
        if node.worst.bounded and node.inside.bounded and node.inside.seconds > 0:
            return node.inside.seconds
        return length / node.attempts

    def _ticks(self, node: Node, start: float, end: float, turn: float) -> Iterator[float]:
        if node.attempts is None or not 2 <= node.attempts <= _MOST_TICKS or turn <= 0:
            return
        step = turn + (node.pauses / (node.attempts - 1))
        for number in range(1, node.attempts):
            if start + number * step < end:
                yield start + number * step

    def _children(self, node: Node, number: int, at: _Stretch) -> None:
        others = [child for child in node.children if child.layer != "budget"]
        in_order = node.order is Order.SEQUENCE
        shares = list(self._shares(others, at.room)) if in_order else [at.room] * len(others)
        begins = [at.start + (sum(shares[:index]) if in_order else 0.0) for index in range(len(others) + 1)]
        passed = 0
        for child in node.children:
            if child.layer == "budget":
                self._budget(child, number, begins[passed], at)
            else:
                passed += 1
        for child, share, begin in zip(others, shares, begins, strict=False):
            length = self.length(child)
            squeezed = in_order and length is not None and share < length
            most = min(at.most, begin + share) if squeezed else at.most
            self.place(child, number, _Stretch(begin, share, at.bound, most))

    def _budget(self, node: Node, parent: int, start: float, at: _Stretch) -> None:
        """A budget begins where it is made, in a row of its own: what draws on it may stand anywhere after that."""
        limit = node.limit.seconds if node.limit is not None else None
        end = max(at.start + at.room, start) if limit is None else start + limit
        if not node.has(Kind.INVERTED) and start < at.bound:
            end = min(end, at.bound)  # the rest of it is of no use, and that is no fault
        self.bars.append(_bar(node, parent, at, start, end, "unknown" if limit is None else ""))

    def _shares(self, nodes: Sequence[Node], room: float) -> Iterator[float]:
        """The room of each of several that follow each other: what nothing bounds gets what the others leave."""
        sure = list(self._following(nodes))
        unbounded = sum(not node.worst.bounded for node in nodes)
        unknown = sum(node.worst.bounded and not node.worst.exact for node in nodes)
        left = room - sum(sure)
        if left <= 0:  # all of it is over the limit anyway
            left = self.nominal * (unbounded + unknown)
        small = min(self.nominal, left / unknown) if unknown else 0.0
        large = max(left - small * unknown, 0.0) / unbounded if unbounded else 0.0
        for node, least in zip(nodes, sure, strict=True):
            yield least + (large if not node.worst.bounded else 0.0 if node.worst.exact else small)

    def _following(self, nodes: Sequence[Node]) -> Iterator[float]:
        """How long each is at the least, after those before it: what they took of a budget is gone."""
        before = worst.NOTHING
        for node in nodes:
            if not node.worst.bounded:
                yield self.sure(node)
                continue
            after = worst.joined(Order.SEQUENCE, (before, node.worst))
            yield after.seconds - before.seconds
            before = after
