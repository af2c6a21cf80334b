"""DL302: a limit whose value is bound where PostgreSQL takes no parameter."""

from __future__ import annotations

from collections.abc import Iterable

from deadlint.model import Level
from deadlint.rule import Rule
from deadlint.site import Report, Site

from deadlint_rules import _sql, _statement_fixes
from deadlint_rules._postgres import MAKERS
from deadlint_rules._session_hooks import driver, hook_faults
from deadlint_rules._sessions import EXECUTIONS, WORDS, use_of
from deadlint_rules._statement_faults import refused


class StatementTimeoutBoundParameter(Rule):
    """`SET … = %s` with a driver that binds values on the server, where PostgreSQL refuses it.

    ## What it does
    Finds `SET statement_timeout = …` (and `lock_timeout`, `transaction_timeout`,
    `idle_in_transaction_session_timeout`), also with `LOCAL`, whose value is a bound parameter: in psycopg (3),
    asyncpg, and SQLAlchemy over these or pg8000.

    psycopg2 and psycopg's `ClientCursor` write the value into the statement themselves, so there it works and is not
    reported. Where the URL names no driver it depends on SQLAlchemy's version (psycopg2 before 2.1, psycopg since), so
    that is reported at strict only.

    ## Why it is bad
    `SET` is no statement that PostgreSQL plans, and takes no parameters: measured, `SET LOCAL statement_timeout = %s`
    is a syntax error with psycopg 3.3 and asyncpg 0.32. It fails each time; where an `except` hides that, what follows
    runs without limit. The same line worked under psycopg2, so it often arrives with an upgrade.

    ## Example
    ```python
    import psycopg


    def areas(dsn, limit_ms):
        with psycopg.connect(dsn) as conn:
            conn.execute("SET LOCAL statement_timeout = %s", (limit_ms,))
            return conn.execute("SELECT ST_Area(geom) FROM parcels").fetchall()
    ```

    ## Use instead
    ```python
    import psycopg


    def areas(dsn, limit_ms):
        with psycopg.connect(dsn) as conn:
            conn.execute("SELECT set_config('statement_timeout', %s, true)", (str(limit_ms),))
            return conn.execute("SELECT ST_Area(geom) FROM parcels").fetchall()
    ```

    ## Fix safety
    Safe where the driver is known: the statement could only fail before. `set_config` takes a text, so the value
    is wrapped in `str(…)`, or cast in the statement where it is out of sight. `LOCAL` becomes `true`; a plain
    `SET` becomes `false` where that lasts (autocommit, or a commit after it), else `true`. Where the driver is
    not known the fix is unsafe: under psycopg2 the statement worked, and now returns a row.

    ## Options
    None.

    ## References
    - [set_config](https://www.postgresql.org/docs/current/functions-admin.html#FUNCTIONS-ADMIN-SET)
    - [Differences from psycopg2: server-side binding](https://www.psycopg.org/psycopg3/docs/basic/from_pg2.html)
    """

    code = "DL302"
    name = "statement-timeout-bound-parameter"
    since = "0.1.0"
    calls = EXECUTIONS | frozenset(MAKERS)
    words = WORDS

    def check(self, site: Site) -> Iterable[Report]:
        if site.name in MAKERS:
            for found in hook_faults(site):
                if found.fault == "refused":
                    yield site.report(*_words(found.setting, driver(site)), node=found.call)
            return
        use = use_of(site)
        refusal = refused(use) if use is not None else None
        if use is None or refusal is None:
            return
        setting, name, sure = refusal
        yield site.report(
            *_words(setting, name),
            level=Level.DEFAULT if sure else Level.STRICT,
            fix=lambda: _statement_fixes.set_config(use, setting, sure=sure),
        )


def _words(setting: _sql.Setting, driver: str) -> tuple[str, str]:
    """The message and the remedy."""
    return (
        f"`SET {setting.name} = {setting.placeholder}` is a syntax error with {driver}: its values are bound on the"
        " server, and SET takes no parameters there",
        f"write `SELECT set_config('{setting.name}', {setting.placeholder}, …)` and pass the value as a string",
    )
