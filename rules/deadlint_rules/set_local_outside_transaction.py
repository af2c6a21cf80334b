"""DL303: a limit for a transaction, set where there is none."""

from __future__ import annotations

from collections.abc import Iterable

from deadlint.rule import Rule
from deadlint.site import Report, Site

from deadlint_rules import _sql, _statement_fixes
from deadlint_rules._postgres import MAKERS
from deadlint_rules._session_hooks import hook_faults
from deadlint_rules._sessions import EXECUTIONS, WORDS, use_of
from deadlint_rules._statement_faults import outside, refused


class SetLocalOutsideTransaction(Rule):
    """`SET LOCAL` on an autocommit connection: a warning, and no effect.

    ## What it does
    Finds `SET LOCAL statement_timeout` (and `lock_timeout`, `transaction_timeout`,
    `idle_in_transaction_session_timeout`) and `set_config(…, true)` on a connection that is in autocommit and in no
    transaction: psycopg with `autocommit=True`, psycopg2 after `conn.autocommit = True`, asyncpg outside of
    `conn.transaction()`, SQLAlchemy with `isolation_level="AUTOCOMMIT"`.

    ## Why it is bad
    In autocommit each statement is a transaction of its own, so the limit ends with the very statement that sets it.
    Measured: PostgreSQL answers `SET LOCAL` with a warning, which drivers do not show, and `set_config(…, true)` with
    nothing; what follows runs without limit.

    ## Example
    ```python
    import psycopg


    def areas(dsn):
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute("SET LOCAL statement_timeout = '30s'")
            return conn.execute("SELECT ST_Area(geom) FROM parcels").fetchall()
    ```

    ## Use instead
    ```python
    import psycopg


    def areas(dsn):
        with psycopg.connect(dsn, autocommit=True) as conn, conn.transaction():
            conn.execute("SET LOCAL statement_timeout = '30s'")
            return conn.execute("SELECT ST_Area(geom) FROM parcels").fetchall()
    ```

    ## Fix safety
    Unsafe: the limit is set for the session (`SET`, or `set_config(…, false)`), so it takes effect at last, and stays
    until the connection is closed. Where the connection comes from a pool it would leak to its next user, so there the
    fix is only shown; asyncpg's pool resets what was set.

    ## Options
    None.

    ## References
    - [SET](https://www.postgresql.org/docs/current/sql-set.html)
    - [set_config](https://www.postgresql.org/docs/current/functions-admin.html#FUNCTIONS-ADMIN-SET)
    """

    code = "DL303"
    name = "set-local-outside-transaction"
    since = "0.1.0"
    calls = EXECUTIONS | frozenset(MAKERS)
    words = WORDS

    def check(self, site: Site) -> Iterable[Report]:
        if site.name in MAKERS:
            for found in hook_faults(site):
                if found.fault == "outside":
                    yield site.report(*_words(found.setting), node=found.call)
            return
        use = use_of(site)
        if use is None or refused(use) is not None:
            return
        setting = outside(use)
        if setting is not None:
            yield site.report(*_words(setting), fix=lambda: _statement_fixes.for_session(use, setting))


def _words(setting: _sql.Setting) -> tuple[str, str]:
    """The message and the remedy."""
    shown = f"set_config('{setting.name}', …, true)" if setting.function else f"SET LOCAL {setting.name}"
    effect = "has no effect, and says nothing" if setting.function else "is a warning, and has no effect"
    return (
        f"`{shown}` on a connection in autocommit {effect}: the limit ends with the statement that sets it",
        "open a transaction around it (`with conn.transaction():`), or set it for the session",
    )
