"""Fixes of the rules on PostgreSQL: a limit where a session is opened, and statements that set one rightly."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from deadlint import region
from deadlint.model import Constant, Edit, Fix, Safety
from deadlint.site import Site

from deadlint_rules import _postgres, _sql
from deadlint_rules._limits import below_around
from deadlint_rules._postgres import MAKERS
from deadlint_rules._sessions import Use, parameter_of, sessions

_LIBPQ = frozenset({"", "psycopg", "psycopg_async", "psycopg2", "psycopg2cffi"})


def _limit(site: Site) -> Constant:
    """The named constant, in seconds, that fixes of statements use."""
    return below_around(site, *site.module.settings.constants.statement)


def _options(limit: Constant) -> str:
    # With its unit, since a bare number counts milliseconds there.
    return f'f"-c statement_timeout={{{limit.name}}}s"'


def _setting(limit: Constant) -> str:
    return f'f"{{{limit.name}}}s"'


# --- DL301 -----------------------------------------------------------------------------------------------------


def bound_session(site: Site) -> Fix | None:
    """A limit for a session that has none."""
    maker = MAKERS[site.name]
    if maker.holds == "connection" and (fixed := _under_budget(site)):
        return fixed
    if _postgres.behind_pgbouncer(site):
        return None  # which refuses options when connecting, or drops them
    match maker:
        case _postgres.Maker(driver="psycopg", holds="pool"):
            return _in_dict(site, "kwargs", "options", _options)
        case _postgres.Maker(driver="psycopg" | "psycopg2"):
            return _with_options(site)
        case _postgres.Maker(driver="asyncpg"):
            return _in_dict(site, "server_settings", _sql.STATEMENT, _setting) or _with_command_timeout(site)
        case _postgres.Maker(holds="engine"):
            return _with_connect_args(site)
        case _postgres.Maker(holds="source"):
            return _in_name(site)
    return None


def _under_budget(site: Site) -> Fix | None:
    """`with connect() as conn` becomes `with connect() as conn, statement_timeout(conn, budget)`."""
    budget = site.budget
    item = site.parent
    if budget is None or not isinstance(item, ast.withitem) or not isinstance(item.optional_vars, ast.Name):
        return None
    if not site.argument("autocommit").absent:
        return None  # the helper would put all of the block into one transaction
    name, needed = site.helper("statement_timeout")
    _, end = site.module.source.extent(item.optional_vars)
    edit = Edit(end, end, f", {name}({item.optional_vars.id}, {budget})")
    return Fix("bound the block by the budget, on the server", Safety.UNSAFE, (edit,), (needed,))


def _with_options(site: Site) -> Fix | None:
    limit = _limit(site)
    argument = site.argument("options")
    if argument.node is not None and isinstance(argument.node, ast.expr) and not argument.absent:
        return _fix(site, _appended(site, argument.node, _more_options(limit)), limit)
    if not argument.absent:
        return None
    safety = Safety.DISPLAY if _has_options(site) else Safety.UNSAFE
    return _fix(site, _with_keyword(site, "options", _options(limit)), limit, safety)


def _has_options(site: Site) -> bool:
    """Whether the DSN has options of its own, which the keyword would replace."""
    argument = site.argument(*_postgres.maker(site).dsn)
    return any("options" in (_postgres.text_of(v) or "") for v in argument.values)


def _in_name(site: Site) -> Fix | None:
    """The limit in the name of a dataset: `PG:dbname=gis options='-c …'`."""
    argument = site.argument(*_postgres.maker(site).dsn)
    if argument.node is None or _has_options(site):
        return None
    limit = _limit(site)
    more = f"f\" options='-c statement_timeout={{{limit.name}}}s'\""
    return _fix(site, _appended(site, argument.node, more), limit)


def _with_command_timeout(site: Site) -> Fix | None:
    if not site.argument("command_timeout").absent:
        return None
    limit = _limit(site)
    return _fix(site, _with_keyword(site, "command_timeout", limit.name), limit)


def _with_connect_args(site: Site) -> Fix | None:
    url = _postgres.url(site)
    certain = url.postgres is True
    if url.driver == "asyncpg" or (not url.driver and MAKERS[site.name].driver == "sqlalchemy-async"):
        limit = _limit(site)
        value = f'{{"{_sql.STATEMENT}": {_setting(limit)}}}'
        safety = Safety.UNSAFE if certain and url.driver else Safety.DISPLAY
        return _in_dict(site, "connect_args", "server_settings", lambda _: value, safety)
    if url.driver not in _LIBPQ:
        return None
    return _in_dict(site, "connect_args", "options", _options, Safety.UNSAFE if certain else Safety.DISPLAY)


def _in_dict(
    site: Site, keyword: str, key: str, value: Callable[[Constant], str], safety: Safety = Safety.UNSAFE
) -> Fix | None:
    """Put `key` into the dict that is the argument `keyword`, which may have to be added."""
    limit = _limit(site)
    argument = site.argument(keyword)
    if argument.absent:
        return _fix(site, _with_keyword(site, keyword, f'{{"{key}": {value(limit)}}}'), limit, safety)
    match argument.node:
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords) if key not in [k.arg for k in keywords]:
            added = region.rewritten(region.parse_call(site.module.source, argument.node), add=[(key, value(limit))])
            return _fix(site, region.replace_call(site.module.source, argument.node, added), limit, safety)
    if not isinstance(argument.node, ast.Dict):
        return None
    present = entry(argument.node, key)
    if present is None:
        return _fix(site, _inserted(site, argument.node, f'"{key}": {value(limit)}'), limit, safety)
    if key == "options":
        return _fix(site, _appended(site, present, _more_options(limit)), limit, safety)
    if isinstance(present, ast.Dict) and key == "server_settings":
        text = f'"{_sql.STATEMENT}": {_setting(limit)}'
        return _fix(site, _inserted(site, present, text), limit, safety)
    return None


def entry(node: ast.Dict, key: str) -> ast.expr | None:
    """The value under a key of a dict display."""
    for name, value in zip(node.keys, node.values, strict=True):
        if isinstance(name, ast.Constant) and name.value == key:
            return value
    return None


def _fix(site: Site, edit: Edit, limit: Constant, safety: Safety = Safety.UNSAFE) -> Fix:
    return Fix(f"limit each statement to {limit.name} on the server", safety, (edit,), constants=(limit,))


def _with_keyword(site: Site, name: str, value: str) -> Edit:
    node = region.parse_call(site.module.source, site.call)
    return region.replace_call(site.module.source, site.call, region.rewritten(node, add=[(name, value)]))


def _more_options(limit: Constant) -> str:
    return f'f" -c statement_timeout={{{limit.name}}}s"'


def _appended(site: Site, node: ast.expr, more: str) -> Edit:
    """Add to a text that is there already."""
    start, end = site.module.source.extent(node)
    text = site.source(node)
    if not isinstance(node, ast.Constant | ast.JoinedStr | ast.Name | ast.Attribute | ast.Call):
        text = f"({text})"
    return region.smallest(site.module.source, start, end, f"{text} + {more}")


def _inserted(site: Site, node: ast.Dict, text: str) -> Edit:
    """Put an entry in front of the others, so that what stands behind these stays where it is."""
    source = site.module.source
    start, _ = source.extent(node)
    if not node.values:
        return Edit(start + 1, start + 1, text)
    first = node.keys[0] or node.values[0]
    place, _ = source.extent(first)
    if node.keys[0] is None:
        place = source.text.rindex("**", start, place)
    if first.lineno == node.lineno:
        return Edit(place, place, f"{text}, ")
    line_start = source.line_starts[first.lineno - 1]
    indentation = source.text[line_start:place]
    return Edit(place, place, f"{text},{source.newline}{indentation}")


# --- statements ------------------------------------------------------------------------------------------------


def sql_node(use: Use) -> ast.Constant | ast.JoinedStr | None:
    """The literal that a statement's text is, also within `text(…)`."""
    named = [k.value for k in use.site.call.keywords if k.arg in ("query", "sql", "statement")]
    node: ast.AST | None = next(iter((*use.site.call.args[:1], *named)), None)
    while isinstance(node, ast.Call):
        node = node.args[0] if node.args and isinstance(node.func, ast.Name) else _within(node)
    match node:
        case ast.Constant(value=str()) | ast.JoinedStr():
            return node
    return None


