"""The fixes of DL301 to DL304 against a real PostgreSQL: what runs on before is stopped after, on the server."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import dedent
from typing import Any

import pytest
from deadlint.check import check_source
from deadlint.fix import fix_file
from deadlint.model import Safety
from deadlint.rule import all_rules
from deadlint.settings import Constants, Settings
from deadlint.source import SourceFile

from tests.services import Cluster, need_module, need_program

LIMIT_S = 0.3
SLEEP_S = 0.9
POSTGRES = tuple(rule for rule in all_rules() if rule.code in ("DL301", "DL302", "DL303", "DL304"))
SETTINGS = Settings(constants=Constants(statement=("LIMIT_S", str(LIMIT_S))))


@dataclass(frozen=True)
class Ran:
    """How a run of `work` ended, and after how many seconds."""

    error: BaseException | None
    seconds: float

    @property
    def sqlstate(self) -> str | None:
        """PostgreSQL's code of the error, whichever driver raised it."""
        error: Any = self.error
        while error is not None:
            state = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
            if state:
                return str(state)
            error = getattr(error, "orig", None) or error.__cause__
        return None


CANCELLED = "57014"
SYNTAX_ERROR = "42601"


def fixed(text: str) -> str:
    def check(source: SourceFile) -> Any:
        return check_source(source, SETTINGS, POSTGRES)

    source = SourceFile("m.py", text)
    assert check(source), "there is something to fix"
    result = fix_file(source, check, (Safety.SAFE, Safety.UNSAFE))
    assert not result.remaining, "and nothing is left"
    return result.source.text


def run(text: str, **given: object) -> Ran:
    """Run the function `work` of a module, and time it."""
    names: dict[str, Any] = {}
    exec(compile(text, "m.py", "exec"), names)
    began = time.monotonic()
    error: BaseException | None = None
    try:
        result = names["work"](**given)
        if inspect.isawaitable(result):
            asyncio.run(_awaited(result))
    except Exception as caught:
        error = caught
    return Ran(error, time.monotonic() - began)


async def _awaited(result: Any) -> Any:
    return await result


@pytest.fixture
def dsn(cluster: Cluster) -> str:
    return f"host=127.0.0.1 port={cluster.port} user=deadlint dbname=postgres"


@pytest.fixture
def url(cluster: Cluster) -> Callable[[str], str]:
    """A URL for a driver of SQLAlchemy, or without one."""

    def made(driver: str = "") -> str:
        return f"postgresql{driver}://deadlint@127.0.0.1:{cluster.port}/postgres"

    return made


def running(cluster: Cluster, mark: str) -> int:
    """How many statements with `mark` the server is at."""
    return int(
        cluster.psql(
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()"
            f" AND query LIKE '%{mark}%'"
        )
    )


