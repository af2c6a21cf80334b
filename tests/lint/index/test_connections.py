"""What a call on a database connection is resolved to, however the connection was come by."""

from __future__ import annotations

import pytest

from tests.lint.index.test_names import names


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import psycopg\nc = psycopg.connect()\nc.cursor().execute(1)  # <", "psycopg.Cursor.execute"),
        ("import psycopg\nwith psycopg.connect() as c, c.cursor() as k:\n    k.execute(1)  # <", "psycopg.Cursor.execute"),
        ("from psycopg_pool import ConnectionPool\np = ConnectionPool('')\nwith p.connection() as c:\n    c.execute(1)  # <",
         "psycopg.Connection.execute"),
        ("from psycopg2.extensions import connection\ndef f(c: connection):\n    c.cursor().execute(1)  # <", "psycopg2.cursor.execute"),
        ("import asyncpg\nasync def f(p: asyncpg.pool.Pool):\n    async with p.acquire() as c:\n        await c.fetch(1)  # <",
         "asyncpg.Connection.fetch"),
        ("from asyncpg.pool import PoolConnectionProxy\ndef f(c: PoolConnectionProxy):\n    c.fetch(1)  # <", "asyncpg.Connection.fetch"),
        ("from sqlalchemy import create_engine\nwith create_engine('').begin() as c:\n    c.execute(1)  # <",
         "sqlalchemy.Connection.execute"),
        ("from sqlalchemy.orm import sessionmaker\nS = sessionmaker()\nwith S() as s:\n    s.execute(1)  # <", "sqlalchemy.orm.Session.execute"),
        ("from sqlalchemy.orm import scoped_session\ns = scoped_session(1)\ns.execute(1)  # <", "sqlalchemy.orm.Session.execute"),
        ("from sqlmodel import Session\nwith Session(1) as s:\n    s.execute(1)  # <", "sqlalchemy.orm.Session.execute"),
        ("from sqlalchemy.ext.asyncio import async_sessionmaker\nS = async_sessionmaker(1)\nasync def f():\n"
         "    async with S.begin() as s:\n        await s.execute(1)  # <", "sqlalchemy.ext.asyncio.AsyncSession.execute"),
    ],
)  # fmt: skip
def test_follows_connections(code: str, expected: str) -> None:
    assert expected in names(code, "# <")
