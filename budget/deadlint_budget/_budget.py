"""`Budget`: a deadline on the monotonic clock, with the layers beneath it."""

# ruff: noqa: PLC0415 - imports wait for the call that needs them, so that `import deadlint_budget` is quick

from __future__ import annotations

import time

from . import _ambient
from ._errors import Cancelled, DeadlineExceeded, seconds_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType
    from typing import Any, ParamSpec, Protocol, TypeVar

    from ._attempts import Attempts, StopRetrying
    from ._cancellation import Registration
    from ._errors import Cause
    from ._scope import Scope
    from ._units import Units

    T = TypeVar("T")
    P = ParamSpec("P")
    R = TypeVar("R")

    class Clock(Protocol):
        def __call__(self) -> float: ...


# Less than this is no time to do anything in, and many a callee turns it into 0, which means *no limit* to
# PostgreSQL (0.5 ms becomes 0 there) and to `socket.settimeout`'s neighbours.
FLOOR = 0.001


def valid_seconds(value: float, what: str) -> float:
    """`value` as a float; ValueError for nan, inf and negative, TypeError for what is no number."""
    if isinstance(value, bool) or not hasattr(value, "__float__"):  # numpy's numbers are numbers
        raise TypeError(f"{what} must be a number of seconds, not {type(value).__name__}")
    if not 0 <= value < float("inf"):  # nan compares false
        raise ValueError(f"{what} must be a finite number of seconds, 0 or more, not {value!r}")
    return float(value)


