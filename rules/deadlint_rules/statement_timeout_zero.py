"""DL304: a limit that PostgreSQL takes for none."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from deadlint.model import Level, Safety
from deadlint.rule import Rule
from deadlint.site import Report, Site

from deadlint_rules import _postgres, _sql, _statement_fixes
from deadlint_rules._file_limits import is_migration_environment
from deadlint_rules._postgres import MAKERS
from deadlint_rules._session_hooks import hook_faults
from deadlint_rules._sessions import EXECUTIONS, WORDS, Use, sessions, use_of
from deadlint_rules._statement_faults import refused, zero

# Work that is exempt on purpose, as functions that do it are called.
_LONG_WORK = re.compile(
    r"analy[sz]e|vacuum|reindex|create_index|build_index|migrat|upgrade|dump|restore|bulk|refresh|maint|cluster", re.I
)


class StatementTimeoutZero(Rule):
    """A statement_timeout of 0, or a fraction of a millisecond that becomes 0: no limit at all.

    ## What it does
    Finds limits that PostgreSQL takes for 0: in `SET`, `set_config`, `options=`, `server_settings=`, connection strings
    and URLs, and in the hooks of engines and pools.

    Lifting the limit on purpose is left to strict readers: before `VACUUM`, `ANALYZE`, `CREATE INDEX` and the
    like, in a migration, and after a limit that was set before (where `RESET statement_timeout` says it better,
    and gives back what the role or the server asks for).

    ## Why it is bad
    0 switches the limit off. Measured: `0.4`, `0.5`, `'400us'` and `'0.0004s'` become 0 as well, since PostgreSQL
    counts whole milliseconds here; 0.6 becomes 1 ms. So a budget that is nearly spent turns into no limit.

    ## Example
    ```python
    import psycopg


    def areas(dsn):
        with psycopg.connect(dsn) as conn:
            conn.execute("SET LOCAL statement_timeout = '0.4ms'")
            return conn.execute("SELECT ST_Area(geom) FROM parcels").fetchall()
    ```

    ## Use instead
    ```python
    import psycopg


    def areas(dsn):
        with psycopg.connect(dsn) as conn:
            conn.execute("SET LOCAL statement_timeout = '1ms'")
            return conn.execute("SELECT ST_Area(geom) FROM parcels").fetchall()
    ```

    ## Fix safety
    Unsafe: statements that could run on are ended. A fraction becomes 1 ms, the least limit that there is; 0
    becomes the configured constant. Where the limit was lifted on purpose, or would be undone by the first
    rollback, the fix is only shown.

    ## Options
    - `constants.statement`: name and seconds of the constant that the fix uses.

    ## References
    - [statement_timeout](https://www.postgresql.org/docs/current/runtime-config-client.html#GUC-STATEMENT-TIMEOUT)
    """

    code = "DL304"
    name = "statement-timeout-zero"
    since = "0.1.0"
    calls = EXECUTIONS | frozenset(MAKERS)
    words = WORDS

    def check(self, site: Site) -> Iterable[Report]:
        if site.name in MAKERS:
            yield from _at_opening(site)
            return
        use = use_of(site)
        if use is None or refused(use) is not None:
            return
        setting = zero(use)
        if setting is None:
            return
        level = Level.STRICT if _on_purpose(use) else Level.DEFAULT
        lasting = setting.local is True or sessions(site.module).lasts(use)
        sure = lasting and level is Level.DEFAULT and not _meant_as_seconds(setting.value)
        safety = Safety.UNSAFE if sure else Safety.DISPLAY
        node = _value_node(use, setting)
        yield site.report(
            _message(setting.value),
            _remedy(setting.value),
            level=level,
            fix=lambda: _statement_fixes.with_limit(site, node, setting.value, quoted=True, safety=safety),
        )


def _at_opening(site: Site) -> Iterable[Report]:
    given = _postgres.given(site)
    if given.zero:
        level = Level.STRICT if _named_for_long_work(site) else Level.DEFAULT
        sure = level is Level.DEFAULT and not _meant_as_seconds(given.value)
        safety = Safety.UNSAFE if sure else Safety.DISPLAY
        yield site.report(
            _message(given.value),
            _remedy(given.value),
            level=level,
            fix=lambda: _statement_fixes.with_limit(site, given.node, given.value, quoted=False, safety=safety),
        )
    for found in hook_faults(site):
        if found.fault == "zero":
            yield site.report(_message(found.setting.value), _remedy(found.setting.value), node=found.call)


def _meant_as_seconds(value: str) -> bool:
    """Whether a value is a fraction without a unit, as people write seconds: 1 ms would cancel nearly everything."""
    return re.fullmatch(r"0*\.\d+", value.strip(" '\"")) is not None


def _message(value: str) -> str:
    if _sql.milliseconds(value) == 0:
        return f"a statement_timeout of {value} is no limit: PostgreSQL lets each statement run for ever"
    return (
        f"a statement_timeout of {value} becomes 0, since PostgreSQL counts whole milliseconds, and 0 is no limit: each"
        " statement may run for ever"
    )


def _remedy(value: str) -> str:
    if _sql.milliseconds(value) == 0:
        return "give a limit, or `RESET statement_timeout` to go back to the server's"
    return "round up, to 1 ms at least"


def _value_node(use: Use, setting: _sql.Setting) -> ast.expr | None:
    """The expression that the value stands in: a bound parameter, or the text of the statement."""
    if setting.placeholder is not None:
        nodes = (use.parameter(setting, text) for text in use.texts)
        return next((n for n in nodes if n is not None), None)
    return _statement_fixes.sql_node(use)


def _on_purpose(use: Use) -> bool:
    """Whether the limit is lifted for work that takes its time, or given back after a limit of one's own."""
    if is_migration_environment(use.site.module):
        return True
    here = [u for u in sessions(use.site.module).uses if u.scope is use.scope and u.calls & use.calls]
    after = [u for u in here if u.kind == "statement" and u.position > use.position and u.works]
    if after and after[0].texts and all(map(_sql.maintains, after[0].texts)):
        return True
    if any(u.position < use.position and any(not s.none for s in u.limits) for u in here):
        return True
    return not after and _named_for_long_work(use.site)


def _named_for_long_work(site: Site) -> bool:
    """Whether the function, or one that it calls, is named after work that is meant to take its time."""
    function = site.function
    if function is None:
        return False
    called = (c.func for c in function.calls)
    names = [
        f.attr if isinstance(f, ast.Attribute) else f.id for f in called if isinstance(f, ast.Name | ast.Attribute)
    ]
    return any(_LONG_WORK.search(name) for name in (function.name, *names))