def _within(node: ast.Call) -> ast.AST | None:
    """What `sqlalchemy.text(…)`, or `text(…).bindparams(…)`, is about."""
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call):
        return node.func.value
    return node.args[0] if node.args else None


def set_config(use: Use, setting: _sql.Setting, *, sure: bool) -> Fix | None:
    """`SET … = %s` as a call of set_config, which takes a parameter, and takes it as text."""
    node = sql_node(use)
    if not isinstance(node, ast.Constant) or len(_sql.statements(str(node.value))) != 1:
        return None
    value = parameter_of(setting, use, str(node.value))
    mark = setting.placeholder or ""
    edits = []
    if value is None:
        if mark.startswith("$"):
            return None  # asyncpg takes a text only, and there is none in sight
        mark = f"{mark}::text" if mark.startswith("%") else f"CAST({mark} AS text)"
    elif not _is_text(value, use):
        start, end = use.site.module.source.extent(value)
        edits.append(region.smallest(use.site.module.source, start, end, f"str({use.site.source(value)})"))
    flag = "true" if _for_transaction(use, setting) else "false"
    start, end = use.site.module.source.extent(node)
    text = f"\"SELECT set_config('{setting.name}', {mark}, {flag})\""
    edits.append(region.smallest(use.site.module.source, start, end, text))
    safety = Safety.SAFE if sure else Safety.UNSAFE
    return Fix("set it by `set_config`, which takes a parameter", safety, tuple(edits))