PSYCOPG = """
import psycopg

def work(dsn):
    with psycopg.connect(dsn) as conn:
        conn.execute("SELECT pg_sleep(0.9) /* by_psycopg */")
"""
PSYCOPG_ASYNC = """
import psycopg

async def work(dsn):
    async with await psycopg.AsyncConnection.connect(dsn) as conn:
        await conn.execute("SELECT pg_sleep(0.9) /* by_psycopg_async */")
"""
PSYCOPG_POOL = """
from psycopg_pool import ConnectionPool

def work(dsn):
    with ConnectionPool(dsn, min_size=1, open=True) as pool, pool.connection() as conn:
        conn.execute("SELECT pg_sleep(0.9) /* by_psycopg_pool */")
"""
PSYCOPG2 = """
import psycopg2

def work(dsn):
    conn = psycopg2.connect(dsn, options="-c application_name=kept")
    try:
        with conn, conn.cursor() as cur:
            cur.execute("SELECT current_setting('application_name')")
            assert cur.fetchone() == ("kept",)
            cur.execute("SELECT pg_sleep(0.9) /* by_psycopg2 */")
    finally:
        conn.close()
"""
ASYNCPG = """
import asyncpg

async def work(url):
    conn = await asyncpg.connect(url)
    try:
        await conn.fetch("SELECT pg_sleep(0.9) /* by_asyncpg */")
    finally:
        await conn.close()
"""
ASYNCPG_INIT = """
import asyncpg

async def limit(conn):
    await conn.execute("SET statement_timeout = '300ms'")

async def work(url):
    async with asyncpg.create_pool(url, min_size=1, max_size=1, init=limit) as pool:
        await pool.fetch("SELECT 1")
        await pool.fetch("SELECT pg_sleep(0.9) /* by_asyncpg_init */")
"""
ASYNCPG_COMMAND = """
import asyncpg

SETTINGS = {"jit": "off"}

async def work(url):
    conn = await asyncpg.connect(url, server_settings=SETTINGS)
    try:
        await conn.fetch("SELECT pg_sleep(0.9) /* by_command */")
    finally:
        await conn.close()
"""
SQLALCHEMY = """
from sqlalchemy import create_engine, text

def work():
    engine = create_engine("{url}", connect_args={{"application_name": "kept"}})
    with engine.connect() as conn:
        conn.execute(text("SELECT pg_sleep(0.9) /* by_sqlalchemy */"))
"""
SQLALCHEMY_ASYNC = """
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

async def work():
    engine = create_async_engine("{url}")
    async with engine.connect() as conn:
        await conn.execute(text("SELECT pg_sleep(0.9) /* by_sqlalchemy_async */"))
"""
LOST_LISTENER = """
from sqlalchemy import create_engine, event, text

engine = create_engine("{url}")

@event.listens_for(engine, "connect")
def limit(connection, record):
    connection.cursor().execute("SET statement_timeout = '300ms'")

def work():
    with engine.connect() as conn:
        conn.execute(text("SELECT 1"))
        conn.rollback()
        conn.execute(text("SELECT pg_sleep(0.9) /* by_lost_listener */"))
"""
ROLLED_BACK = """
import psycopg2

def work(dsn):
    conn = psycopg2.connect(dsn)
    try:
        conn.cursor().execute("SET statement_timeout = '300ms'")
        conn.rollback()
        conn.cursor().execute("SELECT pg_sleep(0.9) /* by_rolled_back */")
    finally:
        conn.close()
"""
ENDED = """
import psycopg

def work(dsn):
    with psycopg.connect(dsn) as conn:
        conn.execute("SET LOCAL statement_timeout = '300ms'")
        conn.commit()
        conn.execute("SELECT pg_sleep(0.9) /* by_ended */")
"""
ZERO = """
import psycopg

def work(dsn):
    with psycopg.connect(dsn) as conn:
        conn.execute("SET LOCAL statement_timeout = 0")
        conn.execute("SELECT pg_sleep(0.9) /* by_zero */")
"""
FRACTION = """
import psycopg

def work(dsn):
    with psycopg.connect(dsn) as conn:
        conn.execute("SET LOCAL statement_timeout = '400us'")
        conn.execute("SELECT pg_sleep(0.9) /* by_fraction */")
"""
OPTIONS_ZERO = """
import psycopg

def work(dsn):
    with psycopg.connect(dsn, options="-c statement_timeout=400us") as conn:
        conn.execute("SELECT pg_sleep(0.9) /* by_options */")
"""
OUTSIDE = """
import psycopg

def work(dsn):
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("SET LOCAL statement_timeout = '300ms'")
        conn.execute("SELECT pg_sleep(0.9) /* by_outside */")
"""
OUTSIDE_SILENT = """
import asyncpg

async def work(url):
    conn = await asyncpg.connect(url)
    try:
        await conn.execute("SELECT set_config('statement_timeout', '300ms', true)")
        await conn.fetch("SELECT pg_sleep(0.9) /* by_silent */")
    finally:
        await conn.close()
"""
RUNS_ON = {name: text for name, text in globals().items() if isinstance(text, str) and "by_" in text and name.isupper()}
NEEDS = ("asyncpg", "psycopg_pool", "psycopg2", "sqlalchemy")
DRIVERS = {
    "SQLALCHEMY": ("+psycopg", "+psycopg2", ""),
    "SQLALCHEMY_ASYNC": ("+asyncpg", "+psycopg"),
    "LOST_LISTENER": ("+psycopg2",),
}


def _programs() -> list[Any]:
    found = []
    for name, text in RUNS_ON.items():
        found += [pytest.param(text, driver, id=f"{name}{driver}".lower()) for driver in DRIVERS.get(name, ("",))]
    return found


