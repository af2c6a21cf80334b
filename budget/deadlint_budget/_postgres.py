"""`statement_timeout`: statements are bounded on the server, with a backstop for what is deaf to that."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Any

from ._bound import Bound, Watched, bounded
from ._budget import Budget, valid_seconds
from ._errors import Cancelled, DeadlineExceeded
from ._pg_drivers import (
    FAILED,
    IDLE,
    OPEN,
    Driver,
    SQLAlchemy,
    SQLAlchemyAsync,
    driver_of,
    is_database_error,
    sqlstate_of,
)

MARGIN = 1.0
MAX_MS = 2147483647
# The server's clock starts with the statement and counts whole milliseconds; ours started a little before.
EARLY = 0.005


class StatementDeadlineExceeded(DeadlineExceeded):
    """A statement outlasted its limit; the driver's error is the cause (`__cause__`).

    `how` says what ended it: `"server"` (its statement_timeout), `"cancel"` (our cancel request, or the
    driver's) or `"socket"` (the connection was shut and is closed). `sqlstate` is the driver's, None where it
    had none. `backend` is the process id of the server's process. Where `how` is `"socket"` that process may
    still run, and the message says how to end it.
    """

    how: str = "server"
    sqlstate: str | None = None
    backend: int | None = None


class StatementCancelled(StatementDeadlineExceeded, Cancelled):
    """A statement ended because its budget was cancelled."""


def milliseconds(seconds: float) -> str:
    """For PostgreSQL: at least 1, since 0 (and 0.5, which becomes 0) is *no limit* there; at most what it takes."""
    return str(min(MAX_MS, max(1, math.ceil(seconds * 1000))))


_UNITS = {"ms": 1.0, "s": 1e3, "min": 6e4, "h": 3.6e6, "d": 8.64e7, "us": 1e-3, "": 1.0}


def setting_ms(text: str) -> float:
    """A time setting as `current_setting` prints it (`0`, `500ms`, `5s`, `1min`), in milliseconds."""
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    return float(digits) * _UNITS[text[len(digits) :]]


class StatementTimeout:
    """A context manager, sync or async as the connection is. Made by `statement_timeout`."""

    def __init__(
        self,
        conn: Any,
        budget: Budget | None,
        want: float | None,
        *,
        lock: float | None,
        idle: float | None,
        check_interval: float | None,
        margin: float,
    ) -> None:
        self._driver = driver_of(conn)
        self._budget = budget
        self._want = want
        self._margin = valid_seconds(margin, "margin")
        self._asked = {
            "lock_timeout": None if lock is None else valid_seconds(lock, "lock"),
            "idle_in_transaction_session_timeout": None if idle is None else valid_seconds(idle, "idle"),
        }
        self._check_interval = None if check_interval is None else valid_seconds(check_interval, "check_interval")
        self._old: dict[str, str] = {}
        self._own_transaction = False
        self._bound: Bound | None = None
        self._watch: Watch | None = None
        self._timeout: asyncio.Timeout | None = None

    # --- the two ways in and out ---------------------------------------------------------------------------

    def __enter__(self) -> StatementTimeout:
        if self._driver.is_async:
            raise TypeError("this connection is asynchronous: write `async with statement_timeout(…)`")
        if not self._begin():
            return self
        try:
            if isinstance(self._driver, SQLAlchemy):
                self._driver.open()
            self._start_watch()
            for text, values in self._entry():
                self._entered(self._driver.query(text, values))
        except BaseException as error:
            self._end(error)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._bound is None:
            return
        try:
            for text, values in self._leaving(error):
                self._driver.query(text, values)
        except Exception as failed:
            self._end(error or failed)
            if error is None:
                raise
        self._end(error)

    async def __aenter__(self) -> StatementTimeout:
        if not self._driver.is_async:
            raise TypeError("this connection is synchronous: write `with statement_timeout(…)`")
        if not self._begin():
            return self
        try:
            if isinstance(self._driver, SQLAlchemyAsync):
                await self._driver.open_async()
            self._start_watch()
            await self._start_scope()
            for text, values in self._entry():
                self._entered(await self._driver.query_async(text, values))
        except BaseException as error:
            await self._end_async(error)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._bound is None:
            return
        try:
            for text, values in self._leaving(error):
                await self._driver.query_async(text, values)
        except Exception as failed:
            await self._end_async(error or failed)
            if error is None:
                raise
        await self._end_async(error)

    # --- entering ------------------------------------------------------------------------------------------

    def _begin(self) -> bool:
        kinds = (StatementDeadlineExceeded, StatementCancelled)
        bound = bounded("statement", self._budget, self._want, kinds, note="not sent")
        if bound.end is None:
            return False  # nothing bounds it: no want, no budget, and none ambient
        self._bound = bound
        self._watched = Watched("statement_timeout", bound)
        self._watched.__enter__()
        return True

    def _start_watch(self) -> None:
        assert self._bound is not None
        if self._driver.state() == FAILED:
            raise RuntimeError("the transaction has failed and takes no statement: roll back before statement_timeout")
        self._driver.keep_socket()
        self._watch = Watch(self._driver, self._bound, self._margin)

    async def _start_scope(self) -> None:
        """Cancel the task a little after the server's limit: drivers pass that on to the server."""
        assert self._bound is not None
        assert self._bound.end is not None
        loop = asyncio.get_running_loop()
        left = self._bound.end - time.monotonic()
        timeout = asyncio.timeout_at(loop.time() + left + self._margin / 2)
        await timeout.__aenter__()
        self._timeout = timeout

        def fire() -> None:
            if not timeout.expired():
                timeout.reschedule(loop.time())

        assert self._watch is not None
        self._watch.on_cancelled = lambda: loop.call_soon_threadsafe(fire)

    def _entry(self) -> Any:
        """The statements that begin the block: one round trip, one more for BEGIN on an autocommit connection."""
        assert self._bound is not None
        driver = self._driver
        if (driver.autocommit and driver.state() == IDLE) or (isinstance(driver, SQLAlchemy) and driver.autocommit):
            # SET LOCAL needs a transaction: on its own it is a warning and no effect, and set_config not even
            # that.
            self._own_transaction = True
            yield "BEGIN", ()
        left = self._bound.remaining() or 0.0
        wanted = {"statement_timeout": left}
        wanted |= {name: min(value, left) for name, value in self._asked.items() if value is not None}
        names = [*wanted]
        values = [milliseconds(value) for value in wanted.values()]
        # The old value is read before the new one is set: a select list is evaluated from left to right.
        columns = [f"current_setting('{name}'), set_config('{name}', {{}}, true)" for name in names]
        if self._check_interval is not None:
            name = "client_connection_check_interval"
            columns.append(
                f"current_setting('{name}', true), CASE WHEN current_setting('{name}', true) = '0' "
                f"AND version() ~ 'linux' THEN set_config('{name}', {{}}, true) END"
            )
            names.append(name)
            values.append(milliseconds(self._check_interval))
        self._names, self._values = names, values
        yield "SELECT " + ", ".join(columns), values
        # A limit that was there already and is narrower stays.
        narrower = {
            name: old
            for name, old in self._old.items()
            if name in wanted and 0 < setting_ms(old) < setting_ms(values[names.index(name)])
        }
        for name in narrower:
            del self._old[name]
        if narrower:
            yield _set_sql(narrower), [*narrower.values()]

    def _entered(self, row: tuple[Any, ...] | None) -> None:
        if row is None or self._old:
            return
        for position, name in enumerate(self._names):
            old, new = row[2 * position], row[2 * position + 1]
            if new is not None:
                self._old[name] = str(old)

    # --- leaving -------------------------------------------------------------------------------------------

    def _leaving(self, error: BaseException | None) -> Any:
        """The statements that end the block: the old values, which RELEASE of a savepoint would not bring back."""
        assert self._watch is not None
        self._watch.finishing()
        if self._watch.shut:
            return
        if self._own_transaction:
            if self._driver.state() != IDLE or isinstance(self._driver, SQLAlchemy):
                yield ("COMMIT" if error is None else "ROLLBACK"), ()
        elif self._old and self._driver.state() == OPEN:
            yield _set_sql(self._old), [*self._old.values()]

    def _end(self, error: BaseException | None) -> None:
        """Stop watching, and raise the deadline's error where that is what `error` comes from."""
        watch = self._watch
        if watch is None:
            self._watched.__exit__(None, error, None)
            return
        watch.stop()
        self._driver.release_socket()
        if watch.shut:
            # it is dead; what its end says is of no interest
            with suppress(Exception):
                self._driver.close()
        mapped = None if error is None else self._mapped(error)
        self._watched.__exit__(None, mapped or error, None)
        if mapped is not None:
            raise mapped from error

    async def _end_async(self, error: BaseException | None) -> None:
        if self._timeout is not None:
            timeout, self._timeout = self._timeout, None
            try:
                await timeout.__aexit__(None if error is None else type(error), error, None)
            except TimeoutError as fired:
                fired.__cause__ = fired.__cause__ or error
                error = fired
        self._end(error)

    def _mapped(self, error: BaseException) -> DeadlineExceeded | None:
        """The deadline's error, by our own clock, whatever the driver says; None where there was time.

        PostGIS raises XX000 as well as 57014, and a shut socket is an OperationalError.
        """
        bound, watch = self._bound, self._watch
        assert bound is not None
        assert watch is not None
        if not is_database_error(error) or isinstance(error, DeadlineExceeded):
            return None
        left = bound.remaining()
        if not (bound.cancelled or watch.fired or (left is not None and left <= EARLY)):
            return None
        mapped = bound.error(StatementDeadlineExceeded, StatementCancelled)
        assert isinstance(mapped, StatementDeadlineExceeded)
        mapped.how = (
            "socket" if watch.shut else "cancel" if watch.fired or isinstance(error, TimeoutError) else "server"
        )
        mapped.sqlstate = sqlstate_of(error)
        mapped.backend = watch.backend
        if watch.shut:
            words = f"{mapped}; the server did not answer and the connection is closed"
            if watch.backend is not None:
                words += (
                    f"; backend {watch.backend} may still run: SELECT pg_terminate_backend({watch.backend}), "
                    "and where it is deaf to that (inside GEOS) kill -9 it, which restarts the cluster"
                )
            mapped.args = (words,)
        return mapped


def _set_sql(values: dict[str, str]) -> str:
    return "SELECT " + ", ".join(f"set_config('{name}', {{}}, true)" for name in values)


class Watch:
    """A thread that cancels at limit + margin/2, and at once with the budget, and shuts the socket at + margin.

    Measured: a backend that is frozen, and one that is inside ST_HausdorffDistance, hold their client for
    ever and for 30 s under a limit of 0.5 s; with this it is limit + margin.
    """

    def __init__(self, driver: Driver, bound: Bound, margin: float) -> None:
        self._driver = driver
        self._bound = bound
        self._margin = margin
        self.backend = driver.backend()
        self.fired = False
        self.shut = False
        self.on_cancelled: Any = None
        self._finishing = False
        self._gate = threading.Lock()
        self._gate.acquire()
        self._stopped = False
        budget = bound.budget
        self._registration = None if budget is None else budget.on_cancel(self._wake)
        self._thread = threading.Thread(target=self._watch, name="deadlint-statement", daemon=True)
        self._thread.start()

    def _wake(self) -> None:
        # it is awake already
        with suppress(RuntimeError):
            self._gate.release()

    def finishing(self) -> None:
        """The block is over: nothing is to be cancelled any more, but what ends it may hang as well."""
        self._finishing = True

    def stop(self) -> None:
        self._stopped = True
        self._wake()
        if self._registration is not None:
            self._registration.close()
        self._thread.join(timeout=0.5)

    def _watch(self) -> None:
        end = self._bound.end
        assert end is not None
        if not self._wait_until(end + self._margin / 2):
            return
        if not self._finishing:
            self.fired = True
            threading.Thread(target=self._cancel, name="deadlint-cancel", daemon=True).start()
            if self.on_cancelled is not None:
                self.on_cancelled()
        rest = self._margin if self._bound.cancelled else self._margin / 2
        if self._wait_until(time.monotonic() + rest, cancellable=False):
            self.fired = True
            self.shut = self._driver.shut()

    def _wait_until(self, moment: float, cancellable: bool = True) -> bool:
        """True at `moment` or at a cancellation, False when the block is over."""
        while (left := moment - time.monotonic()) > 0:
            self._gate.acquire(timeout=left)
            if self._stopped:
                return False
            if cancellable and self._bound.cancelled:
                return True
        return not self._stopped

    def _cancel(self) -> None:
        # the connection has ended meanwhile; the socket is next where it has not
        with suppress(Exception):
            self._driver.cancel()


def statement_timeout(
    conn: Any,
    budget: Budget | None = None,
    want: float | None = None,
    *,
    lock: float | None = None,
    idle: float | None = None,
    check_interval: float | None = 1.0,
    margin: float = MARGIN,
) -> StatementTimeout:
    """`with statement_timeout(conn, budget, want):` bounds on the server what the block sends to PostgreSQL.

    `conn` is a connection of psycopg, psycopg2 or asyncpg, or a connection or session of SQLAlchemy; `async
    with` for the asynchronous ones. Each statement gets what is left at the start of the block (`want`
    seconds at most, never less than 1 ms, a narrower limit that is set already stays), and the block as a
    whole ends by then too: at the limit + `margin`/2 the statement is cancelled, at + `margin` the socket is
    shut, for what is deaf to the server's limit.

    The setting is local to the transaction and the old value is restored at the end, also inside savepoints.
    An autocommit connection gets a transaction for the block: committed at its end, rolled back on an error
    (so nothing that refuses to run in one, such as VACUUM). `lock` and `idle` set `lock_timeout` and
    `idle_in_transaction_session_timeout` (seconds) as well; `check_interval` sets
    `client_connection_check_interval` where the server has it (PostgreSQL 14, Linux), so that a backend
    notices within that time that this process is gone. None leaves any of them alone.

    Raises `StatementDeadlineExceeded` (`StatementCancelled`), the driver's error as its cause; RuntimeError
    in a transaction that has failed; TypeError for another kind of connection. With no `want` and no budget
    it does nothing.
    """
    return StatementTimeout(conn, budget, want, lock=lock, idle=idle, check_interval=check_interval, margin=margin)
