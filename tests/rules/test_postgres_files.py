"""DL301 to DL304 across the files of a project: the connection in one, what is done with it in another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest
from deadlint.check import check_source
from deadlint.model import Level
from deadlint.project import Project
from deadlint.rule import all_rules
from deadlint.settings import Settings
from deadlint.source import SourceFile

POSTGRES = tuple(rule for rule in all_rules() if rule.code in ("DL301", "DL302", "DL303", "DL304"))
Found = Callable[[str, str], list[tuple[int, str, Level]]]
DATABASE = """\
    import psycopg
    from sqlalchemy import create_engine

    OPTIONS = "-c statement_timeout=60s"
    engine = create_engine("postgresql+psycopg://gis@db/gis", connect_args={"options": OPTIONS})


    def connect(dsn):
        return psycopg.connect(dsn)


    def prepare(conn):
        conn.execute("SET LOCAL statement_timeout = '5s'")


    def announce(conn):
        conn.execute("SET LOCAL application_name = 'tiles'")
"""


@pytest.fixture
def found(tmp_path: Path) -> Found:
    """The findings of a file beside `database.py`, as (line, code, level)."""
    (tmp_path / "database.py").write_text(dedent(DATABASE))

    def check(name: str, text: str) -> list[tuple[int, str, Level]]:
        path = tmp_path / name
        path.write_text(dedent(text))
        settings = Settings()
        source = SourceFile.read(path)
        return [
            (f.span.line, f.code, f.level) for f in check_source(source, settings, POSTGRES, project=Project(settings))
        ]

    return check


def test_a_connection_is_judged_where_it_is_made(found: Found) -> None:
    text = """\
        from database import connect

        with connect("dbname=gis") as conn:
            conn.execute("SELECT 1")
    """
    assert found("tiles.py", text) == []
    assert found("database.py", DATABASE) == [(9, "DL301", Level.DEFAULT)]


def test_a_function_elsewhere_sets_the_limit(found: Found) -> None:
    text = """\
        import psycopg
        from database import announce, prepare

        with psycopg.connect("dbname=gis") as conn:
            prepare(conn)
            conn.execute("SELECT 1")
        with psycopg.connect("dbname=gis") as other:
            announce(other)
            other.execute("SELECT 1")
    """
    assert found("tiles.py", text) == [(7, "DL301", Level.DEFAULT)]


def test_a_constant_elsewhere_is_the_limit(found: Found) -> None:
    text = """\
        import psycopg
        from database import OPTIONS

        psycopg.connect("dbname=gis", options=OPTIONS)
    """
    assert found("tiles.py", text) == []


def test_an_engine_elsewhere_tells_the_driver(found: Found) -> None:
    text = """\
        from database import engine
        from sqlalchemy import text


        def limit(ms):
            with engine.begin() as conn:
                conn.execute(text("SET LOCAL statement_timeout = :ms"), {"ms": ms})
    """
    assert found("tiles.py", text) == [(7, "DL302", Level.DEFAULT)]
