"""Faults of single statements that set a limit: bound where it cannot be, outside of a transaction, none at all."""

from __future__ import annotations

from deadlint_rules import _postgres, _sql
from deadlint_rules._sessions import ASYNCPG, SQLALCHEMY, Use, imports, sessions


def refused(use: Use) -> tuple[_sql.Setting, str, bool] | None:
    """A `SET` whose value is bound where PostgreSQL takes none: the setting, the driver, and whether that is sure."""
    if use.kind != "statement":
        return None
    setting = next((s for s in use.settings if s.placeholder and not s.function and not s.role), None)
    if setting is None:
        return None
    if use.type.startswith("psycopg."):
        return (setting, "psycopg", True) if use.parameters and _binds_on_server(use) else None
    if use.type in ASYNCPG:
        return (setting, "asyncpg", True) if use.parameters else None
    if use.type in SQLALCHEMY:
        return _refused_by_engine(setting, use)
    return None


def _binds_on_server(use: Use) -> bool:
    """Whether psycopg's cursor is the usual one: a `ClientCursor` writes values in itself."""
    if "ClientCursor" in use.type:
        return False
    given = (k.arg for r in use.chain if r.call is not None for k in r.call.keywords)
    return "cursor_factory" not in given and not use.site.module.walker.attributes_named("cursor_factory")


def _refused_by_engine(setting: _sql.Setting, use: Use) -> tuple[_sql.Setting, str, bool] | None:
    driver, sure = engine_driver(use)
    if driver in _postgres.CLIENT_SIDE or (not driver and imports(use.site.module, "psycopg2")):
        return None
    if not driver and use.type.startswith("sqlalchemy.ext.asyncio."):
        return setting, "its async drivers", True
    return setting, driver or "psycopg, the default driver since SQLAlchemy 2.1", sure


def engine_driver(use: Use) -> tuple[str, bool]:
    """The driver beneath SQLAlchemy, and whether it is known; empty where the URL does not say."""
    opening = use.chain[-1] if use.chain else None
    if opening is None or opening.call is None or opening.scope is None:
        return "", False
    resolver = use.site.module.resolver
    named = (k.value for k in opening.call.keywords if k.arg == "url")
    node = next(iter((*opening.call.args[:1], *named)), None)
    values = resolver.evaluate(node, opening.scope) if node is not None else ()
    url = _postgres.read_url(values, resolver, opening.scope)
    return (url.driver, True) if url.driver in _postgres.SERVER_SIDE | _postgres.CLIENT_SIDE else ("", False)


def outside(use: Use) -> _sql.Setting | None:
    """A limit for a transaction that is set where there is none."""
    if use.kind != "statement":
        return None
    setting = next((s for s in use.settings if s.local is True), None)
    if setting is None:
        return None
    known = sessions(use.site.module)
    return setting if known.autocommit(use) is True and known.in_transaction(use) is False else None


def zero(use: Use) -> _sql.Setting | None:
    """A limit on statements that PostgreSQL takes for none."""
    if use.kind != "statement":
        return None
    return next((s for s in use.settings if s.name == _sql.STATEMENT and s.none), None)


def faulty(use: Use) -> bool:
    """Whether another rule than DL301 says what is wrong with this use."""
    if refusal := refused(use):
        return refusal[0].name in _sql.BOUNDING
    if missing := outside(use):
        return missing.name in _sql.BOUNDING
    return zero(use) is not None
