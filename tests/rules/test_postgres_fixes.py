"""What the fixes of DL301 to DL304 make of a session and of its statements: before and after."""

from __future__ import annotations

from textwrap import dedent

import pytest
from deadlint.check import check_source
from deadlint.fix import fix_file
from deadlint.model import Finding, Level, Safety
from deadlint.rule import all_rules
from deadlint.settings import Constants, Settings
from deadlint.source import SourceFile

POSTGRES = tuple(rule for rule in all_rules() if rule.code in ("DL301", "DL302", "DL303", "DL304"))
EVERY_SAFETY = (Safety.SAFE, Safety.UNSAFE)


def findings(text: str, settings: Settings | None = None) -> list[Finding]:
    return check_source(SourceFile("m.py", dedent(text)), settings or Settings(), POSTGRES)


def fixed(text: str, settings: Settings | None = None, allowed: tuple[Safety, ...] = EVERY_SAFETY) -> str:
    settings = settings or Settings()
    source = SourceFile("m.py", dedent(text))
    return fix_file(source, lambda s: check_source(s, settings, POSTGRES), allowed).source.text


def body(text: str, settings: Settings | None = None) -> str:
    """The last line of the fixed text."""
    return fixed(text, settings).rstrip("\n").rpartition("\n")[2].strip()


def only(text: str) -> Finding:
    found = findings(text)
    assert len(found) == 1
    return found[0]


# --- DL301 -----------------------------------------------------------------------------------------------------


def test_a_connection_gets_a_named_limit_in_its_options() -> None:
    before = '''\
        """Reads parcels."""
        import psycopg

        conn = psycopg.connect("dbname=gis", port=1)  # tiles
    '''
    after = '''\
        """Reads parcels."""
        import psycopg

        STATEMENT_LIMIT_S = 60

        conn = psycopg.connect("dbname=gis", port=1, options=f"-c statement_timeout={STATEMENT_LIMIT_S}s")  # tiles
    '''
    assert fixed(before) == dedent(after)


def test_the_configured_constant_is_used() -> None:
    settings = Settings(constants=Constants(statement=("DB_LIMIT", "2.5")))
    text = fixed("import psycopg2\n\nconn = psycopg2.connect('dbname=gis')\n", settings)
    assert "DB_LIMIT = 2.5\n" in text
    assert 'options=f"-c statement_timeout={DB_LIMIT}s"' in text


def test_a_budget_in_scope_is_passed_on() -> None:
    before = """\
        import psycopg
        from deadlint_budget import Budget


        def read(dsn, budget: Budget):
            with (
                psycopg.connect(dsn) as conn,  # the tile database
                conn.cursor() as cur,
            ):
                cur.execute("SELECT 1")
    """
    after = """\
        import psycopg
        from deadlint_budget import Budget, statement_timeout


        def read(dsn, budget: Budget):
            with (
                psycopg.connect(dsn) as conn, statement_timeout(conn, budget),  # the tile database
                conn.cursor() as cur,
            ):
                cur.execute("SELECT 1")
    """
    assert fixed(before) == dedent(after)


