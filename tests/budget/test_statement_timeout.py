"""`statement_timeout` against a real PostgreSQL, with `pg_stat_activity` as the witness."""

# ruff: noqa: PLC0415, PT012, SIM117 - optional libraries; a block under test is more than one line

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from budget_witness import Cluster, as_user, eventually, free_port, need_module, need_program
from deadlint_budget import Budget, Cancelled, DeadlineExceeded, statement_timeout
from deadlint_budget._postgres import setting_ms

Took = Callable[..., Any]
SLOW = "SELECT pg_sleep(20)"
SYNC = ["psycopg2", "psycopg", "sqlalchemy-psycopg2", "sqlalchemy-psycopg", "session"]
ASYNC = ["psycopg-async", "asyncpg", "sqlalchemy-asyncpg", "async-session"]


class Sync:
    """One synchronous connection, whichever library it comes from."""

    def __init__(self, kind: str, cluster: Cluster) -> None:
        self.engine: Any = None
        if kind in ("psycopg2", "psycopg"):
            self.conn = need_module(kind, f"pip install {kind}[binary]").connect(cluster.dsn)
        else:
            need_module("sqlalchemy")
            from sqlalchemy import create_engine
            from sqlalchemy.orm import Session

            driver = "psycopg2" if kind.endswith("2") else "psycopg"
            need_module(driver)
            self.engine = create_engine(cluster.url.replace("postgresql", f"postgresql+{driver}"))
            self.conn = Session(self.engine) if kind == "session" else self.engine.connect()

    def run(self, sql: str) -> Any:
        if self.engine is not None:
            from sqlalchemy import text

            result = self.conn.execute(text(sql))
            return result.scalar() if result.returns_rows else None
        with self.conn.cursor() as cur:
            cur.execute(sql)
            return cur.fetchone()[0] if cur.description else None

    def rollback(self) -> None:
        self.conn.rollback()

    def close(self) -> None:
        self.conn.close()
        if self.engine is not None:
            self.engine.dispose()


def seconds(setting: str) -> int:
    """A setting in whole seconds: some milliseconds went before the server was asked."""
    return round(setting_ms(setting) / 1000)


@pytest.fixture(params=SYNC)
def sync(request: pytest.FixtureRequest, cluster: Cluster) -> Any:
    made = Sync(request.param, cluster)
    yield made
    made.close()


def test_the_server_ends_the_statement(sync: Sync, cluster: Cluster, took: Took) -> None:
    with took(0.29, 0.6), pytest.raises(DeadlineExceeded) as caught, statement_timeout(sync.conn, want=0.3):
        sync.run(f"{SLOW} /* server */")
    assert caught.value.how == "server"
    assert caught.value.sqlstate == "57014"
    assert caught.value.__cause__ is not None
    assert pickle.loads(pickle.dumps(caught.value)).limit == 0.3
    assert cluster.running("/* server */") == 0
    sync.rollback()
    assert sync.run("SELECT 1") == 1


def test_the_budget_is_named(sync: Sync) -> None:
    budget = Budget.of(0.3, "flow")
    with pytest.raises(DeadlineExceeded) as caught, statement_timeout(sync.conn, budget, 9):
        sync.run(SLOW)
    assert caught.value.layer == "flow"
    assert caught.value.path == "flow/statement"


def test_the_old_value_comes_back(sync: Sync) -> None:
    sync.run("SET LOCAL statement_timeout = '7s'")
    with statement_timeout(sync.conn, want=5):
        assert seconds(sync.run("SHOW statement_timeout")) == 5
        with statement_timeout(sync.conn, want=3):
            assert seconds(sync.run("SHOW statement_timeout")) == 3
        with pytest.raises(KeyError), statement_timeout(sync.conn, want=2):
            raise KeyError
        assert seconds(sync.run("SHOW statement_timeout")) == 5
    assert seconds(sync.run("SHOW statement_timeout")) == 7
    assert sync.run("SHOW client_connection_check_interval") == "0"


def test_a_narrower_limit_stays(sync: Sync) -> None:
    sync.run("SET LOCAL statement_timeout = '200ms'")
    with statement_timeout(sync.conn, want=5):
        assert sync.run("SHOW statement_timeout") == "200ms"
    assert sync.run("SHOW statement_timeout") == "200ms"


def test_it_ends_with_the_transaction(sync: Sync) -> None:
    with statement_timeout(sync.conn, want=5):
        sync.run("SELECT 1")
    sync.rollback()
    assert sync.run("SHOW statement_timeout") == "0"


