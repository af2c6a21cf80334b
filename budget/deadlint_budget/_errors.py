"""What is raised when a deadline has passed or a budget was cancelled."""

from __future__ import annotations

TYPE_CHECKING = False  # `import typing` alone costs 8-13 ms; type checkers know this name
if TYPE_CHECKING:
    from typing import Any, Literal

    Cause = Literal["want", "budget", "reserve"]


def _rebuild(cls: type[DeadlineExceeded], args: tuple[Any, ...], state: dict[str, Any]) -> DeadlineExceeded:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class DeadlineExceeded(TimeoutError):
    """The time of a layer is over.

    `layer` is the path of the layer that fired (`flow/build_tile`): the one whose end came first, the
    outermost where two end together. `path` is where that was noticed. `limit` and `elapsed` are the seconds
    that the layer had and has used, `op` the operation that was stopped or refused. `cause` is `"want"` where
    the operation's own limit was the shortest, `"budget"` where a layer's end was, `"reserve"` where what is
    left of it is set aside.

    It is a `TimeoutError`, so handlers for that catch it. Every such error of this package pickles; the cause
    (`__cause__`) of an error does not travel, as with any exception.
    """

    def __init__(
        self,
        message: str = "",
        *,
        layer: str = "",
        path: str = "",
        limit: float | None = None,
        elapsed: float | None = None,
        op: str = "",
        cause: Cause = "budget",
    ) -> None:
        super().__init__(message)
        self.layer = layer
        self.path = path or layer
        self.limit = limit
        self.elapsed = elapsed
        self.op = op
        self.cause: Cause = cause

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> tuple[Any, ...]:
        # OSError's own __reduce__ replays args into __init__ and loses keywords; BaseException's loses
        # __init__.
        return _rebuild, (type(self), self.args, dict(self.__dict__))


class Cancelled(DeadlineExceeded):
    """The budget, or one above it, was cancelled: `layer` names that one, `reason` is what `cancel` was told."""

    reason: str = ""


def seconds_text(seconds: float) -> str:
    """Seconds as a person writes them: `600 s`, `0.25 s`."""
    return f"{seconds:.3g} s" if abs(seconds) < 100 else f"{seconds:.0f} s"