def _is_text(node: ast.expr, use: Use) -> bool:
    match node:
        case ast.Constant(value=str()) | ast.JoinedStr() | ast.Call(func=ast.Name(id="str")):
            return True
    return all(_postgres.text_of(v) is not None for v in use.site.values(node))


def _for_transaction(use: Use, setting: _sql.Setting) -> bool:
    """Whether the limit had better hold for the transaction: it was meant to, or would not outlast a rollback."""
    known = sessions(use.site.module)
    if setting.local:
        return not (known.autocommit(use) is True and known.in_transaction(use) is False)
    return not known.lasts(use)


_SET_LOCAL = re.compile(r"\bSET(\s+)LOCAL\s+", re.I)
_CONFIG_LOCAL = re.compile(r"(\bset_config\s*\([^()]*,\s*)(?:true|'t'|'true'|'on')(\s*\))", re.I)


def for_session(use: Use, setting: _sql.Setting) -> Fix | None:
    """A limit for the session in place of one for a transaction that there is not."""
    node = sql_node(use)
    if node is None:
        return None
    source = use.site.module.source
    start, end = source.extent(node)
    raw = source.text[start:end]
    text = _CONFIG_LOCAL.sub(r"\1false\2", raw) if setting.function else _SET_LOCAL.sub(r"SET\1", raw)
    if text == raw:
        return None
    opening = use.site.module.site(use.opened) if use.opened is not None else None
    makers = [MAKERS[t.name] for t in opening.targets if t.name in MAKERS] if opening is not None else []
    # asyncpg's pool resets what was set; with any other it would leak to the next user of the connection.
    own = bool(makers) and all(m.holds == "connection" or m.driver == "asyncpg" for m in makers)
    edit = region.smallest(source, start, end, text)
    return Fix("set it for the session", Safety.UNSAFE if own else Safety.DISPLAY, (edit,))


# The value in a statement (also as set_config's second argument), in options, and in a URL's options.
_VALUE = re.compile(r"(statement[_-]timeout(?:['\"]?\s*(?:=|%3D|\bTO\b|,)\s*))(['\"]?)([\w.+-]+)\2", re.I)


def with_limit(
    site: Site, node: ast.expr | None, value: str, *, quoted: bool, safety: Safety = Safety.UNSAFE
) -> Fix | None:
    """A real limit in place of one that is 0: 1 ms for a fraction of it, else the named constant."""
    limit = _limit(site)
    fraction = (_sql.milliseconds(value) or 0) > 0
    match node:
        case ast.Dict() if (inner := _zero_entry(node)) is not None:
            return with_limit(site, inner, value, quoted=quoted, safety=safety)
        case ast.Constant(value=str() as text) if _VALUE.search(text):
            return _in_literal(site, node, limit if not fraction else None, quoted, safety)
        case ast.JoinedStr() if _VALUE.search(site.source(node)):
            return _in_literal(site, node, limit if not fraction else None, quoted, safety)
        case ast.Constant():
            start, end = site.module.source.extent(node)
            replaced = '"1ms"' if fraction else _setting(limit)
            edit = region.smallest(site.module.source, start, end, replaced)
            return _limited(limit, fraction, edit, safety)
    return None


def _zero_entry(node: ast.Dict) -> ast.expr | None:
    """Where in a dict of settings, or of arguments that hold one, the limit stands."""
    for key in (_sql.STATEMENT, "options", "server_settings"):
        if (value := entry(node, key)) is not None:
            return value
    return None


def _limited(limit: Constant, fraction: bool, edit: Edit, safety: Safety) -> Fix:
    title = "make it the least limit, 1 ms" if fraction else f"limit each statement to {limit.name}"
    return Fix(title, safety, (edit,), constants=() if fraction else (limit,))


def _in_literal(
    site: Site, node: ast.Constant | ast.JoinedStr, limit: Constant | None, quoted: bool, safety: Safety
) -> Fix | None:
    """Replace the value in a text; `limit` is None where 1 ms is meant."""
    source = site.module.source
    start, end = source.extent(node)
    raw = source.text[start:end]
    plain = isinstance(node, ast.Constant)
    text = str(node.value) if isinstance(node, ast.Constant) else raw
    if plain and any(c in text for c in '"\\\n'):
        return None  # rare, and not worth a literal that nobody would write
    if plain and limit is not None:
        text = text.replace("{", "{{").replace("}", "}}")
    value = "1ms" if limit is None else f"{{{limit.name}}}s"
    quote = "'" if quoted and (plain or '"' in raw[:2]) else ""

    def put(found: re.Match[str]) -> str:
        mark = found[2] or quote
        return f"{found[1]}{mark}{value}{mark}"

    text = _VALUE.sub(put, text, count=1)
    if plain:
        text = f'{"" if limit is None else "f"}"{text}"'
    return _limited(limit or _limit(site), limit is None, region.smallest(source, start, end, text), safety)