@pytest.mark.parametrize(
    ("call", "after"),
    [
        ("psycopg.connect(D, options='-c search_path=gis')",
         "psycopg.connect(D, options='-c search_path=gis' + f\" -c statement_timeout={STATEMENT_LIMIT_S}s\")"),
        ("psycopg.connect(D, **{'autocommit': True})",
         "psycopg.connect(D, options=OPTIONS, **{'autocommit': True})"),
        ("psycopg_pool.ConnectionPool(D)",
         "psycopg_pool.ConnectionPool(D, kwargs={\"options\": OPTIONS})"),
        ("psycopg_pool.ConnectionPool(D, kwargs={})",
         "psycopg_pool.ConnectionPool(D, kwargs={\"options\": OPTIONS})"),
        ("psycopg_pool.ConnectionPool(D, kwargs=dict(autocommit=True))",
         "psycopg_pool.ConnectionPool(D, kwargs=dict(autocommit=True, options=OPTIONS))"),
        ("asyncpg.create_pool(D)",
         "asyncpg.create_pool(D, server_settings=SETTINGS)"),
        ("asyncpg.create_pool(D, server_settings=S)",
         "asyncpg.create_pool(D, server_settings=S, command_timeout=STATEMENT_LIMIT_S)"),
        ("sqlalchemy.create_engine('postgresql://db/gis')",
         "sqlalchemy.create_engine('postgresql://db/gis', connect_args={\"options\": OPTIONS})"),
        ("sqlalchemy.create_engine('postgresql+asyncpg://db/gis')",
         "sqlalchemy.create_engine('postgresql+asyncpg://db/gis', connect_args={\"server_settings\": SETTINGS})"),
    ],
)  # fmt: skip
def test_the_limit_goes_where_the_driver_takes_it(call: str, after: str) -> None:
    after = after.replace("OPTIONS", 'f"-c statement_timeout={STATEMENT_LIMIT_S}s"').replace(
        "SETTINGS", '{"statement_timeout": f"{STATEMENT_LIMIT_S}s"}'
    )
    head = "import asyncpg, psycopg, psycopg_pool, sqlalchemy\n\nD = 'dbname=gis'\nS = {'jit': 'off'}\n"
    assert body(f"{head}made = {call}\n") == f"made = {after}"


def test_a_block_in_autocommit_is_not_put_into_one_transaction() -> None:
    text = """\
        import psycopg
        from deadlint_budget import Budget

        def build(dsn, budget: Budget):
            with psycopg.connect(dsn, autocommit=True) as conn:
                conn.execute("SELECT 1")
    """
    assert "conn, statement_timeout" not in fixed(text)
    assert "options=" in fixed(text)


def test_a_dict_of_several_lines_keeps_its_comments() -> None:
    before = """\
        from sqlalchemy import create_engine

        engine = create_engine(
            "postgresql+psycopg://db/gis",
            connect_args={
                # the proxy is slow to answer
                "connect_timeout": 5,  # seconds
            },
        )
    """
    after = """\
        from sqlalchemy import create_engine

        STATEMENT_LIMIT_S = 60

        engine = create_engine(
            "postgresql+psycopg://db/gis",
            connect_args={
                # the proxy is slow to answer
                "options": f"-c statement_timeout={STATEMENT_LIMIT_S}s",
                "connect_timeout": 5,  # seconds
            },
        )
    """
    assert fixed(before) == dedent(after)


@pytest.mark.parametrize(
    "call",
    [
        "psycopg.connect(\"dbname=gis options='-c search_path=gis'\")",  # the keyword would replace these
        "sqlalchemy.create_engine(os.environ['DATABASE_URL'])",  # perhaps of another database
        "sqlalchemy.ext.asyncio.create_async_engine('postgresql://db/gis')",  # perhaps of another driver
    ],
)
def test_a_fix_that_may_break_is_only_shown(call: str) -> None:
    found = only(f"import os, psycopg, sqlalchemy, sqlalchemy.ext.asyncio\n\nmade = {call}\n")
    assert found.fix is not None
    assert found.fix.safety is Safety.DISPLAY


def test_a_dataset_gets_the_limit_in_its_name() -> None:
    text = "from osgeo import gdal\n\nHOST = 'db'\ngdal.OpenEx(f'PG:dbname=gis host={HOST}', gdal.OF_VECTOR)\n"
    name = "f'PG:dbname=gis host={HOST}' + f\" options='-c statement_timeout={STATEMENT_LIMIT_S}s'\""
    assert body(text) == f"gdal.OpenEx({name}, gdal.OF_VECTOR)"


def test_what_cannot_be_repaired_in_place_offers_no_fix() -> None:
    assert only("from osgeo import ogr\n\nogr.Open(\"PG:dbname=gis options='-c geqo=off'\")\n").fix is None
    assert only("import pandas as pd\n\npd.read_sql('SELECT 1', 'postgresql://db/gis')\n").fix is None