def test_released_savepoint_keeps_nothing(sync: Sync) -> None:
    sync.run("SAVEPOINT a")
    with statement_timeout(sync.conn, want=5):
        sync.run("SELECT 1")
    sync.run("RELEASE a")
    assert sync.run("SHOW statement_timeout") == "0"


def test_an_error_inside_a_savepoint(sync: Sync) -> None:
    sync.run("SAVEPOINT a")
    with pytest.raises(DeadlineExceeded), statement_timeout(sync.conn, want=0.1):
        sync.run(SLOW)
    if sync.engine is None:
        sync.run("ROLLBACK TO a")
        assert sync.run("SHOW statement_timeout") == "0"


def test_a_database_error_in_time_is_left_alone(sync: Sync) -> None:
    with pytest.raises(Exception, match="division") as caught, statement_timeout(sync.conn, want=5):
        sync.run("SELECT 1/0")
    assert not isinstance(caught.value, DeadlineExceeded)


def test_a_failed_transaction_is_refused(sync: Sync) -> None:
    with pytest.raises(Exception, match="division"):
        sync.run("SELECT 1/0")
    with pytest.raises(RuntimeError, match="roll back"), statement_timeout(sync.conn, want=5):
        raise AssertionError("entered")


def test_less_than_a_millisecond_is_not_no_limit(sync: Sync) -> None:
    with statement_timeout(sync.conn, want=0.0014):
        pass  # 1.4 ms: 2 on the server, if there was time to ask


def test_a_spent_budget_sends_nothing(sync: Sync) -> None:
    with pytest.raises(DeadlineExceeded, match="not sent"), statement_timeout(sync.conn, Budget.of(0)):
        raise AssertionError("entered")


def test_several_statements_share_the_limit(sync: Sync, took: Took) -> None:
    """Three of 0.4 s under 0.5 s run 1.2 s on the server's limit alone (measured)."""
    with took(0.5, 1.0), pytest.raises(DeadlineExceeded) as caught:
        with statement_timeout(sync.conn, want=0.5, margin=0.2):
            for _ in range(3):
                sync.run("SELECT pg_sleep(0.4)")
    assert caught.value.how == "cancel"


def test_cancelling_the_budget_cancels_the_statement(sync: Sync, cluster: Cluster, took: Took) -> None:
    budget = Budget.of(30, "flow")
    timer = threading.Timer(0.3, budget.cancel, ["enough"])
    timer.start()
    with took(0.29, 0.9), pytest.raises(Cancelled, match="enough"), statement_timeout(sync.conn, budget):
        sync.run(f"{SLOW} /* cancelled */")
    timer.join()
    assert eventually(lambda: cluster.running("/* cancelled */") == 0)


def test_a_frozen_backend_is_left(sync: Sync, took: Took) -> None:
    pid = sync.run("SELECT pg_backend_pid()")
    try:
        with (
            took(0.5, 1.2),
            pytest.raises(DeadlineExceeded, match=f"pg_terminate_backend\\({pid}\\)") as caught,
        ):
            with statement_timeout(sync.conn, want=0.3, margin=0.4):
                os.kill(pid, signal.SIGSTOP)
                sync.run("SELECT 1")
        assert caught.value.how == "socket"
        assert caught.value.backend == pid
    finally:
        os.kill(pid, signal.SIGCONT)


def test_lock_and_idle_limits(sync: Sync) -> None:
    with statement_timeout(sync.conn, want=5, lock=1, idle=60):
        assert seconds(sync.run("SHOW lock_timeout")) == 1
        assert seconds(sync.run("SHOW idle_in_transaction_session_timeout")) == 5  # cut to what is left
        assert seconds(sync.run("SHOW client_connection_check_interval")) == 1
    assert sync.run("SHOW lock_timeout") == "0"


def test_without_a_bound_nothing_is_sent(sync: Sync) -> None:
    with statement_timeout(sync.conn):
        assert sync.run("SHOW statement_timeout") == "0"


def test_the_ambient_budget_counts(sync: Sync) -> None:
    with Budget.of(0.2, "flow"), pytest.raises(DeadlineExceeded), statement_timeout(sync.conn):
        sync.run(SLOW)


