"""DL301: a session with PostgreSQL whose statements nothing bounds on the server."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from deadlint.index.values import NONE, External
from deadlint.model import Level, Related
from deadlint.rule import Rule
from deadlint.site import Report, Site

from deadlint_rules import _dataset_programs, _django, _postgres, _sql, _statement_fixes
from deadlint_rules._file_limits import is_migration_environment, options_in_environment, set_in_file
from deadlint_rules._postgres import MAKERS, Known
from deadlint_rules._session_hooks import hook_faults, judge_hooks
from deadlint_rules._session_verdicts import Judged, Verdict, judge
from deadlint_rules._sessions import Use, sessions
from deadlint_rules._statement_faults import faulty

if TYPE_CHECKING:
    from deadlint.index.module import Module


class PostgisSessionWithoutStatementTimeout(Rule):
    """A PostgreSQL session without `statement_timeout`: nothing stops a statement on the server.

    ## What it does
    Finds connections, pools and engines of psycopg, psycopg2, asyncpg and SQLAlchemy, `read_postgis` and `read_sql` on
    a PostgreSQL URL, and `PG:` datasets of GDAL, OGR, fiona and GeoPandas, on which no limit for statements is set;
    also the databases of Django's settings, and `PG:` sources among the arguments of GDAL's programs. Each is reported
    once, where it is made.

    These count as a limit: `options="-c statement_timeout=…"`, `server_settings`, asyncpg's `command_timeout`, the same
    in a connection string or URL, PGOPTIONS set in the file, `ALTER ROLE … SET`; on the connection `SET LOCAL` or
    `set_config(…, true)` in the transaction that is used, `SET` in autocommit or committed; an event of the engine, or
    a hook of the pool, under the same conditions; `deadlint_budget.statement_timeout(conn, budget)`. A limit that does
    not last is reported with the reason: a `SET` that the first rollback undoes, a `SET LOCAL` that ends with its
    transaction before the last statement or comes after it, asyncpg's `init`, which the pool undoes.

    Left to strict: `create_engine` of a URL that cannot be read; a GDAL program whose process has no limit of its own;
    a session that only maintains or loads the database, or waits for notifications; an async session whose statements
    are all awaited under `asyncio.timeout` or `wait_for`, which cancel on the server while their loop lives. Unknown
    `**kwargs`, `connect_args` and options are silent, and so are other databases, Alembic's environments, and a
    connection that is only opened and closed to see whether the server is there.

    ## Why it is bad
    PostgreSQL's default is no limit. Measured: when the client is killed, its statement goes on, keeps its locks, and
    commits; Ctrl-C, an alarm or `future.result(timeout)` in a psycopg2 client do nothing until it ends.
    `connect_timeout` bounds the connecting alone. So a join gone wrong, or a wait for a lock, outlives the run that
    began it, and the next run waits behind it.

    The limit holds for each statement, not for the transaction, and not for a client that stops reading. Some PostGIS
    functions do not listen to a cancel request for seconds or minutes (`ST_HausdorffDistance` with densifying,
    `ST_FrechetDistance`, `ST_MakeValid`, `ST_Union` of many, Voronoi, Delaunay): where the statements in sight call
    one, the finding says so, and the client needs a bound of its own.

    ## Example
    ```python
    import psycopg


    def areas(dsn):
        with psycopg.connect(dsn) as conn:
            return conn.execute("SELECT ST_Area(geom) FROM parcels").fetchall()
    ```

    ## Use instead
    ```python
    import psycopg

    STATEMENT_LIMIT_S = 60


    def areas(dsn):
        with psycopg.connect(dsn, options=f"-c statement_timeout={STATEMENT_LIMIT_S}s") as conn:
            return conn.execute("SELECT ST_Area(geom) FROM parcels").fetchall()
    ```

    ## Fix safety
    Unsafe: a statement that takes longer is ended, with SQLSTATE 57014, and its transaction fails. With a budget in
    scope and `with psycopg.connect(…) as conn`, the block is put under `statement_timeout(conn, budget)`, which derives
    the limit from the time that is left. Else the limit goes where the session is opened: `options`, `server_settings`
    or `connect_args`, as the driver takes it, or the name of a `PG:` dataset, with a named constant; options that
    are there are kept.

    Behind pgbouncer in its usual set-up `options=` and `server_settings=` are refused when connecting, or dropped
    (measured with 1.18): use `SET LOCAL`, `statement_timeout(conn, budget)`, or `ALTER ROLE … SET`. Where the name or
    the port (6432) says that it is in front, the finding says so, and no such fix is offered. `options=` replaces
    options in the connection string; where these are in sight, or the driver is not known, the fix is only shown.

    ## Options
    - `server-statement-timeout = true`: the role, the database or the server sets a limit, so nothing is reported.
    - `constants.statement`: name and seconds of the constant that the fix uses.

    ## References
    - [statement_timeout](https://www.postgresql.org/docs/current/runtime-config-client.html#GUC-STATEMENT-TIMEOUT)
    - [libpq's options](https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNECT-OPTIONS)
    - [asyncpg.connect](https://magicstack.github.io/asyncpg/current/api/index.html#asyncpg.connection.connect)
    """

    code = "DL301"
    name = "postgis-session-without-statement-timeout"
    since = "0.1.0"
    calls = frozenset(MAKERS) | _dataset_programs.CALLS
    words = (
        *_postgres.WORDS, ("DATABASES", "ENGINE", "post"), ("DATABASES", "dj_database_url"), ("DATABASES", "env.db"),
        ("subprocess", "PG:"), ("deadlint_budget", "PG:"),
    )  # fmt: skip

    def check(self, site: Site) -> Iterable[Report]:
        if site.module.settings.server_statement_timeout:
            return
        if site.name in _dataset_programs.CALLS:
            yield from _program(site)
            return
        if not _concerns(site):
            return
        if _postgres.given(site).known is not Known.NO or set_in_file(site):
            return
        uses = sessions(site.module).of(site)
        if any(faulty(use) for use in uses) or any(hook_faults(site)):
            return
        judged = _judge(site)
        if judged.verdict is Verdict.HOLDS:
            return
        yield site.report(
            _message(site, judged),
            _remedy(site, uses),
            level=_level(site, uses),
            related=_related(site, judged),
            fix=lambda: _statement_fixes.bound_session(site),
        )

    def check_module(self, module: Module) -> Iterable[Report]:
        """Report the databases of Django's settings that have no limit."""
        if module.settings.server_statement_timeout:
            return
        for database in _django.unlimited(module):
            yield Report(
                database.node,
                f"database `{database.alias}` sets no statement_timeout, and PostgreSQL's default is 0, no limit: a"
                " statement that hangs runs on, and keeps its locks, even when its request or task is gone",
                'set `"OPTIONS": {"options": "-c statement_timeout=…"}`, or `ALTER ROLE … SET statement_timeout` where'
                " pgbouncer is in front, which refuses or drops `options`",
                level=Level.DEFAULT if database.sure else Level.STRICT,
                fix=partial(_django.with_options, module, database),
            )


def _program(site: Site) -> Iterator[Report]:
    program = _dataset_programs.reads_unlimited(site)
    if program is None or options_in_environment(site.module):
        return
    limited = _dataset_programs.has_limit(site)
    yield site.report(
        f"`{program}` opens a session that sets no statement_timeout: "
        + (
            "when its limit is over the program is gone, and its statement goes on in the server"
            if limited
            else "who ends the program leaves its statement running in the server"
        ),
        "add `options='-c statement_timeout=…'` to the name, or PGOPTIONS to its environment",
        level=Level.DEFAULT if limited else Level.STRICT,
    )


def _concerns(site: Site) -> bool:
    """Whether the call opens a session with PostgreSQL, or may do so, that statements are sent on."""
    if _is_probe(site):
        return False
    match _postgres.maker(site):
        case _postgres.Maker(holds="source"):
            return _postgres.is_source(site)
        case _postgres.Maker(holds="query"):
            return _postgres.url(site).postgres is True
        case _postgres.Maker(holds="engine"):
            return _postgres.url(site).postgres is not False and not is_migration_environment(site.module)
        case _postgres.Maker(driver="psycopg2"):
            return site.argument("replication").absent and not _may_replicate(site)
    return True


def _may_replicate(site: Site) -> bool:
    """Whether the connection may be one that replicates, and runs no statements; factories of rows are not."""
    values = site.argument("connection_factory").values
    return any(not isinstance(v, External) or "Replication" in v.name for v in values if v != NONE)


def _is_probe(site: Site) -> bool:
    """Whether a connection is only opened and closed again, to see whether the server is there."""
    node: ast.AST | None = site.parent
    match node:
        case ast.Attribute(attr="close"):
            return True
        case ast.Assign(targets=[ast.Name(id=name)]) if site.function is not None:
            loads = [
                n
                for n in ast.walk(site.function.node)
                if isinstance(n, ast.Name) and n.id == name and n.ctx.__class__ is ast.Load
            ]
            parents = [site.module.walker.parents.get(n) for n in loads]
            return bool(loads) and all(isinstance(p, ast.Attribute) and p.attr == "close" for p in parents)
    return False


def _judge(site: Site) -> Judged:
    """What the file's statements and hooks say; the better of the two."""
    by_uses = judge(site)
    by_hooks = judge_hooks(site)
    order = (Verdict.HOLDS, Verdict.UNDONE, Verdict.ENDED, Verdict.LATE, Verdict.NONE)
    return min(by_uses, by_hooks, key=lambda j: order.index(j.verdict))


def _level(site: Site, uses: list[Use]) -> Level:
    unreadable = _postgres.maker(site).holds == "engine" and _postgres.url(site).postgres is None
    texts = [text for use in uses for text in use.texts if use.works]
    statements = [use for use in uses if use.kind == "statement" and use.works]
    maintains = bool(texts) and all(use.texts and all(map(_sql.maintains, use.texts)) for use in statements)
    by_taste = maintains or _listens(site, statements) or _cancelled_by_client(statements)
    return Level.STRICT if unreadable or by_taste else Level.DEFAULT


def _cancelled_by_client(statements: list[Use]) -> bool:
    """Whether each statement is awaited under a limit: async drivers then cancel it on the server.

    Measured: they do while their loop lives; one that ends right after leaves the statement running.
    """
    return bool(statements) and all(
        use.is_async and any(around.limit.layer == "scope" for around in use.site.around) for use in statements
    )


def _listens(site: Site, statements: list[Use]) -> bool:
    """Whether a connection waits for notifications, so that there is no statement that could hang."""
    if statements or _postgres.maker(site) != MAKERS["asyncpg.connect"]:
        return False
    return any(
        t.name == "asyncpg.Connection.add_listener"
        for other in site.module.sites_named("add_listener")
        for t in other.targets
    )


def _message(site: Site, judged: Judged) -> str:
    shown = f"`{_shown(site)}`"
    line = judged.node.lineno if judged.node is not None else 0
    match judged.verdict:
        case Verdict.UNDONE if _postgres.maker(site).driver == "asyncpg":
            return (
                f"asyncpg's pool resets a connection that comes back, so what `init` sets in line {line} holds until"
                " then: later statements run on the server without limit"
            )
        case Verdict.UNDONE:
            return (
                f"the first rollback undoes the statement_timeout that line {line} sets on {shown}, since it is neither"
                " committed nor in autocommit: later statements run on the server without limit"
            )
        case Verdict.ENDED:
            return (
                f"the statement_timeout that line {line} sets on {shown} ends with its transaction: what follows runs"
                " on the server without limit"
            )
        case Verdict.LATE:
            return (
                f"the statement_timeout that line {line} sets on {shown} comes after the statements: these run on the"
                " server without limit"
            )
    given = "; `connect_timeout` bounds the connecting alone" if not site.argument("connect_timeout").absent else ""
    return (
        f"{shown} sets no statement_timeout, and PostgreSQL's default is 0, no limit: a statement that hangs runs on,"
        f" and keeps its locks, even when its client is gone{given}"
    )


def _shown(site: Site) -> str:
    """The call as it is usually written."""
    return site.name.removeprefix("sqlalchemy.ext.asyncio.").removeprefix("sqlalchemy.").removeprefix("osgeo.")


def _remedy(site: Site, uses: list[Use]) -> str:
    match _postgres.maker(site):
        case _ if _postgres.behind_pgbouncer(site):
            words = (
                "pgbouncer refuses `options` and settings when connecting, or drops them: use `SET LOCAL` or"
                " `statement_timeout(conn, budget)` in each transaction, or `ALTER ROLE … SET statement_timeout`"
            )
        case _postgres.Maker(driver="asyncpg"):
            words = 'pass `server_settings={"statement_timeout": …}` or `command_timeout=…`'
        case _postgres.Maker(holds="engine"):
            words = 'pass `connect_args={"options": "-c statement_timeout=…"}`'
        case _postgres.Maker(holds="query"):
            words = "make an engine with a statement_timeout once, and pass that"
        case _postgres.Maker(holds="source"):
            words = "add `options='-c statement_timeout=…'` to the name, or set PGOPTIONS before it is opened"
        case _:
            words = 'pass `options="-c statement_timeout=…"`, or bound each block by `statement_timeout(conn, budget)`'
    deaf = list(dict.fromkeys(name for use in uses for text in use.texts for name in _sql.deaf(text)))
    if deaf:
        words += (
            f"; {' and '.join(f'`{name}`' for name in deaf)} may not listen to a cancel request for seconds or minutes,"
            " so bound the client as well"
        )
    return words


def _related(site: Site, judged: Judged) -> tuple[Related, ...]:
    if judged.node is None:
        return ()
    return (site.related(judged.node, "the limit is set here"),)
