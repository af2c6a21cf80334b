"""Limits that a file sets for every session: PGOPTIONS, and roles and databases that carry one."""

from __future__ import annotations

import ast
from weakref import WeakKeyDictionary

from deadlint.index.module import Module
from deadlint.index.values import Const
from deadlint.site import Site

from deadlint_rules import _postgres, _sql
from deadlint_rules._postgres import text_of
from deadlint_rules._sessions import imports

_ROLES: WeakKeyDictionary[Module, bool] = WeakKeyDictionary()


def set_in_file(site: Site) -> bool:
    """Whether the file gives every session of this kind a limit."""
    return _by_role(site.module) or (_reads_environment(site) and options_in_environment(site.module))


def _reads_environment(site: Site) -> bool:
    """Whether the driver is libpq's, which reads PGOPTIONS; asyncpg does not (measured)."""
    return _postgres.maker(site).driver != "asyncpg" and _postgres.url(site).driver != "asyncpg"


def _by_role(module: Module) -> bool:
    """`ALTER ROLE … SET statement_timeout` in a text of the file."""
    if module not in _ROLES:
        text = module.source.text.lower()
        _ROLES[module] = (
            _sql.STATEMENT in text
            and "alter" in text
            and any(
                setting.role and setting.bounds
                for node in ast.walk(module.tree)
                for setting in _sql.settings(_literal(node))
            )
        )
    return _ROLES[module]


def _literal(node: ast.AST) -> str:
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_literal(part) or _sql.HOLE for part in parts)
    return ""


def options_in_environment(module: Module) -> bool:
    """`os.environ["PGOPTIONS"] = "-c statement_timeout=…"`."""
    if "PGOPTIONS" not in module.source.text:
        return False
    for scope in module.walker.walk(module.scope).everything():
        for name in ("os.environ", "environ"):
            for change in scope.mutations.get(name, ()):
                if change.key is None or change.value is None:
                    continue
                if module.resolver.evaluate(change.key, scope) == (Const("PGOPTIONS"),):
                    texts = [text_of(v) for v in module.resolver.evaluate(change.value, scope)]
                    if any(text is None or _sql.in_options(text) is not None for text in texts):
                        return True
    return False


def is_migration_environment(module: Module) -> bool:
    """Whether the file is Alembic's `env.py`, or drives it: a migration may take the time that it takes."""
    return imports(module, "alembic")