@pytest.mark.parametrize("kind", ["psycopg2", "psycopg"])
def test_autocommit_gets_a_transaction(kind: str, cluster: Cluster) -> None:
    conn = need_module(kind).connect(cluster.dsn)
    conn.autocommit = True
    with conn.cursor() as cur:
        cur.execute("CREATE TEMP TABLE t (x int)")
        with statement_timeout(conn, want=5):
            cur.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(DeadlineExceeded), statement_timeout(conn, want=0.2):
            cur.execute("INSERT INTO t VALUES (2)")
            cur.execute(SLOW)
        cur.execute("SELECT array_agg(x) FROM t")
        assert cur.fetchone() == ([1],)
        cur.execute("SHOW statement_timeout")
        assert cur.fetchone() == ("0",)
    conn.close()


@pytest.mark.parametrize("driver", ["psycopg2", "psycopg"])
def test_autocommit_engine_gets_a_transaction(driver: str, cluster: Cluster) -> None:
    need_module("sqlalchemy")
    need_module(driver)
    from sqlalchemy import create_engine, text

    engine = create_engine(cluster.url.replace("postgresql", f"postgresql+{driver}"), isolation_level="AUTOCOMMIT")
    with engine.connect() as conn:
        with statement_timeout(conn, want=5):
            assert seconds(conn.execute(text("SHOW statement_timeout")).scalar()) == 5
        assert conn.execute(text("SHOW statement_timeout")).scalar() == "0"
        with pytest.raises(DeadlineExceeded), statement_timeout(conn, want=0.2):
            conn.execute(text(SLOW))
    engine.dispose()


def test_a_cursor_and_a_stranger(cluster: Cluster) -> None:
    psycopg2 = need_module("psycopg2")
    conn = psycopg2.connect(cluster.dsn)
    with conn.cursor() as cur, statement_timeout(cur, want=5):
        cur.execute("SHOW statement_timeout")
        assert seconds(cur.fetchone()[0]) == 5
    conn.close()
    with pytest.raises(TypeError, match="does not know"):
        statement_timeout(object(), want=1)


# --- pools, row factories, and other shapes of a connection ------------------------------------------------


def test_row_factories_do_not_matter(cluster: Cluster) -> None:
    psycopg2 = need_module("psycopg2")
    extras = need_module("psycopg2.extras")
    rows = need_module("psycopg.rows")
    for conn in (
        psycopg2.connect(cluster.dsn, cursor_factory=extras.RealDictCursor),
        need_module("psycopg").connect(cluster.dsn, row_factory=rows.dict_row),
    ):
        with conn.cursor() as cur, statement_timeout(conn, want=5):
            cur.execute("SHOW statement_timeout")
            assert seconds(cur.fetchone()["statement_timeout"]) == 5
        conn.close()


def test_a_scoped_session(cluster: Cluster) -> None:
    need_module("sqlalchemy")
    from sqlalchemy import create_engine, text
    from sqlalchemy.orm import scoped_session, sessionmaker

    engine = create_engine(cluster.url.replace("postgresql", "postgresql+psycopg2"))
    scoped = scoped_session(sessionmaker(engine))
    with statement_timeout(scoped, want=5):
        assert seconds(scoped.execute(text("SHOW statement_timeout")).scalar()) == 5
    with pytest.raises(DeadlineExceeded), statement_timeout(scoped, want=0.1):
        scoped.execute(text(SLOW))
    scoped.remove()
    engine.dispose()


def test_a_connection_that_was_shut_leaves_the_pool(cluster: Cluster) -> None:
    need_module("sqlalchemy")
    from sqlalchemy import create_engine, text

    engine = create_engine(cluster.url.replace("postgresql", "postgresql+psycopg2"), pool_size=1, max_overflow=0)
    with engine.connect() as conn:
        pid = conn.execute(text("SELECT pg_backend_pid()")).scalar()
        try:
            with pytest.raises(DeadlineExceeded, match="may still run"), statement_timeout(conn, want=0.2, margin=0.3):
                os.kill(pid, signal.SIGSTOP)
                conn.execute(text("SELECT 1"))
        finally:
            os.kill(pid, signal.SIGCONT)
    with engine.connect() as conn:
        assert conn.execute(text("SELECT 1")).scalar() == 1
    engine.dispose()