def test_the_server_may_set_the_limit() -> None:
    text = "import psycopg\n\nconn = psycopg.connect('dbname=gis')\n"
    assert findings(text)
    assert not findings(text, Settings(server_statement_timeout=True))


def test_the_server_s_limit_does_not_excuse_a_statement_that_fails() -> None:
    text = "import psycopg\n\nconn = psycopg.connect('')\nconn.execute('SET statement_timeout = %s', (1,))\n"
    assert [f.code for f in findings(text, Settings(server_statement_timeout=True))] == ["DL302"]


# --- what is said ----------------------------------------------------------------------------------------------


def test_functions_that_are_deaf_to_cancel_are_named() -> None:
    found = only(
        """\
        import psycopg

        with psycopg.connect("dbname=gis") as conn:
            conn.execute("SELECT ST_HausdorffDistance(a, b, 0.01), st_union(c) FROM d")
        """
    )
    assert "`ST_HausdorffDistance` and `ST_Union` may not listen to a cancel request" in found.remedy


def test_functions_that_stop_at_once_are_not_named() -> None:
    found = only("import psycopg\n\npsycopg.connect('').execute('SELECT ST_Buffer(a, 1) FROM d')\n")
    assert "cancel request" not in found.remedy


def test_a_bound_that_is_undone_is_said_to_be_and_shown() -> None:
    found = only(
        """\
        import psycopg2

        conn = psycopg2.connect("dbname=gis")
        conn.cursor().execute("SET statement_timeout = '30s'")
        conn.rollback()
        conn.cursor().execute("SELECT 1")
        """
    )
    assert "rollback" in found.message
    assert [r.span.line for r in found.related] == [4]


def test_a_bound_that_ends_with_its_transaction_is_said_to() -> None:
    found = only(
        """\
        import psycopg

        conn = psycopg.connect("dbname=gis")
        conn.execute("SET LOCAL statement_timeout = '30s'")
        conn.commit()
        conn.execute("SELECT 1")
        """
    )
    assert "line 4" in found.message
    assert "ends with its transaction" in found.message


def test_a_connect_timeout_is_said_to_be_another_thing() -> None:
    assert (
        "`connect_timeout` bounds the connecting alone"
        in only("import psycopg\n\nconn = psycopg.connect('', connect_timeout=3)\n").message
    )


# --- DL302 -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "after"),
    [
        ("'SET LOCAL statement_timeout = %s', (ms,)",
         "\"SELECT set_config('statement_timeout', %s, true)\", (str(ms),)"),
        ("\"SET LOCAL statement_timeout = %s\", ('5s',)",
         "\"SELECT set_config('statement_timeout', %s, true)\", ('5s',)"),
        ("'''SET LOCAL statement_timeout TO %(ms)s;''', {'ms': ms + 1}",
         "\"SELECT set_config('statement_timeout', %(ms)s, true)\", {'ms': str(ms + 1)}"),
        ("'SET LOCAL statement_timeout = %s', given",
         "\"SELECT set_config('statement_timeout', %s::text, true)\", given"),
        ("'SET lock_timeout = %s', (ms,)",
         "\"SELECT set_config('lock_timeout', %s, false)\", (str(ms),)"),
    ],
)  # fmt: skip
def test_a_bound_value_goes_through_set_config(statement: str, after: str) -> None:
    text = f"import psycopg\n\ndef f(conn: psycopg.Connection, ms, given):\n    conn.execute({statement})\n"
    assert body(text) == f"conn.execute({after})"


def test_it_is_safe_where_the_statement_could_only_fail() -> None:
    text = """\
        import psycopg

        def f(conn: psycopg.Connection, ms):
            conn.execute('SET LOCAL statement_timeout = %s', (ms,))
    """
    assert "set_config" in fixed(text, allowed=(Safety.SAFE,))


def test_it_is_unsafe_where_the_driver_is_not_known() -> None:
    found = only(
        "from sqlalchemy import Connection, text\n\n"
        "def f(c: Connection, ms):\n    c.execute(text('SET LOCAL statement_timeout = :ms'), {'ms': ms})\n"
    )
    assert found.level is Level.STRICT
    assert found.fix is not None
    assert found.fix.safety is Safety.UNSAFE


