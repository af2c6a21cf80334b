"""The bound of one operation: what its own `want` and the budget leave it, and the error when that is over."""

from __future__ import annotations

import time

from ._ambient import current_budget
from ._budget import FLOOR, valid_seconds, want_error
from ._errors import Cancelled, DeadlineExceeded
from ._events import Event, emit, observers_now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._budget import Budget
    from ._events import Kind

# The part of a budget's room that is kept for stopping what runs in it, where no reserve of the budget's
# covers that.
STOPPING_SHARE = 0.1


class Bound:
    """When an operation must be over. Real waiting is done on `time.monotonic`, whatever the budget's clock is.

    `end` is the monotonic time at which it is stopped, `kill_by` the one by which nothing of it may be left;
    both None where nothing bounds it. `seconds` is what it was given.
    """

    __slots__ = ("_wants", "budget", "end", "kill_by", "op", "reserve", "seconds", "start", "want")

    def __init__(
        self, op: str, budget: Budget | None, want: float | None, *, grace: float = 0.0, reserve: float = 0.0
    ) -> None:
        """Raise `DeadlineExceeded` or `Cancelled` where there is no time to begin with.

        `budget` None means the ambient one. `grace` is set aside at the end of the budget (not of `want`):
        all of it where the budget has a reserve to take it from, else at most a tenth of what is left.
        """
        self.op = op
        self.budget = current_budget() if budget is None else budget
        self.want = None if want is None else valid_seconds(want, "want")
        self.reserve = reserve
        self.start = now = time.monotonic()
        self.seconds: float | None = self.want
        self.end: float | None = None
        self.kill_by: float | None = None
        self._wants = True  # whether the want, not the budget, is what ends it
        if self.budget is not None:
            self._cut(self.budget, grace, reserve)
        if self.seconds is not None:
            if self.seconds < FLOOR:
                raise self.error()
            self.end = now + self.seconds

    def _cut(self, budget: Budget, grace: float, reserve: float) -> None:
        room = budget._room(reserve, self.op)
        if room == float("inf"):
            return
        until_hard = budget._hard_end - budget._clock()
        self.kill_by = self.start + until_hard
        if grace:
            room = min(room, until_hard - min(grace, STOPPING_SHARE * room))
        if self.want is None or room <= self.want:
            self._wants = False
            self.seconds = room

    def remaining(self) -> float | None:
        """Seconds left, 0 when it is over; None where nothing bounds it."""
        return None if self.end is None else max(0.0, self.end - time.monotonic())

    @property
    def expired(self) -> bool:
        return self.end is not None and time.monotonic() >= self.end

    @property
    def cancelled(self) -> bool:
        return self.budget is not None and self.budget.cancelled

    def over(self) -> bool:
        return self.cancelled or self.expired

    def check(self) -> None:
        if self.over():
            raise self.error()

    def error(
        self,
        kind: type[DeadlineExceeded] = DeadlineExceeded,
        cancelled_kind: type[DeadlineExceeded] = Cancelled,
    ) -> DeadlineExceeded:
        """The error that says who ended it: a cancellation, the want, or a layer of the budget."""
        budget, op = self.budget, self.op
        if budget is not None and (layer := budget._cancelled_layer()) is not None:
            return budget._cancelled_error(layer, op, cancelled_kind)
        if budget is not None and not self._wants:
            stopping = budget._reserve or self.reserve or STOPPING_SHARE
            return budget._expired_error(op, stopping, kind)
        path = budget._path_to(op) if budget is not None else op
        return want_error(path, op, self.want or 0.0, time.monotonic() - self.start, kind)

    @property
    def path(self) -> str:
        return self.op if self.budget is None else self.budget._path_to(self.op)


def bounded(
    op: str,
    budget: Budget | None,
    want: float | None,
    kinds: tuple[type[DeadlineExceeded], type[DeadlineExceeded]],
    *,
    note: str,
    grace: float = 0.0,
    **fields: Any,
) -> Bound:
    """The bound of an operation.

    Where there is no time for it: the first of `kinds`, the second after a cancellation, with `note` (what was
    not done) and `fields`.
    """
    try:
        return Bound(op, budget, want, grace=grace)
    except DeadlineExceeded as refused:
        error = kinds[isinstance(refused, Cancelled)](f"{refused}; {note}")
        error.__dict__.update({**refused.__dict__, **fields})
        raise error from None


class Watched:
    """Tells observers when an operation begins and how it ends; nothing where nobody observes."""

    __slots__ = ("_bound", "_helper", "_observed")

    def __init__(self, helper: str, bound: Bound) -> None:
        self._helper = helper
        self._bound = bound

    def __enter__(self) -> None:
        self._observed = bool(observers_now())
        if self._observed:
            emit(Event("started", self._helper, self._bound.op, self._bound.path))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: object) -> None:
        if not self._observed:
            return
        bound = self._bound
        seconds = time.monotonic() - bound.start
        if not isinstance(error, DeadlineExceeded):
            emit(Event("finished", self._helper, bound.op, bound.path, seconds=seconds))
            return
        how: Kind = "cancelled" if isinstance(error, Cancelled) else "timed out"
        event = Event(how, self._helper, bound.op, bound.path, seconds=seconds, layer=error.layer, limit=error.limit)
        emit(event)