def test_asyncpg_pool_and_a_transaction_of_the_block(cluster: Cluster) -> None:
    asyncpg = need_module("asyncpg")

    async def main() -> None:
        async with asyncpg.create_pool(cluster.url, min_size=1, max_size=1) as pool:
            async with pool.acquire() as conn:
                await conn.execute("CREATE TEMP TABLE t (x int)")
                async with statement_timeout(conn, want=5):
                    assert conn.is_in_transaction()
                    await conn.execute("INSERT INTO t VALUES (1)")
                with pytest.raises(DeadlineExceeded):
                    async with statement_timeout(conn, want=0.2):
                        await conn.execute("INSERT INTO t VALUES (2)")
                        await conn.execute(SLOW)
                assert not conn.is_in_transaction()
                async with conn.transaction():
                    async with statement_timeout(conn, want=5):
                        await conn.execute("INSERT INTO t VALUES (3)")
                    assert await conn.fetchval("SHOW statement_timeout") == "0"
                assert await conn.fetchval("SELECT array_agg(x) FROM t") == [1, 3]

    asyncio.run(main())


def test_autocommit_async(cluster: Cluster) -> None:
    psycopg = need_module("psycopg")
    need_module("sqlalchemy.ext.asyncio", "pip install sqlalchemy[asyncio]")
    from sqlalchemy import text
    from sqlalchemy.ext.asyncio import create_async_engine

    async def main() -> None:
        async with await psycopg.AsyncConnection.connect(cluster.dsn, autocommit=True) as conn:
            async with statement_timeout(conn, want=5):
                cur = await conn.execute("SHOW statement_timeout")
                assert seconds((await cur.fetchone())[0]) == 5
            assert conn.info.transaction_status == 0
        engine = create_async_engine(
            cluster.url.replace("postgresql", "postgresql+asyncpg"), isolation_level="AUTOCOMMIT"
        )
        async with engine.connect() as conn:
            async with statement_timeout(conn, want=5):
                assert seconds((await conn.execute(text("SHOW statement_timeout"))).scalar()) == 5
            assert (await conn.execute(text("SHOW statement_timeout"))).scalar() == "0"
        await engine.dispose()

    asyncio.run(main())