@pytest.mark.parametrize(("text", "driver"), _programs())
def test_what_ran_on_is_stopped_on_the_server(
    text: str, driver: str, cluster: Cluster, dsn: str, url: Callable[[str], str]
) -> None:
    need_module("psycopg")
    for word in NEEDS:
        if word in text:
            need_module(word)
    if driver in ("+asyncpg", "+psycopg2"):
        need_module(driver[1:])
    text = dedent(text).lstrip()
    if "{url}" in text:
        text = text.format(url=url(driver))
    given = {"dsn": dsn} if "work(dsn)" in text else {"url": url("")} if "work(url)" in text else {}
    mark = text[text.index("by_") :].split()[0]

    before = run(text, **given)
    assert before.error is None
    assert before.seconds >= SLEEP_S

    after = run(fixed(text), **given)
    assert after.error is not None
    assert after.sqlstate == CANCELLED or isinstance(after.error, TimeoutError)
    assert after.seconds < SLEEP_S - 0.2
    assert running(cluster, mark) == 0


BOUND_PSYCOPG = """
import psycopg

def work(dsn, limit):
    with psycopg.connect(dsn) as conn:
        conn.execute("SET LOCAL statement_timeout = %s", (limit,))
        conn.execute("SELECT pg_sleep(0.9)")
"""
BOUND_OUT_OF_SIGHT = """
import psycopg

def work(dsn, limit):
    params = [limit]
    with psycopg.connect(dsn) as conn:
        conn.execute("SET LOCAL statement_timeout = %s", params)
        conn.execute("SELECT pg_sleep(0.9)")
"""
BOUND_SESSION = """
import psycopg

def work(dsn, limit):
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("SET statement_timeout = %s", (limit,))
        conn.execute("SELECT pg_sleep(0.9)")
"""
BOUND_ASYNCPG = """
import asyncpg

async def work(url, limit):
    conn = await asyncpg.connect(url)
    try:
        async with conn.transaction():
            await conn.execute("SET LOCAL statement_timeout = $1", limit)
            await conn.fetch("SELECT pg_sleep(0.9)")
    finally:
        await conn.close()
"""
BOUND_SQLALCHEMY = """
from sqlalchemy import create_engine, text

def work(limit):
    engine = create_engine("{url}")
    with engine.begin() as conn:
        conn.execute(text("SET LOCAL statement_timeout = :ms"), {{"ms": limit}})
        conn.execute(text("SELECT pg_sleep(0.9)"))
"""
BOUND_SQLALCHEMY_PARAMS = """
from sqlalchemy import create_engine, text

def work(limit):
    engine = create_engine("{url}")
    with engine.begin() as conn:
        conn.execute(text("SET LOCAL statement_timeout = :ms").bindparams(ms=limit))
        conn.execute(text("SELECT pg_sleep(0.9)"))
"""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, id=name.lower())
        for name, text in list(globals().items())
        if name.startswith("BOUND_") and isinstance(text, str)
    ],
)
def test_what_was_refused_bounds_after_the_fix(text: str, dsn: str, url: Callable[[str], str]) -> None:
    for word in ("psycopg", "asyncpg", "sqlalchemy"):
        if f"import {word}" in text or f"from {word}" in text:
            need_module(word)
    text = text.lstrip()
    if "{url}" in text:
        text = text.format(url=url("+psycopg"))
    given: dict[str, object] = {"limit": int(LIMIT_S * 1000)}
    given |= {"dsn": dsn} if "work(dsn" in text else {"url": url("")} if "work(url" in text else {}

    before = run(text, **given)
    assert before.sqlstate == SYNTAX_ERROR

    after = run(fixed(text), **given)
    assert after.sqlstate == CANCELLED
    assert after.seconds < SLEEP_S - 0.2


def test_gdal_hands_the_options_in_a_name_on(dsn: str) -> None:
    program = need_program("ogrinfo", "gdal-bin")
    text = f"from osgeo import ogr\n\nopened = ogr.Open('PG:{dsn}')\n"
    names: dict[str, Any] = {}
    line = fixed(text).splitlines()[-1]
    exec(line.replace("ogr.Open", ""), {"LIMIT_S": LIMIT_S}, names)
    command = [program, "-ro", "-sql", "SELECT pg_sleep(0.9)::text AS slept"]
    began = time.monotonic()
    done = subprocess.run([*command, names["opened"]], capture_output=True, text=True, timeout=30, check=False)
    assert "statement timeout" in done.stderr
    assert (
        "statement timeout"
        not in subprocess.run([*command, f"PG:{dsn}"], capture_output=True, text=True, timeout=30, check=False).stderr
    )
    assert time.monotonic() - began >= SLEEP_S


