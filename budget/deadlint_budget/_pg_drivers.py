"""What the helpers need of a PostgreSQL connection, for each driver: one query, its state, its backend, its socket."""

# ruff: noqa: PLC0415 - imports wait for the call that needs them, so that `import deadlint_budget` is quick

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from importlib import import_module
from typing import Any

# States of a transaction, as all drivers can tell them.
IDLE, OPEN, FAILED = "idle", "open", "failed"


class Driver:
    """One connection. `is_async` says which of `query` and `query_async` works."""

    is_async = False
    placeholder = "%s"

    def __init__(self, conn: Any) -> None:
        self.conn = conn
        self._fd: int | None = None

    def sql(self, text: str) -> str:
        """`text` with each `{}` as this driver's placeholder."""
        return text.replace("{}", self.placeholder)

    def query(self, text: str, values: Sequence[str] = ()) -> tuple[Any, ...] | None:
        """Execute; the first row, None where there are no rows."""
        raise NotImplementedError

    async def query_async(self, text: str, values: Sequence[str] = ()) -> tuple[Any, ...] | None:
        raise NotImplementedError

    @property
    def autocommit(self) -> bool:
        raise NotImplementedError

    def state(self) -> str:
        """IDLE, OPEN or FAILED; OPEN where the driver cannot tell a failed transaction from another."""
        raise NotImplementedError

    def backend(self) -> int | None:
        """The process id of the backend (behind a pooler: not to be trusted)."""
        return None

    def fileno(self) -> int:
        raise NotImplementedError

    def cancel(self) -> None:
        """Ask the server to cancel what runs. May block; called in a thread of its own."""

    def close(self) -> None:
        """Give the connection up: its socket was shut."""

    def keep_socket(self) -> None:
        """Take a descriptor of our own, so that another thread cannot shut one that was closed and used again."""
        try:
            self._fd = os.dup(self.fileno())
        except Exception:
            self._fd = None  # a driver without a socket to show: the server's limit and the cancel remain

    def release_socket(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def shut(self) -> bool:
        """Shut the socket under a call that does not come back; True where there was one."""
        fd = self._fd
        if fd is None:
            return False
        with socket.socket(fileno=os.dup(fd)) as sock:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                return False
        return True


class Psycopg2(Driver):
    def query(self, text: str, values: Sequence[str] = ()) -> tuple[Any, ...] | None:
        extensions: Any = import_module("psycopg2.extensions")  # it has no types of its own
        with self.conn.cursor(cursor_factory=extensions.cursor) as cur:
            cur.execute(self.sql(text), tuple(values) or None)
            return cur.fetchone() if cur.description else None

    @property
    def autocommit(self) -> bool:
        return bool(self.conn.autocommit)

    def state(self) -> str:
        # STATUS: 0 idle, 1 active, 2 in a transaction, 3 in one that failed, 4 unknown
        return {0: IDLE, 3: FAILED, 4: FAILED}.get(self.conn.get_transaction_status(), OPEN)

    def backend(self) -> int | None:
        return int(self.conn.info.backend_pid)

    def fileno(self) -> int:
        return int(self.conn.fileno())

    def cancel(self) -> None:
        self.conn.cancel()

    def close(self) -> None:
        self.conn.close()


class Psycopg(Driver):
    """psycopg 3; the same attributes on its async connection, but for the queries."""

    def query(self, text: str, values: Sequence[str] = ()) -> tuple[Any, ...] | None:
        from psycopg.rows import tuple_row

        with self.conn.cursor(row_factory=tuple_row) as cur:
            # Not prepared: a pooler in transaction mode loses prepared statements.
            cur.execute(self.sql(text), tuple(values) or None, prepare=False)
            return cur.fetchone() if cur.description else None

    @property
    def autocommit(self) -> bool:
        return bool(self.conn.autocommit)

    def state(self) -> str:
        return {0: IDLE, 3: FAILED, 4: FAILED}.get(int(self.conn.info.transaction_status), OPEN)

    def backend(self) -> int | None:
        return int(self.conn.info.backend_pid)

    def fileno(self) -> int:
        return int(self.conn.fileno())

    def cancel(self) -> None:
        # libpq's own cancel, which does not need the connection's lock or, on an async one, its loop.
        self.conn.pgconn.get_cancel().cancel()

    def close(self) -> None:
        # Not conn.close(), which is a coroutine on an async connection: libpq's, under the driver's feet.
        self.conn.pgconn.finish()


class PsycopgAsync(Psycopg):
    is_async = True

    async def query_async(self, text: str, values: Sequence[str] = ()) -> tuple[Any, ...] | None:
        from psycopg.rows import tuple_row

        async with self.conn.cursor(row_factory=tuple_row) as cur:
            await cur.execute(self.sql(text), tuple(values) or None, prepare=False)
            return await cur.fetchone() if cur.description else None


class Asyncpg(Driver):
    is_async = True

    def sql(self, text: str) -> str:
        number = 0
        while "{}" in text:
            number += 1
            text = text.replace("{}", f"${number}", 1)
        return text

    async def query_async(self, text: str, values: Sequence[str] = ()) -> tuple[Any, ...] | None:
        if not values:
            await self.conn.execute(text)
            return None
        row = await self.conn.fetchrow(self.sql(text), *values)
        return None if row is None else tuple(row)

    @property
    def autocommit(self) -> bool:
        return not self.conn.is_in_transaction()  # asyncpg begins none by itself

    def state(self) -> str:
        return OPEN if self.conn.is_in_transaction() else IDLE

    def backend(self) -> int | None:
        return int(self.conn.get_server_pid())

    def fileno(self) -> int:
        conn = getattr(self.conn, "_con", self.conn)  # a pool's proxy holds the connection there
        return int(conn._transport.get_extra_info("socket").fileno())

    def close(self) -> None:
        self.conn.terminate()


class SQLAlchemy(Driver):
    """A SQLAlchemy connection or session, over whichever driver it uses; statements go through SQLAlchemy itself."""

    def __init__(self, conn: Any) -> None:
        super().__init__(conn)
        self._connection: Any = None
        self._inner: Driver | None = None

    def sql(self, text: str) -> str:
        number = 0
        while "{}" in text:
            text = text.replace("{}", f":v{number}", 1)
            number += 1
        return text

    def _statement(self, text: str, values: Sequence[str]) -> tuple[Any, dict[str, str]]:
        from sqlalchemy import text as as_statement

        return as_statement(self.sql(text)), {f"v{number}": value for number, value in enumerate(values)}

    def open(self) -> None:
        """Look up the driver beneath; for a session this takes a connection and begins its transaction."""
        connection = self.conn.connection() if hasattr(self.conn, "get_bind") else self.conn
        self._use(connection, connection.connection)

    def _use(self, connection: Any, fairy: Any) -> None:
        if connection.dialect.name != "postgresql":
            raise TypeError(f"statement_timeout is for PostgreSQL, not {connection.dialect.name}")
        self._connection = connection
        self._dbapi = fairy.dbapi_connection
        self._inner = driver_of(fairy.driver_connection)

    def query(self, text: str, values: Sequence[str] = ()) -> tuple[Any, ...] | None:
        statement, parameters = self._statement(text, values)
        result = self.conn.execute(statement, parameters)
        return tuple(result.fetchone()) if result.returns_rows else None

    @property
    def autocommit(self) -> bool:
        return bool(getattr(self._dbapi, "autocommit", False))

    def state(self) -> str:
        if not self.autocommit and self._inner is not None and self._inner.state() == FAILED:
            return FAILED
        # Asked of the connection: a scoped session has no such method, and a session that was committed has let go.
        return OPEN if self._connection.in_transaction() else IDLE

    def backend(self) -> int | None:
        return None if self._inner is None else self._inner.backend()

    def fileno(self) -> int:
        assert self._inner is not None
        return self._inner.fileno()

    def cancel(self) -> None:
        if self._inner is not None:
            self._inner.cancel()

    def close(self) -> None:
        self._connection.invalidate()


class SQLAlchemyAsync(SQLAlchemy):
    is_async = True

    async def open_async(self) -> None:
        connection = self.conn
        if hasattr(self.conn, "get_bind"):
            connection = await self.conn.connection()
        self._use(connection.sync_connection, await connection.get_raw_connection())

    async def query_async(self, text: str, values: Sequence[str] = ()) -> tuple[Any, ...] | None:
        statement, parameters = self._statement(text, values)
        result = await self.conn.execute(statement, parameters)
        return tuple(result.fetchone()) if result.returns_rows else None

    def close(self) -> None:
        assert self._inner is not None
        self._inner.close()


def driver_of(conn: Any) -> Driver:
    """The driver of a connection, session or cursor; TypeError with what is known for anything else."""
    for kind in type(conn).__mro__:
        name, library = kind.__name__, kind.__module__.split(".")[0]
        match library, name:
            case "psycopg2", "connection":
                return Psycopg2(conn)
            case "psycopg", "Connection":
                return Psycopg(conn)
            case "psycopg", "AsyncConnection":
                return PsycopgAsync(conn)
            case "asyncpg", "Connection" | "PoolConnectionProxy":
                return Asyncpg(conn)
            case "sqlalchemy", "Connection" | "Session" | "scoped_session":
                return SQLAlchemy(conn)
            case "sqlalchemy", "AsyncConnection" | "AsyncSession" | "async_scoped_session":
                return SQLAlchemyAsync(conn)
            case "psycopg2" | "psycopg", "cursor" | "Cursor" | "AsyncCursor" | "ServerCursor" | "BaseCursor":
                return driver_of(conn.connection)
    raise TypeError(
        f"statement_timeout does not know {type(conn).__module__}.{type(conn).__qualname__}: give a "
        "connection of psycopg, psycopg2 or asyncpg, or a connection or session of SQLAlchemy"
    )


def is_database_error(error: BaseException) -> bool:
    """Whether an exception is a driver's (or SQLAlchemy's, or the socket's), and not the program's own."""
    library = type(error).__module__.split(".")[0]
    return library in ("psycopg", "psycopg2", "asyncpg", "sqlalchemy") or isinstance(error, OSError)


def sqlstate_of(error: BaseException) -> str | None:
    """The SQLSTATE of a driver's error, also where SQLAlchemy wraps it."""
    for each in (error, getattr(error, "orig", None), error.__cause__):
        for name in ("sqlstate", "pgcode"):
            if (code := getattr(each, name, None)) is not None:
                return str(code)
    return None
