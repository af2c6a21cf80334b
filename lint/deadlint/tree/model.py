"""What a tree of limits is: plain data that `build` makes, `judged` completes and every format prints.

Seconds everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Known(StrEnum):
    """How the seconds of a limit are known."""

    CONSTANT = "constant"  # a number, or a constant that a name leads to
    PARAMETER = "parameter"  # what the call on this path passes
    DEFAULT = "default"  # of a parameter, a setting or a library
    BUDGET = "budget"  # no more than what is left of a budget
    UNKNOWN = "unknown"  # there is a limit; how long is not known


class Order(StrEnum):
    """How the children of a node follow each other."""

    SEQUENCE = "sequence"  # one after the other: their worst cases add up
    EITHER = "either"  # one of them: the longest counts
    TOGETHER = "together"  # at the same time: the longest counts


class Kind(StrEnum):
    """What a mark says of a node."""

    INVERTED = "inverted"  # its limit is no shorter than the one around it
    OUTLASTS = "outlasts"  # its attempts take longer than the limit around it
    OVERRUN = "overrun"  # what is inside adds up to more than its limit
    UNBOUNDED = "unbounded"  # it waits, and nothing bounds it
    PER_READ = "per-read"  # its limit holds for each read, and not for the whole
    UNCOUNTED = "uncounted"  # a loop whose turns are not known
    BUDGET = "budget"  # its limit is derived from a budget
    AGAIN = "again"  # it is being called already: a cycle
    ABOVE = "above"  # what is inside is shown further up
    ELSEWHERE = "elsewhere"  # it runs in another process, and nobody waits for it here
    CUT = "cut"  # it was not followed further


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark, and what it says here, as a sentence without an end."""

    kind: Kind
    text: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands: an absolute path, and the line and column from 1."""

    path: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Pool:
    """A budget that several limits draw on: which one, and how long it is in all (infinite where not known)."""

    name: str
    seconds: float = math.inf


@dataclass(frozen=True, slots=True)
class Amount:
    """How long a limit is at the most: seconds where they are known, how, and from where in words."""

    seconds: float | None
    known: Known
    note: str = ""
    pool: Pool | None = None


@dataclass(frozen=True, slots=True)
class Worst:
    """The longest that something may take: what has its own bound, and what draws on budgets.

    `exact` is False where a part is bounded by something that is not known: then it may take longer.
    """

    fixed: float = 0.0
    drawn: tuple[tuple[Pool, float], ...] = ()
    exact: bool = True

    @property
    def seconds(self) -> float:
        """All of it; infinite where nothing bounds a part of it."""
        return self.fixed + sum(min(seconds, pool.seconds) for pool, seconds in self.drawn)

    @property
    def bounded(self) -> bool:
        """Whether something bounds it."""
        return math.isfinite(self.seconds)


@dataclass(frozen=True, slots=True)
class Node:
    """A function, scope, loop or call, with what is inside."""

    layer: str
    name: str
    place: Place
    called: Place | None = None  # the call that leads here, where `place` is a definition
    limit: Amount | None = None
    attempts: int | None = 1  # None where only `until` bounds them; turns, of a loop
    pauses: float = 0.0  # between all of the attempts
    until: float | None = None  # no attempt begins later
    worst: Worst = Worst()
    inside: Worst = Worst()  # of one attempt, by what the children say
    order: Order = Order.SEQUENCE
    marks: tuple[Mark, ...] = ()
    children: tuple[Node, ...] = ()

    def has(self, *kinds: Kind) -> bool:
        """Whether one of the marks is of one of these kinds."""
        return any(mark.kind in kinds for mark in self.marks)

    def walk(self) -> Iterator[Node]:
        """This node and all below, from the top down."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class Tree:
    """The entries, and the directory that relative paths are relative to."""

    roots: tuple[Node, ...]
    base: str
    files: int = 0  # parsed
    problems: tuple[str, ...] = ()
