"""What hears of a cancellation: registered callbacks, and a sleep that can be woken."""

from __future__ import annotations

import _thread
import time

from ._events import Event, emit, observers_now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from ._budget import Budget, Clock


class Registration:
    """A callback that waits for `cancel`; closing it ends that. Made by `Budget.on_cancel`."""

    __slots__ = ("_layers", "_once")

    def __init__(self, budget: Budget, callback: Callable[[], None]) -> None:
        # list.pop is atomic: of all that may fire at once (two layers, a late registration) one gets the
        # callback.
        self._once = [callback]
        self._layers: list[Budget] = []
        layer: Budget | None = budget
        while layer is not None:
            layer._callbacks[self] = self._fire
            self._layers.append(layer)
            layer = layer._parent
        if budget.cancelled:  # looked at after registering, so that a cancel between the two is not missed
            self._fire()

    def _fire(self) -> None:
        try:
            callback = self._once.pop()
        except IndexError:
            return
        callback()

    def close(self) -> None:
        """End the registration; the callback will not be called any more."""
        for layer in self._layers:
            layer._callbacks.pop(self, None)
        self._once.clear()

    def __enter__(self) -> Registration:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def interruptible_sleep(budget: Budget, seconds: float, clock: Clock) -> None:
    """Sleep `seconds` on `clock`, or until the budget is cancelled."""
    if observers_now():
        emit(Event("waited", "sleep", budget.name, budget.path, seconds=seconds))
    own_sleep = getattr(clock, "sleep", None)
    if own_sleep is not None:
        own_sleep(seconds)
        return
    # A bare lock, not threading.Event: a signal handler that cancels while its own thread is inside
    # Event.wait would wait for the lock that this thread holds.
    gate = _thread.allocate_lock()
    gate.acquire()
    end = time.monotonic() + seconds  # deadlint: ignore[DL402] the end of the pause, which fits into the budget
    with budget.on_cancel(gate.release):
        while (left := end - time.monotonic()) > 0:
            if gate.acquire(timeout=min(left, 3600.0)):
                return