def test_cancelling_the_task_reaches_the_server(cluster: Cluster) -> None:
    asyncpg = need_module("asyncpg")

    async def work() -> None:
        conn = await asyncpg.connect(cluster.url)
        try:
            async with statement_timeout(conn, want=60):
                await conn.execute(f"{SLOW} /* task */")
        finally:
            await conn.close()

    async def main() -> None:
        task = asyncio.create_task(work())
        assert await asyncio.to_thread(eventually, lambda: cluster.running("/* task */") == 1, 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert eventually(lambda: cluster.running("/* task */") == 0)


# --- what is deaf to the server's limit, and clients that die ----------------------------------------------


@pytest.fixture
def postgis(geos_cluster: Cluster) -> Cluster:
    assert eventually(lambda: _accepts(geos_cluster), 20), "the cluster did not come back"
    return geos_cluster


def _accepts(cluster: Cluster) -> bool:
    try:
        return cluster.psql("SELECT 1") == "1"
    except subprocess.CalledProcessError:
        return False


DEAF = """
SELECT ST_HausdorffDistance(a, b, 0.00002) /* deaf */ FROM (SELECT
  ST_Boundary(ST_Buffer(ST_Point(0, 0), 10, 2000)) AS a, ST_Boundary(ST_Buffer(ST_Point(1, 1), 10, 2000)) AS b) t
"""


@pytest.mark.parametrize("kind", ["psycopg2", "psycopg"])
def test_a_function_that_is_deaf_to_cancel(kind: str, postgis: Cluster, took: Took) -> None:
    """GEOS does not look for interrupts there: 30 s past a limit of 0.5 s (measured)."""
    sync = Sync(kind, postgis)
    with took(0.9, 1.6), pytest.raises(DeadlineExceeded, match="may still run") as caught:
        with statement_timeout(sync.conn, want=0.5, margin=0.5):
            sync.run(DEAF)
    assert caught.value.how == "socket"
    assert postgis.running("/* deaf */") >= 1  # as the message says
    assert sync.conn.closed


@pytest.mark.parametrize("kind", ["psycopg2", "psycopg"])
def test_interrupted_in_postgis_words(kind: str, postgis: Cluster, took: Took) -> None:
    """PostGIS turns some cancellations into XX000 of its own: our clock decides."""
    sync = Sync(kind, postgis)
    with took(0.2, 1.6), pytest.raises(DeadlineExceeded):
        with statement_timeout(sync.conn, want=0.3, margin=1):
            sync.run("SELECT ST_Area(ST_Union(ST_Buffer(ST_Point(i, i % 7), 3, 64))) FROM generate_series(1, 30000) i")
    sync.close()


@pytest.mark.parametrize("kind", ["psycopg2", "psycopg"])
def test_a_copy_whose_writer_stalls(kind: str, cluster: Cluster) -> None:
    """The server waits for the writer for ever, past statement_timeout (measured); here it is let go."""
    sync = Sync(kind, cluster)
    sync.run(f"CREATE TEMP TABLE stalled_{kind} (x text)")
    command = f"COPY stalled_{kind} FROM STDIN"
    let_go: list[bool] = []

    def row() -> str:
        if not let_go:
            assert eventually(lambda: cluster.running(command) == 1)
            let_go.append(eventually(lambda: cluster.running(command) == 0, 3))
        return "" if len(let_go) == 2 else "row\n" * 100_000

    class Rows:
        def read(self, size: int = -1) -> str:
            return row()[:size]

    with pytest.raises(DeadlineExceeded), statement_timeout(sync.conn, want=0.3, margin=0.4):
        with sync.conn.cursor() as cur:
            if kind == "psycopg2":
                cur.copy_expert(command, Rows())
            else:
                with cur.copy(command) as copy:
                    copy.write("row\n" * 100_000)
                    copy.write(row())
    assert let_go == [True]


KILLED = """
import sys
import {driver}
from deadlint_budget import statement_timeout
conn = {driver}.connect(sys.argv[1])
with statement_timeout(conn, want={want}, check_interval={interval}):
    conn.cursor().execute("SELECT pg_sleep(30) /* orphan */")
"""


@pytest.mark.parametrize("driver", ["psycopg2", "psycopg"])
@pytest.mark.parametrize(("want", "interval"), [(60, 0.3), (1.5, None)])
def test_a_killed_client_leaves_no_backend(driver: str, want: float, interval: float | None, cluster: Cluster) -> None:
    """Without either of the two the query goes on (measured)."""
    need_module(driver)
    code = KILLED.format(driver=driver, want=want, interval=interval)
    client = subprocess.Popen([sys.executable, "-c", code, cluster.dsn], stderr=subprocess.DEVNULL)
    assert eventually(lambda: cluster.running("/* orphan */") == 1, 5)
    client.kill()
    client.wait()
    assert eventually(lambda: cluster.running("/* orphan */") == 0, 2.5)


# --- pgbouncer ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pooled(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster behind a pgbouncer in transaction mode, with a single connection to it."""
    program = need_program("pgbouncer", "pgbouncer")
    port = free_port()
    settings = cluster.folder / "pgbouncer.ini"
    (cluster.folder / "users").write_text('"deadlint" ""\n')
    settings.write_text(
        f"[databases]\npostgres = host=127.0.0.1 port={cluster.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nauth_type = any\nauth_file = {cluster.folder / 'users'}\npool_mode = transaction\n"
        f"default_pool_size = 1\nunix_socket_dir =\n"
    )
    settings.write_text(settings.read_text().replace("postgres = host", "postgres = user=deadlint host"))
    for path in (settings, cluster.folder / "users"):
        path.chmod(0o644)
    process = subprocess.Popen(as_user([program, "-q", settings]), stderr=subprocess.DEVNULL)
    behind = Cluster(cluster.folder, port)
    assert eventually(lambda: _answers(port), 5), "pgbouncer did not start"
    yield behind
    process.kill()
    process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("kind", ["psycopg2", "psycopg", "sqlalchemy-psycopg"])
def test_behind_pgbouncer(kind: str, pooled: Cluster, cluster: Cluster, took: Took) -> None:
    first, second = Sync(kind, pooled), Sync(kind, pooled)
    with statement_timeout(first.conn, want=5):
        assert seconds(first.run("SHOW statement_timeout")) == 5
    first.rollback()
    # The one server connection goes to the next client: nothing leaks to it.
    assert second.run("SHOW statement_timeout") == "0"
    assert second.run("SHOW client_connection_check_interval") == "0"
    second.rollback()
    with took(0.29, 0.7), pytest.raises(DeadlineExceeded) as caught, statement_timeout(first.conn, want=0.3):
        first.run(f"{SLOW} /* pooled {kind} */")
    assert caught.value.how == "server"
    assert cluster.running(f"/* pooled {kind} */") == 0
    first.rollback()
    second.rollback()
    for each in (first, second):
        each.close()


# --- asynchronous ------------------------------------------------------------------------------------------


class Async:
    """One asynchronous connection, whichever library it comes from."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.engine: Any = None

    async def open(self, cluster: Cluster) -> Async:
        if self.kind == "psycopg-async":
            self.conn = await need_module("psycopg").AsyncConnection.connect(cluster.dsn)
        elif self.kind == "asyncpg":
            self.conn = await need_module("asyncpg").connect(cluster.url)
        else:
            need_module("asyncpg")
            need_module("sqlalchemy.ext.asyncio", "pip install sqlalchemy[asyncio]")
            from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

            self.engine = create_async_engine(cluster.url.replace("postgresql", "postgresql+asyncpg"))
            if self.kind == "async-session":
                self.conn = AsyncSession(self.engine)
            else:
                self.conn = await self.engine.connect()
        return self

    async def run(self, sql: str) -> Any:
        if self.engine is not None:
            from sqlalchemy import text

            return (await self.conn.execute(text(sql))).scalar()
        if self.kind == "asyncpg":
            return await self.conn.fetchval(sql)
        cur = await self.conn.execute(sql)
        return (await cur.fetchone())[0]

    async def close(self) -> None:
        await self.conn.close()
        if self.engine is not None:
            await self.engine.dispose()


@pytest.mark.parametrize("kind", ASYNC)
def test_async(kind: str, cluster: Cluster, took: Took) -> None:
    async def main() -> None:
        conn = await Async(kind).open(cluster)
        async with statement_timeout(conn.conn, want=5):
            assert seconds(await conn.run("SHOW statement_timeout")) == 5
            async with statement_timeout(conn.conn, want=2):
                assert seconds(await conn.run("SHOW statement_timeout")) == 2
            assert seconds(await conn.run("SHOW statement_timeout")) == 5
        assert await conn.run("SHOW statement_timeout") == "0"
        with took(0.29, 0.7), pytest.raises(DeadlineExceeded) as caught:
            async with statement_timeout(conn.conn, want=0.3):
                await conn.run(f"{SLOW} /* {kind} */")
        assert (caught.value.how, caught.value.sqlstate) == ("server", "57014")
        assert cluster.running(f"/* {kind} */") == 0
        await conn.close()

    asyncio.run(main())


@pytest.mark.parametrize("kind", ASYNC)
def test_async_cancelled_budget(kind: str, cluster: Cluster, took: Took) -> None:
    async def main() -> None:
        conn = await Async(kind).open(cluster)
        budget = Budget.of(30, "flow")
        asyncio.get_running_loop().call_later(0.3, budget.cancel, "enough")
        with took(0.29, 1.0), pytest.raises(Cancelled, match="enough"):
            async with statement_timeout(conn.conn, budget):
                await conn.run(f"{SLOW} /* cancel {kind} */")
        assert eventually(lambda: cluster.running(f"/* cancel {kind} */") == 0)
        await conn.close()

    asyncio.run(main())


@pytest.mark.parametrize("kind", ASYNC)
def test_async_several_statements(kind: str, cluster: Cluster, took: Took) -> None:
    async def main() -> None:
        conn = await Async(kind).open(cluster)
        with took(0.5, 1.1), pytest.raises(DeadlineExceeded) as caught:
            async with statement_timeout(conn.conn, want=0.5, margin=0.2):
                for _ in range(3):
                    await conn.run("SELECT pg_sleep(0.4)")
        assert caught.value.how == "cancel"
        await conn.close()

    asyncio.run(main())


@pytest.mark.parametrize("kind", ASYNC)
def test_async_frozen_backend(kind: str, cluster: Cluster, took: Took) -> None:
    async def main() -> None:
        conn = await Async(kind).open(cluster)
        pid = await conn.run("SELECT pg_backend_pid()")
        try:
            with took(0.5, 2.0), pytest.raises(DeadlineExceeded) as caught:
                async with statement_timeout(conn.conn, want=0.3, margin=0.4):
                    os.kill(pid, signal.SIGSTOP)
                    await conn.run("SELECT 1")
            assert caught.value.how in ("socket", "cancel")
        finally:
            os.kill(pid, signal.SIGCONT)

    asyncio.run(asyncio.wait_for(main(), 10))


def test_the_wrong_kind_of_with(cluster: Cluster) -> None:
    conn = need_module("psycopg2").connect(cluster.dsn)

    async def main() -> None:
        async with statement_timeout(conn, want=1):
            pass

    with pytest.raises(TypeError, match="synchronous"):
        asyncio.run(main())
    conn.close()
