"""Django's database settings: what connects to PostgreSQL, and whether its options limit statements."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deadlint.index.scopes import dotted
from deadlint.index.values import Const, Mapping
from deadlint.model import Constant, Edit, Fix, Safety

from deadlint_rules import _sql
from deadlint_rules._postgres import text_of
from deadlint_rules._statement_fixes import entry

if TYPE_CHECKING:
    from deadlint.index.module import Module

# Django's own engines, GeoDjango's, and those of packages that put themselves in front.
_ENGINES = (
    "django.db.backends.postgresql", "django.contrib.gis.db.backends.postgis", "psqlextra.backend",
    "django_prometheus.db.backends.postgresql", "django_prometheus.db.backends.postgis", "timescale.db.backends",
    "dj_db_conn_pool.backends.postgresql", "django_db_geventpool.backends.postgresql",
    "django_tenants.postgresql_backend",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Database:
    """One entry of `DATABASES` that has no limit on its statements."""

    alias: str
    node: ast.expr
    options: ast.Dict | None  # its OPTIONS, where they are written out beside it
    sure: bool = True  # whether the file alone says that it is PostgreSQL, and not the environment too


def unlimited(module: Module) -> Iterator[Database]:
    """The databases of Django's settings that are PostgreSQL and set no limit, as far as the file says."""
    text = module.source.text
    if "DATABASES" not in text or _sql.STATEMENT in text.lower():
        return
    for statement in ast.walk(module.tree):
        match statement:
            case ast.Assign(targets=[ast.Name(id="DATABASES")], value=ast.Dict() as databases):
                for key, value in zip(databases.keys, databases.values, strict=True):
                    if isinstance(key, ast.Constant):
                        yield from _of_value(str(key.value), value, module)
            case ast.Assign(
                targets=[ast.Subscript(value=ast.Name(id="DATABASES"), slice=ast.Constant(value=alias))], value=value
            ):
                yield from _of_value(str(alias), value, module)


def _of_value(alias: str, node: ast.expr, module: Module) -> Iterator[Database]:
    match node:
        case ast.Dict():
            yield from _database(alias, node, module)
        case ast.Call(func=func) if dotted(func).endswith(
            ("dj_database_url.config", "dj_database_url.parse", "env.db")
        ):
            # A URL of the environment, with one of PostgreSQL in its place.
            urls = [a.value for a in (*node.args, *(k.value for k in node.keywords)) if isinstance(a, ast.Constant)]
            if any(_URL.match(url) for url in urls if isinstance(url, str)) and not _changed_later(alias, module):
                yield Database(alias, node, None, sure=False)


_READERS = ("dj_database_url.config", "dj_database_url.parse", "env.db", "env.db_url")
_URL = re.compile(r"(postgres|postgresql|postgis|pgsql)://")


def _database(alias: str, node: ast.Dict, module: Module) -> Iterator[Database]:
    if any(key is None for key in node.keys):
        return  # `**common`: what is in it is not known
    engine = entry(node, "ENGINE")
    if engine is None:
        return
    sure = not isinstance(engine, ast.Call)
    if isinstance(engine, ast.Call):  # `os.environ.get("ENGINE", "…")`
        names = [
            n.value if isinstance(n, ast.Constant) and isinstance(n.value, str) else None for n in _default(engine)
        ]
    else:
        names = [text_of(v) for v in module.resolver.evaluate(engine, module.scope)]
    if not names or not all(name is not None and name.startswith(_ENGINES) for name in names):
        return
    options = entry(node, "OPTIONS")
    if options is not None and not _known_without_limit(options, module):
        return
    if _changed_later(alias, module):
        return
    yield Database(alias, node, options if isinstance(options, ast.Dict) else None, sure)


def _default(call: ast.Call) -> list[ast.expr]:
    return [*call.args[1:2], *(k.value for k in call.keywords if k.arg == "default")]


def _known_without_limit(options: ast.expr, module: Module) -> bool:
    """Whether OPTIONS are known whole, and their `options` are texts without a hole."""
    for value in module.resolver.evaluate(options, module.scope):
        match value:
            case Mapping(open=False):
                given = value.get("options") or ()
                if value.get("service") is not None or any(_sql.HOLE in (text_of(v) or _sql.HOLE) for v in given):
                    return False
            case Const(value=None):
                continue
            case _:
                return False
    return True


def _changed_later(alias: str, module: Module) -> bool:
    """Whether the file goes on to change the options of a database."""
    for node in ast.walk(module.tree):
        match node:
            case ast.Subscript(
                value=ast.Subscript(value=ast.Name(id="DATABASES"), slice=ast.Constant(value=name)),
                slice=ast.Constant(value="OPTIONS"),
            ) if name == alias:
                return True
            case ast.Call(func=ast.Attribute(value=ast.Subscript(value=ast.Name(id="DATABASES")), attr="update")):
                return True
    return False


def with_options(module: Module, database: Database) -> Fix | None:
    """The limit in OPTIONS; None where these hold options already."""
    limit = Constant(*module.settings.constants.statement)
    value = f'f"-c {_sql.STATEMENT}={{{limit.name}}}s"'
    if not isinstance(database.node, ast.Dict):
        return None
    if database.options is None:
        if entry(database.node, "OPTIONS") is not None:
            return None
        edit = _entry_added(module, database.node, f'"OPTIONS": {{"options": {value}}}')
    elif entry(database.options, "options") is None:
        edit = _entry_added(module, database.options, f'"options": {value}')
    else:
        return None
    title = f"limit each statement to {limit.name} on the server"
    return Fix(title, Safety.UNSAFE, (edit,), constants=(limit,)) if edit is not None else None


def _entry_added(module: Module, node: ast.Dict, text: str) -> Edit | None:
    """An entry behind the others, on a line of its own where these have theirs."""
    source = module.source
    start, end = source.extent(node)
    if not node.values:
        return Edit(start + 1, start + 1, text)
    last, key = node.values[-1], node.keys[-1]
    _, place = source.extent(last)
    trailing = source.text[place : end - 1]
    if trailing.lstrip().startswith(")"):
        return None  # a value in parentheses
    comma = trailing.lstrip().startswith(",")
    if key is None or last.end_lineno == node.end_lineno:
        lead = " " if comma else ", "
        place += trailing.index(",") + 1 if comma else 0
        return Edit(place, place, f"{lead}{text}")
    indentation = source.line(key.lineno)[: len(source.line(key.lineno)) - len(source.line(key.lineno).lstrip())]
    if comma:
        line_end = source.line_starts[last.end_lineno or last.lineno]  # a comment stays with its entry
        return Edit(line_end, line_end, f"{indentation}{text},{source.newline}")
    behind = trailing.partition("\n")[0]
    if behind.strip():
        return None  # a comment where the comma must go
    return Edit(place, place, f",{source.newline}{indentation}{text}")