UNDER_A_BUDGET = """
import psycopg
from deadlint_budget import Budget

def work(dsn):
    budget = Budget.of(0.3)
    with psycopg.connect(dsn) as conn, conn.cursor() as cur:
        cur.execute("SELECT pg_sleep(0.9) /* under_a_budget */")
"""


def test_a_block_under_a_budget_ends_with_it(cluster: Cluster, dsn: str) -> None:
    need_module("psycopg")
    budget = need_module("deadlint_budget")
    text = UNDER_A_BUDGET.lstrip()
    assert run(text, dsn=dsn).error is None
    after = run(fixed(text), dsn=dsn)
    assert isinstance(after.error, budget.DeadlineExceeded)
    assert after.seconds < SLEEP_S - 0.2
    assert running(cluster, "under_a_budget") == 0


STAYS_CLEAN = {
    "psycopg2 begins a transaction in a block, autocommit or not": """
import psycopg2

def work(dsn):
    conn = psycopg2.connect(dsn)
    conn.autocommit = True
    try:
        with conn, conn.cursor() as cur:
            cur.execute("SET LOCAL statement_timeout = '300ms'")
            cur.execute("SELECT pg_sleep(0.9)")
    finally:
        conn.close()
""",
    "statements in one text are one transaction": """
import psycopg

def work(dsn):
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("SET LOCAL statement_timeout = '300ms'; SELECT pg_sleep(0.9)")
""",
    "psycopg2 writes the value in": """
import psycopg2

def work(dsn):
    conn = psycopg2.connect(dsn)
    try:
        with conn, conn.cursor() as cur:
            cur.execute("SET LOCAL statement_timeout = %s", (300,))
            cur.execute("SELECT pg_sleep(0.9)")
    finally:
        conn.close()
""",
    "so does psycopg's client cursor": """
import psycopg

def work(dsn):
    with psycopg.connect(dsn) as conn:
        cur = psycopg.ClientCursor(conn)
        cur.execute("SET LOCAL statement_timeout = %s", (300,))
        cur.execute("SELECT pg_sleep(0.9)")
""",
    "a committed SET survives a rollback": """
import psycopg2

def work(dsn):
    conn = psycopg2.connect(dsn)
    try:
        cur = conn.cursor()
        cur.execute("SET statement_timeout = '300ms'")
        conn.commit()
        cur.execute("SELECT pg_sleep(0.9)")
    finally:
        conn.close()
""",
    "asyncpg runs setup each time": """
import asyncpg

async def limit(conn):
    await conn.execute("SET statement_timeout = '300ms'")

async def work(url):
    async with asyncpg.create_pool(url, min_size=1, max_size=1, setup=limit) as pool:
        await pool.fetch("SELECT 1")
        await pool.fetch("SELECT pg_sleep(0.9)")
""",
    "libpq reads PGOPTIONS": """
import os
import psycopg

def work(dsn):
    os.environ["PGOPTIONS"] = "-c statement_timeout=300"
    try:
        with psycopg.connect(dsn) as conn:
            conn.execute("SELECT pg_sleep(0.9)")
    finally:
        del os.environ["PGOPTIONS"]
""",
}


@pytest.mark.parametrize("claim", STAYS_CLEAN)
def test_what_is_said_to_be_bounded_is(claim: str, dsn: str, url: Callable[[str], str]) -> None:
    text = STAYS_CLEAN[claim].lstrip()
    for word in ("psycopg", "psycopg2", "asyncpg"):
        if f"import {word}\n" in text:
            need_module(word)
    assert not check_source(SourceFile("m.py", text), SETTINGS, POSTGRES)
    ran = run(text, **({"dsn": dsn} if "work(dsn)" in text else {"url": url("")}))
    assert ran.sqlstate == CANCELLED
    assert ran.seconds < SLEEP_S - 0.2