def test_a_plain_set_lasts_where_it_would_have() -> None:
    text = """\
        import psycopg

        with psycopg.connect("", autocommit=True) as conn:
            conn.execute("SET statement_timeout = %s", (5,))
    """
    assert body(text) == "conn.execute(\"SELECT set_config('statement_timeout', %s, false)\", (str(5),))"


def test_asyncpg_wants_the_value_in_sight() -> None:
    text = """\
        import asyncpg

        async def f(conn: asyncpg.Connection, *given):
            await conn.execute('SET statement_timeout = $1', *given)
    """
    assert only(text).fix is None


def test_other_statements_in_the_text_are_left_alone() -> None:
    text = (
        "import psycopg\n\ndef f(conn: psycopg.Connection, ms):\n"
        "    conn.execute('SET LOCAL statement_timeout = %s; SELECT 1', (ms,))\n"
    )
    assert only(text).fix is None


# --- DL303 -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("SET LOCAL statement_timeout = '30s'", "SET statement_timeout = '30s'"),
        ("set  local  statement_timeout TO 5", "SET  statement_timeout TO 5"),
        ("SELECT set_config('statement_timeout', '30s', true)", "SELECT set_config('statement_timeout', '30s', false)"),
    ],
)
def test_the_limit_is_set_for_the_session(before: str, after: str) -> None:
    head = "import psycopg\n\nconn = psycopg.connect('', autocommit=True)\n"
    assert body(f'{head}conn.execute("{before}")\n') == f'conn.execute("{after}")'


def test_it_is_only_shown_where_it_would_leak_to_another_user() -> None:
    found = only(
        """\
        from psycopg_pool import ConnectionPool

        pool = ConnectionPool("", kwargs={"autocommit": True, "options": "-c statement_timeout=60s"})
        with pool.connection() as conn:
            conn.execute("SET LOCAL statement_timeout = '30s'")
        """
    )
    assert found.fix is not None
    assert found.fix.safety is Safety.DISPLAY


# --- DL304 -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"SET LOCAL statement_timeout = 0"', "f\"SET LOCAL statement_timeout = '{STATEMENT_LIMIT_S}s'\""),
        ("\"SET LOCAL statement_timeout = '400us'\"", "\"SET LOCAL statement_timeout = '1ms'\""),
        ("\"SELECT set_config('statement_timeout', '0', true)\"",
         "f\"SELECT set_config('statement_timeout', '{STATEMENT_LIMIT_S}s', true)\""),
        ("\"SELECT set_config('statement_timeout', %s, true)\", ('300us',)",
         "\"SELECT set_config('statement_timeout', %s, true)\", (\"1ms\",)"),
    ],
)  # fmt: skip
def test_no_limit_becomes_one(before: str, after: str) -> None:
    head = "import psycopg\n\nwith psycopg.connect('') as conn:\n"
    assert body(f"{head}    conn.execute({before})\n") == f"conn.execute({after})"


@pytest.mark.parametrize(
    "statement",
    [
        "'SET LOCAL statement_timeout TO 0.4'",
        "\"SELECT set_config('statement_timeout', %s, true)\", ('0.3',)",
    ],
)
def test_a_fraction_without_a_unit_may_be_meant_as_seconds(statement: str) -> None:
    """PostgreSQL takes it as milliseconds; a limit of 1 ms would cancel nearly everything."""
    found = only(f"import psycopg\n\nwith psycopg.connect('') as conn:\n    conn.execute({statement})\n")
    assert found.code == "DL304"
    assert found.fix is None or found.fix.safety is Safety.DISPLAY


def test_a_limit_that_is_lifted_on_purpose_is_for_strict_readers() -> None:
    found = only(
        """\
        import psycopg

        with psycopg.connect("", autocommit=True) as conn:
            conn.execute("SET statement_timeout = 0")
            conn.execute("VACUUM parcels")
        """
    )
    assert found.level is Level.STRICT
    assert found.fix is not None
    assert found.fix.safety is Safety.DISPLAY
