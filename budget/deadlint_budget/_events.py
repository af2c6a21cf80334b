"""What the helpers tell observers. Nothing is built and nothing is imported where nobody observes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Literal

    Kind = Literal["started", "finished", "timed out", "cancelled", "terminated", "waited"]


class Event:
    """One thing that happened. Fields that do not apply to a kind are None.

    `kind`: `started`, `finished` (in time), `timed out`, `cancelled`, `terminated` (a tree was stopped), `waited` (a
    sleep or a pause between attempts). `helper` is the function, `op` what it works on, `path` the layers down to it.
    `seconds` is how long it took (for `terminated`: from SIGTERM to the end of the tree), `layer` and `limit` what
    fired, `signal` the last signal that a terminated tree was sent.
    """

    __slots__ = ("helper", "kind", "layer", "limit", "op", "path", "seconds", "signal")

    def __init__(
        self,
        kind: Kind,
        helper: str,
        op: str,
        path: str,
        *,
        seconds: float | None = None,
        layer: str | None = None,
        limit: float | None = None,
        signal: int | None = None,
    ) -> None:
        self.kind: Kind = kind
        self.helper = helper
        self.op = op
        self.path = path
        self.seconds = seconds
        self.layer = layer
        self.limit = limit
        self.signal = signal

    def __repr__(self) -> str:
        fields = ", ".join(
            f"{name}={value!r}" for name in sorted(self.__slots__) if (value := getattr(self, name)) is not None
        )
        return f"Event({fields})"


class Observation:
    """A registered observer; closing it, or leaving its `with` block, ends that."""

    def __init__(self, callback: Callable[[Event], object]) -> None:
        self._callback = callback

    def close(self) -> None:
        global observers  # noqa: PLW0603 - one tuple, replaced as a whole, is read without a lock
        observers = tuple(each for each in observers if each is not self)

    def __call__(self, event: Event) -> None:
        try:
            self._callback(event)
        except Exception:
            import logging  # noqa: PLC0415

            logging.getLogger("deadlint_budget").exception("an observer failed")

    def __enter__(self) -> Observation:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


# Asked by the helpers before anything else is done for an event.
observers: tuple[Observation, ...] = ()


def observe(callback: Callable[[Event], object]) -> Observation:
    """Call `callback(event)` for what every helper does, in all threads, until the returned object is closed.

    It runs in the thread of the helper, so let it be quick; what it raises is logged and dropped. `Summary`,
    `log_events` and `otel_events` are ready ones.
    """
    global observers  # noqa: PLW0603
    made = Observation(callback)
    observers = (*observers, made)
    return made


def observers_now() -> tuple[Observation, ...]:
    """Who observes; empty in the usual case, which is all that it costs then."""
    return observers


def emit(event: Event) -> None:
    for each in observers:
        each(event)
