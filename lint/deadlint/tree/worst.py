"""The arithmetic of worst cases: one after the other, one or the other, again and again."""

from __future__ import annotations

import math
from collections.abc import Iterable

from deadlint.tree.model import Amount, Order, Pool, Worst

NOTHING = Worst()
UNBOUNDED = Worst(fixed=math.inf)
NOT_KNOWN = Worst(exact=False)


def of_amount(amount: Amount) -> Worst:
    """What a limit lets something take."""
    if amount.pool is not None:
        if amount.seconds is None:
            return NOT_KNOWN
        return Worst(drawn=((amount.pool, amount.seconds),))
    return NOT_KNOWN if amount.seconds is None else Worst(fixed=amount.seconds)


def joined(order: Order, parts: Iterable[Worst]) -> Worst:
    """The worst case of several that follow each other in this order."""
    found = list(parts)
    return _sum(found) if order is Order.SEQUENCE else _longest(found)


def repeated(part: Worst, times: int, pauses: float = 0.0) -> Worst:
    """The worst case of `times` attempts or turns, with all their pauses."""
    if times == 0:
        return NOTHING
    drawn = tuple((pool, seconds * times) for pool, seconds in part.drawn)
    return Worst(part.fixed * times + pauses, drawn, part.exact)


def _sum(parts: list[Worst]) -> Worst:
    pools: dict[Pool, float] = {}
    for part in parts:
        for pool, seconds in part.drawn:
            pools[pool] = pools.get(pool, 0.0) + seconds
    return Worst(sum(part.fixed for part in parts), tuple(pools.items()), all(part.exact for part in parts))


def _longest(parts: list[Worst]) -> Worst:
    """No less than each part, part by part: what draws on a budget may go on to draw on it later."""
    pools: dict[Pool, float] = {}
    for part in parts:
        for pool, seconds in part.drawn:
            pools[pool] = max(pools.get(pool, 0.0), seconds)
    fixed = max((part.fixed for part in parts), default=0.0)
    return Worst(fixed, tuple(pools.items()), all(part.exact for part in parts))
