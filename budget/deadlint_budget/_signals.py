"""`cancel_on_signals`: a signal cancels the budget, the clean-up has its time, and the process ends as it should."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from types import FrameType, TracebackType
from typing import Any

from ._budget import Budget
from ._errors import Cancelled

_DEFAULT = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name))


class CancelOnSignals:
    """A context manager; made by `cancel_on_signals`. `received` is the first signal that came, None before."""

    def __init__(self, budget: Budget, signals: tuple[int, ...]) -> None:
        self._budget = budget
        self._signals = tuple(signal.Signals(number) for number in signals) or _DEFAULT
        self._before: dict[signal.Signals, Any] = {}
        self.received: signal.Signals | None = None

    def __enter__(self) -> CancelOnSignals:
        if threading.current_thread() is not threading.main_thread():
            words = "signals are handled in the main thread: cancel_on_signals does nothing here, use it there"
            warnings.warn(words, RuntimeWarning, stacklevel=2)
            return self
        for number in self._signals:
            before = signal.getsignal(number)
            # One that is ignored stays so (nohup); one that C code handles cannot be put back.
            if before is not signal.SIG_IGN and before is not None:
                self._before[number] = before
                signal.signal(number, self._handle)
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        before = self._before.get(signal.Signals(number))
        if self.received is not None:
            self._at_once(signal.Signals(number), frame)
            return
        self.received = signal.Signals(number)
        if (outer := _ours(before)) is not None:
            outer._note(self.received)
        self._budget.cancel(self.received.name)

    def _note(self, number: signal.Signals) -> None:
        """The block around: its budget is cancelled at once too, and it ends the process when it is left."""
        if self.received is None:
            self.received = number
            if (outer := _ours(self._before.get(number))) is not None:
                outer._note(number)
            self._budget.cancel(number.name)

    def _at_once(self, number: signal.Signals, frame: FrameType | None) -> None:
        """A second signal: no more clean-up. What handled it before us does, or the system's default."""
        before = self._before.get(number)
        while (outer := _ours(before)) is not None:
            before = outer._before.get(number)
        if callable(before):
            before(number, frame)
        else:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for number, handler in self._before.items():
            if signal.getsignal(number) == self._handle:  # not if the block set one of its own meanwhile
                signal.signal(number, handler)
        if self.received is None or not (error is None or isinstance(error, Cancelled)):
            return
        before = self._before[self.received]
        if _ours(before) is not None:
            return  # the block around has noted it: it ends the process, after its own clean-up
        if callable(before):
            before(self.received, None)  # an orchestrator's, or Python's for Ctrl-C: now that all is clean
        elif before == signal.SIG_DFL:
            raise SystemExit(128 + self.received) from error


def _ours(handler: Any) -> CancelOnSignals | None:
    owner: Any = getattr(handler, "__self__", None)
    return owner if isinstance(owner, CancelOnSignals) else None


def cancel_on_signals(budget: Budget, *signals: int) -> CancelOnSignals:
    """`with cancel_on_signals(budget): work(budget)` turns SIGTERM, SIGINT and SIGHUP (or `signals`) into `cancel`.

    The handler only cancels: the work ends with `Cancelled` at its next check, running children are stopped, and
    clean-up inside the block has its time (`budget.cleanup`). When the block is left the process goes the way it
    would have gone: a handler that was there before (an orchestrator's; Python's for Ctrl-C, which raises
    KeyboardInterrupt) is called, else SystemExit(128 + number) is raised. An exception other than `Cancelled` comes
    out as it is. A second signal does not wait: it goes to the earlier handler, or ends the process.

    Nested blocks are cancelled together. Main thread only (elsewhere a RuntimeWarning, and nothing happens); under
    asyncio it wakes `budget.scope()`. As PID 1 in a container, where SIGTERM has no default, it is what makes the
    signal count at all. A call into C delays any Python handler: bound it with `run`.
    """
    return CancelOnSignals(budget, signals)