class Budget:
    """A point in time by which a job, or a layer of it, is over.

    Make one at the entry point with `Budget.of`, hand it down, and derive every limit beneath from it:
    `slice` for a foreign `timeout=`, `limit` for a layer of one's own. All times are seconds.
    """

    __slots__ = (
        "__weakref__", "_binding", "_callbacks", "_clock", "_end", "_hard_end", "_name", "_parent", "_reason",
        "_reserve", "_seconds", "_start",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        seconds: float | None,
        *,
        reserve: float = 0.0,
        parent: Budget | None = None,
        clock: Clock = time.monotonic,
        elapsed: float = 0.0,
    ) -> None:
        """Not for users: `Budget.of`, `until` and `limit` say what they mean. `seconds=None`: no end of its own."""
        self._name = name
        self._parent = parent
        self._clock = clock
        self._reserve = reserve
        self._seconds = seconds
        self._reason: str | None = None
        self._callbacks: dict[object, Callable[[], None]] = {}
        now = clock()
        self._start = now - elapsed
        own = float("inf") if seconds is None else self._start + seconds
        above: float = float("inf") if parent is None else parent._end
        self._hard_end: float = min(own, above)
        self._end: float = self._hard_end - reserve
        # Who is to blame when the time is over: the layer whose end comes first, the outermost of two that
        # tie.
        self._binding: Budget = parent._binding if parent is not None and above <= own else self

    # --- making one ----------------------------------------------------------------------------------------

    @classmethod
    def of(cls, seconds: float, name: str = "job", *, reserve: float = 0.0, clock: Clock = time.monotonic) -> Budget:
        """A budget that begins now and ends in `seconds`; the last `reserve` of them are kept for `cleanup`.

        0 is a budget that is already spent. ValueError for nan, infinity, a negative number, or a reserve
        that leaves nothing. `clock` returns seconds and never goes back; where it has a method
        `sleep(seconds)`, that is slept with (for tests).
        """
        seconds = valid_seconds(seconds, "Budget.of")
        return cls(name, seconds, reserve=_valid_reserve(reserve, seconds), clock=clock)

    @classmethod
    def until(
        cls,
        when: dt.datetime | str,
        tz: dt.tzinfo | str | None = None,
        name: str = "job",
        *,
        reserve: float = 0.0,
        clock: Clock = time.monotonic,
    ) -> Budget:
        """A budget that ends at a time of day: a datetime, or `"06:00"` for the next time that it is six.

        The wall clock is read once, here; from then on the monotonic clock counts. A datetime without a zone
        and a time of day are in `tz` (a tzinfo or a name such as `"Europe/Oslo"`), local time by default. A
        moment that has passed gives a spent budget. ValueError for what is no time.
        """
        from ._until import seconds_until

        seconds = max(0.0, seconds_until(when, tz))
        return cls(name, seconds, reserve=_valid_reserve(reserve, seconds, spent=True), clock=clock)

    @classmethod
    def detached(cls, reason: str, seconds: float | None = None, name: str = "detached") -> Budget:
        """A budget for work that is meant to outlive its caller: no deadline but `seconds`, no cancellation from above.

        `reason` is for the reader (and the linter): why this work may go on. Without `seconds`, `remaining()`
        is infinite and `slice()` needs a `want`.
        """
        if not reason:
            raise ValueError("Budget.detached needs a reason: say why this may outlive its caller")
        return cls(name, None if seconds is None else valid_seconds(seconds, "Budget.detached"))

    def limit(self, name: str, want: float | None = None, reserve: float = 0.0) -> Budget:
        """A child budget for a layer of its own: `want` seconds, never longer than this one, the end less `reserve`.

        It is cancelled with this one; cancelling the child leaves this one alone. Does not raise when this
        one is spent: the child is then spent as well, and its first `check` says so. ValueError for a bad
        number.
        """
        want = None if want is None else valid_seconds(want, f"limit({name!r})")
        return Budget(name, want, reserve=valid_seconds(reserve, "reserve"), parent=self, clock=self._clock)

    # --- asking it -----------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._name

    @property
    def parent(self) -> Budget | None:
        return self._parent

    @property
    def path(self) -> str:
        """The layers from the root to this one: `flow/build_tile`."""
        return self._name if self._parent is None else f"{self._parent.path}/{self._name}"

    @property
    def layer(self) -> str:
        """The path of the layer that will end this budget: its own, or that of one above which ends first."""
        return self._binding.path

    @property
    def inverted(self) -> bool:
        """True where this layer asked for more than one above it was ever given."""
        above = self._parent
        while above is not None:
            if self._seconds is not None and above._seconds is not None and self._seconds > above._seconds:
                return True
            above = above._parent
        return False

    def remaining(self) -> float:
        """Seconds until the end, less the reserve; 0 when it is over, never negative."""
        return max(0.0, self._end - self._clock())

    @property
    def elapsed(self) -> float:
        """Seconds since this layer began."""
        return self._clock() - self._start

    @property
    def expired(self) -> bool:
        """True once no time is left (the reserve does not count as time left)."""
        return self._clock() >= self._end

    def check(self, where: str = "") -> None:
        """Raise `DeadlineExceeded` (or `Cancelled`) if the time is over; each later check raises again.

        `where` names the place in the error.
        """
        if (cancelled := self._cancelled_layer()) is not None:
            raise self._cancelled_error(cancelled, where)
        if self.expired:
            raise self._expired_error(where)

    def slice(self, want: float | None = None, reserve: float = 0.0, *, op: str = "") -> float:
        """Seconds for a foreign `timeout=`: what is left less `reserve`, and no more than `want`.

        Always at least a millisecond: where less is left it raises `DeadlineExceeded` (or `Cancelled`), since
        0 is *no limit* to many a callee. ValueError for a bad number, and for a detached budget without
        `want`.
        """
        want = None if want is None else valid_seconds(want, "want")
        room = self._room(valid_seconds(reserve, "reserve"), op)
        if want is not None:
            if want == 0:
                raise self._want_error(op, 0.0, 0.0)
            return max(FLOOR, min(want, room))
        if room == float("inf"):
            raise ValueError(f"`{self.path}` has no deadline: slice needs a want")
        return room

    def sleep(self, seconds: float) -> None:
        """Sleep; woken by `cancel`, which raises `Cancelled`.

        Where `seconds` do not fit into what is left it raises `DeadlineExceeded` at once, without sleeping.
        """
        from ._cancellation import interruptible_sleep

        seconds = valid_seconds(seconds, "sleep")
        self.check("sleep")
        if seconds > self.remaining():
            raise self._expired_error(f"sleep of {seconds_text(seconds)}")
        interruptible_sleep(self, seconds, self._clock)
        if (cancelled := self._cancelled_layer()) is not None:
            raise self._cancelled_error(cancelled, "sleep")

    # --- cancelling ----------------------------------------------------------------------------------------

    def cancel(self, reason: str = "cancelled") -> bool:
        """Cancel this budget and all beneath it; True for the first call. Safe in a signal handler and in any thread.

        Wakes `sleep`, `run` and whatever registered with `on_cancel`.
        """
        # No lock: a signal handler may interrupt the very thread that would hold it. popitem is atomic.
        first = self._reason is None
        if first:
            self._reason = reason
        while self._callbacks:
            try:
                _, callback = self._callbacks.popitem()
            except KeyError:
                break
            _call_quietly(callback)
        return first

    @property
    def cancelled(self) -> bool:
        """True once this budget or one above it was cancelled."""
        return self._cancelled_layer() is not None

    @property
    def cancel_reason(self) -> str | None:
        """What `cancel` was told, here or above; None where nothing was cancelled."""
        layer = self._cancelled_layer()
        return None if layer is None else layer._reason

    def on_cancel(self, callback: Callable[[], None]) -> Registration:
        """Call `callback` once when this budget or one above it is cancelled; at once where it already is.

        Returns a registration to use in a `with` statement (or to `close`), which ends it. The callback runs
        in the thread, or signal handler, that cancels: let it only wake something. What it raises is logged
        and dropped.
        """
        from ._cancellation import Registration

        return Registration(self, callback)

    # --- working under it ----------------------------------------------------------------------------------

    def units(self, items: Iterable[T], *, need: float = FLOOR, quiet: bool = False, where: str = "") -> Units[T]:
        """Iterate over units of work, and stop at the boundary of one when less than `need` seconds are left.

        Stopping raises `UnitsLeft` (a `DeadlineExceeded`), whose `done` counts the finished units and whose
        `left` lists the others: a loop that ends short without a word looks like one that is complete.
        `quiet=True` ends the loop instead; ask `.complete` and `.left` of the returned object then.
        """
        from ._units import Units

        return Units(self, items, valid_seconds(need, "need"), quiet, where)

    def attempts(
        self,
        n: int = 3,
        backoff: float = 0.5,
        *,
        cap: float = 30.0,
        want: float | None = None,
        need: float = FLOOR,
        on: type[BaseException] | tuple[type[BaseException], ...] = Exception,
        jitter: bool = True,
        name: str = "attempt",
    ) -> Attempts:
        """Retries that share this budget: `for attempt in budget.attempts(3): with attempt as b: fetch(budget=b)`.

        Up to `n` attempts, each under a child budget of at most `want` seconds, with a pause between that
        doubles from `backoff` up to `cap` (`jitter`: a random part of it, so that clients do not come in
        step). An attempt that fails with one of `on` is tried again; where the pause and `need` more seconds
        do not fit it raises `DeadlineExceeded` at once, the last error as its cause. Never repeated: what
        `cancel` or the end of this budget stopped. After the last attempt its own error comes out. Set
        `attempt.retry_after` to honour a server.
        """
        from ._attempts import Attempts

        return Attempts(self, n, backoff, cap=cap, want=want, need=need, on=on, jitter=jitter, name=name)

    def stop_retrying(self, need: float = FLOOR) -> StopRetrying:
        """A `stop=` for tenacity: no attempt is begun unless the wait before it and `need` seconds fit.

        Combines with tenacity's own: `stop_after_attempt(5) | budget.stop_retrying(need=2)`.
        """
        from ._attempts import StopRetrying

        return StopRetrying(self, valid_seconds(need, "need"))

    def cleanup(self, seconds: float, name: str = "cleanup") -> Budget:
        """A budget of up to `seconds` for clean-up, also when this one is spent or cancelled.

        It lasts to the hard end (reserve included) of the nearest layer that has a reserve, and is spent
        where that has passed too. Where no layer kept one, all of `seconds` is granted: beyond the deadline,
        since a clean-up that cannot run is worse; plan a reserve instead. Cancelling the work does not cancel
        its clean-up.
        """
        seconds = valid_seconds(seconds, "cleanup")
        layer: Budget | None = self
        while layer is not None and layer._reserve == 0:
            layer = layer._parent
        if layer is not None:
            seconds = max(0.0, min(seconds, layer._hard_end - self._clock()))
        return Budget(f"{self.path}/{name}", seconds, clock=self._clock)

    def scope(self, op: str = "") -> Scope:
        """`async with budget.scope():` an `asyncio.timeout_at` on this deadline, woken by `cancel` too.

        Raises `DeadlineExceeded` or `Cancelled` when the time is over, also where the block swallowed the
        cancellation or blocked the loop, which `asyncio.timeout` alone lets pass without an error (measured).
        """
        from ._scope import Scope

        return Scope(self, op)

    def bind(self, fn: Callable[P, R]) -> Callable[P, R]:
        """`fn` with this budget as the ambient one, for `executor.submit` and `Thread`, which begin outside any.

        Works for coroutine functions, and pickles where `fn` does.
        """
        from ._bind import WithBudget

        return WithBudget(self, fn)

    def __enter__(self) -> Budget:
        """Make this the ambient budget of the block. Leaving it does not check: a result that is there is kept."""
        _ambient.push(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        _ambient.pop(self)

    # --- crossing processes --------------------------------------------------------------------------------

    def to_env(self) -> dict[str, str]:
        """One environment variable, `DEADLINT_BUDGET`, for a child process; never read implicitly there."""
        from ._transport import VARIABLE, to_text

        return {VARIABLE: to_text(self)}

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, name: str = "") -> Budget | None:
        """The budget that `to_env` put there (default: `os.environ`); None where there is none, ValueError for rubbish.

        `name` adds a layer of that name. The cautions about clocks are in `docs/budget.md`.
        """
        import os

        from ._transport import VARIABLE, from_text

        text = (os.environ if environ is None else environ).get(VARIABLE)
        return None if not text else from_text(text, name)

    def to_header(self) -> dict[str, str]:
        """One HTTP header, `Deadlint-Budget`, to send the deadline along with a request."""
        from ._transport import HEADER, to_text

        return {HEADER: to_text(self)}

    @classmethod
    def from_header(cls, headers: Mapping[str, str], name: str = "") -> Budget | None:
        """The budget of a request that came with `to_header`; None without one, ValueError for rubbish."""
        from ._transport import HEADER, from_text

        text = headers.get(HEADER) or headers.get(HEADER.lower())
        return None if not text else from_text(text, name)

    def __reduce__(self) -> tuple[Any, ...]:
        from ._transport import from_layers, layers_of

        return from_layers, (layers_of(self),)

    def __repr__(self) -> str:
        left = "no deadline" if self._end == float("inf") else f"{self.remaining():.3g} s left"
        return f"<Budget {self.path}: {left}{', cancelled' if self.cancelled else ''}>"

    # --- errors, for the helpers of this package -----------------------------------------------------------

    def _room(self, reserve: float, op: str) -> float:
        if (cancelled := self._cancelled_layer()) is not None:
            raise self._cancelled_error(cancelled, op)
        room = self._end - self._clock() - reserve
        if room < FLOOR:
            raise self._expired_error(op, reserve)
        return room

    def _cancelled_layer(self) -> Budget | None:
        found = None
        layer: Budget | None = self
        while layer is not None:
            if layer._reason is not None:
                found = layer
            layer = layer._parent
        return found

    def _path_to(self, op: str) -> str:
        return f"{self.path}/{op}" if op else self.path

    def _expired_error(
        self, op: str = "", reserve: float = 0.0, kind: type[DeadlineExceeded] = DeadlineExceeded
    ) -> DeadlineExceeded:
        """The error of a budget that is over: names the layer that ended it, not the one that noticed."""
        layer = self._binding
        limit, elapsed = layer._seconds or 0.0, layer.elapsed
        kept = reserve or self._reserve or layer._reserve
        cause: Cause = "reserve" if kept and elapsed < limit else "budget"
        if cause == "reserve":
            used = f"{seconds_text(elapsed)} of {seconds_text(limit)} used"
            words = f"`{layer.path}` has only its reserve left: {used}"
        else:
            words = f"`{layer.path}` is out of time: {seconds_text(elapsed)} used of {seconds_text(limit)}"
        path = self._path_to(op)
        if path != layer.path:
            words += f", noticed in `{path}`"
        return kind(words, layer=layer.path, path=path, limit=limit, elapsed=elapsed, op=op, cause=cause)

    def _want_error(
        self, op: str, want: float, elapsed: float, kind: type[DeadlineExceeded] = DeadlineExceeded
    ) -> DeadlineExceeded:
        return want_error(self._path_to(op), op, want, elapsed, kind)

    def _cancelled_error(
        self, layer: Budget, op: str = "", kind: type[DeadlineExceeded] = Cancelled
    ) -> DeadlineExceeded:
        path = self._path_to(op)
        words = f"`{layer.path}` was cancelled ({layer._reason}) after {seconds_text(layer.elapsed)}"
        if path != layer.path:
            words += f", noticed in `{path}`"
        error = kind(words, layer=layer.path, path=path, limit=layer._seconds, elapsed=layer.elapsed, op=op)
        error.__dict__["reason"] = layer._reason
        return error


def want_error(
    path: str, op: str, want: float, elapsed: float, kind: type[DeadlineExceeded] = DeadlineExceeded
) -> DeadlineExceeded:
    """The error of an operation that outlasted its own limit."""
    words = f"`{path}` outlasted its limit of {seconds_text(want)} ({seconds_text(elapsed)} used)"
    return kind(words, layer=path, path=path, limit=want, elapsed=elapsed, op=op, cause="want")


def _valid_reserve(reserve: float, seconds: float, spent: bool = False) -> float:
    reserve = valid_seconds(reserve, "reserve")
    if reserve and reserve >= seconds and not spent:
        raise ValueError(f"a reserve of {seconds_text(reserve)} leaves nothing of {seconds_text(seconds)}")
    return reserve


def _call_quietly(callback: Callable[[], None]) -> None:
    try:
        callback()
    except Exception:
        import logging

        logging.getLogger("deadlint_budget").exception("a callback of on_cancel failed")
