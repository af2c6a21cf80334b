"""`Budget.units`: work that stops at the boundary of a unit, with what is done kept."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from ._errors import DeadlineExceeded, seconds_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ._budget import Budget

T = TypeVar("T")


class UnitsLeft(DeadlineExceeded):
    """A loop over units ended early: `done` were finished, `left` lists those that were not begun."""

    done: int = 0
    left: list[Any]
    reason: str | None = None  # what `cancel` was told, where that is what stopped it


class Units(Generic[T]):
    """An iterable that asks the budget between units. Made by `Budget.units`; iterate over it once."""

    def __init__(self, budget: Budget, items: Iterable[T], need: float, quiet: bool, where: str) -> None:
        self._budget = budget
        self._items = iter(items)
        self._need = need
        self._quiet = quiet
        self._where = where
        self._held: list[T] = []
        self.done = 0  # units that the loop has finished
        self.complete = False  # True once every unit was handed out and finished

    @property
    def left(self) -> list[T]:
        """The units that were not begun. Reads the rest of the iterable."""
        self._held += self._items
        return list(self._held)

    def __iter__(self) -> Iterator[T]:
        for item in self._items:
            budget = self._budget
            if budget.cancelled or budget.remaining() < self._need:
                self._held.append(item)
                if self._quiet:
                    return
                raise self._error()
            yield item
            self.done += 1
        self.complete = True

    def _error(self) -> UnitsLeft:
        budget = self._budget
        cancelled = budget._cancelled_layer()
        if cancelled is not None:
            stop = budget._cancelled_error(cancelled, self._where, UnitsLeft)
        else:
            stop = budget._expired_error(self._where, self._need, UnitsLeft)
        assert isinstance(stop, UnitsLeft)
        stop.done, stop.left = self.done, self.left
        words = f"{stop}; {stop.done} units are done, {len(stop.left)} are left"
        if cancelled is None and not budget.expired:
            words += f" ({seconds_text(budget.remaining())} remain, a unit needs {seconds_text(self._need)})"
        stop.args = (words,)
        return stop
