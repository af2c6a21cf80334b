"""A budget on its way to another process or host.

What travels for each layer is the wall-clock time of its end and the seconds that were left, never a reading
of the monotonic clock: that has another epoch on another host, and in a time namespace also on the same one.
On arrival the earlier of the two counts. So a receiver whose clock is behind cannot be made to run longer
than what was left when it was sent, and one whose clock is ahead loses as much as its clock is ahead.
"""

# ruff: noqa: PLC0415 - imports wait for the call that needs them, so that `import deadlint_budget` is quick

from __future__ import annotations

import time

from ._budget import Budget

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VARIABLE = "DEADLINT_BUDGET"
HEADER = "Deadlint-Budget"
_VERSION = 1


def layers_of(budget: Budget) -> list[list[Any]]:
    """The layers from the root down, as plain data.

    A row: name, seconds, elapsed, seconds left until the hard end, wall-clock time of that end, reserve,
    reason of a cancellation. The three in the middle are None where a layer has no end of its own.
    """
    chain: list[Budget] = []
    layer: Budget | None = budget
    while layer is not None:
        chain.append(layer)
        layer = layer._parent
    wall = time.time()
    rows: list[list[Any]] = []
    for each in reversed(chain):
        left = None if each._seconds is None else each._start + each._seconds - each._clock()
        ends = None if left is None else wall + left
        rows.append([each._name, each._seconds, each.elapsed, left, ends, each._reserve, each._reason])
    return rows


def from_layers(rows: list[list[Any]]) -> Budget:
    """The budget that these layers describe, on this process's clocks."""
    wall = time.time()
    budget: Budget | None = None
    for name, seconds, elapsed, left, ends, reserve, reason in rows:
        used = elapsed if seconds is None else seconds - min(left, ends - wall)
        budget = Budget(name, seconds, reserve=reserve, parent=budget, elapsed=used)
        budget._reason = reason
    if budget is None:
        raise ValueError("a budget has at least one layer")
    return budget


def to_text(budget: Budget) -> str:
    """The layers as ASCII on one line, for an environment variable or a header."""
    import json

    rows = [[round(x, 4) if isinstance(x, float) else x for x in row] for row in layers_of(budget)]
    return json.dumps([_VERSION, *rows], separators=(",", ":"))


def from_text(text: str, name: str = "") -> Budget:
    """The budget of `to_text`, with a layer `name` added where one is given; ValueError for anything else."""
    import json

    try:
        version, *rows = json.loads(text)
        if version != _VERSION:
            raise ValueError(f"version {version!r} is not {_VERSION}")
        budget = from_layers([_valid_row(row) for row in rows])
    except (ValueError, TypeError) as error:
        raise ValueError(f"no budget in {text[:80]!r}: {error}") from None
    return budget.limit(name) if name else budget


def _valid_row(row: list[Any]) -> list[Any]:
    """A row from outside, checked: the text may come from a stranger's request."""
    name, seconds, elapsed, left, ends, reserve, reason = row
    numbers = [elapsed, reserve] + ([] if seconds is None else [seconds, left, ends])
    if not isinstance(name, str) or not (reason is None or isinstance(reason, str)):
        raise ValueError("a name and a reason are text")
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not -1e12 < number < 1e12:
            raise ValueError(f"{number!r} is no number of seconds")
    if reserve < 0 or (seconds is not None and seconds < 0):
        raise ValueError("negative seconds")
    return row
