"""What SQL texts, connection strings and server options say about limits on statements.

A part of a text that is not known is `HOLE` in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

HOLE = "\0"
STATEMENT = "statement_timeout"
# Limits that only a statement can set for a transaction, in the order of what they bound.
LIMITS = (STATEMENT, "transaction_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
# Either bounds what a statement can take; transaction_timeout exists since PostgreSQL 17.
BOUNDING = frozenset({STATEMENT, "transaction_timeout"})
PLACEHOLDER = re.compile(r"%s|%b|%t|%\(\w+\)[sbt]|\$\d+|(?<![:\w]):[A-Za-z_]\w*|\?")

_NAMES = "|".join(LIMITS)
_VALUE = rf"'(?:[^']|'')*'|{PLACEHOLDER.pattern}|[-+.\w{HOLE}]+"
_SET = re.compile(rf"""SET\s+(?:(LOCAL|SESSION)\s+)?"?({_NAMES})"?\s*(?:=|\bTO\b)\s*({_VALUE})""", re.I)
_CONFIG = re.compile(rf"set_config\s*\(\s*'({_NAMES})'\s*,\s*({_VALUE})\s*(?:::\s*\w+\s*)?,\s*({_VALUE})\s*\)", re.I)
_ROLE = re.compile(
    rf"""ALTER\s+(?:ROLE|USER|DATABASE|SYSTEM)\b.*?\bSET\s+"?({_NAMES})"?\s*(?:=|\bTO\b)\s*({_VALUE})""",
    re.I | re.S,
)
_COMMENT = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.S)
_PIECES = re.compile(r"'(?:[^']|'')*'|\$(\w*)\$.*?\$\1\$|\"[^\"]*\"|;|[^'\";$]+|.", re.S)
_BEGIN = re.compile(r"(?:BEGIN|START\s+TRANSACTION)\b", re.I)
_END = re.compile(r"(COMMIT|END|ROLLBACK|ABORT)\b(?!\s+(?:TO|PREPARED)\b)", re.I)


@dataclass(frozen=True, slots=True)
class Setting:
    """A limit that a statement sets.

    `value` is its text without quotes, with `HOLE` for what is unknown; `placeholder` where a parameter is bound in
    its place. `local` is None where a parameter says whether it is. `role` where it is set for a role or database.
    """

    name: str
    value: str
    placeholder: str | None = None
    local: bool | None = False
    function: bool = False  # set_config, not SET
    role: bool = False

    @property
    def bounds(self) -> bool:
        """Whether it can end a statement: DEFAULT and a wait for locks cannot."""
        return self.name in BOUNDING and self.value.upper() != "DEFAULT"

    @property
    def none(self) -> bool:
        """Whether PostgreSQL takes the value, also one that is bound and known, for 0: *no limit*."""
        return is_none(self.value)


def without_comments(sql: str) -> str:
    """The SQL with blanks in place of its comments."""
    return _COMMENT.sub(lambda m: m[0] if m[0].startswith("'") else " ", sql)


def statements(sql: str) -> list[str]:
    """The statements of a text, stripped; `;` in quotes is none."""
    found = [""]
    for piece in _PIECES.finditer(without_comments(sql)):
        if piece[0] == ";":
            found.append("")
        else:
            found[-1] += piece[0]
    return [s.strip() for s in found if s.strip()]


def settings(sql: str) -> Iterator[Setting]:
    """The limits that the statements of a text set."""
    if not any(name in sql.lower() for name in LIMITS):
        return
    for statement in statements(sql):
        if role := _ROLE.match(statement):
            yield _setting(role[1], role[2], role=True)
        elif plain := _SET.match(statement):
            yield _setting(plain[2], plain[3], local=(plain[1] or "").upper() == "LOCAL")
        else:
            for config in _CONFIG.finditer(statement):
                yield _setting(config[1], config[2], local=_local(config[3]), function=True)


def _setting(
    name: str, value: str, *, local: bool | None = False, function: bool = False, role: bool = False
) -> Setting:
    placeholder = value if PLACEHOLDER.fullmatch(value) else None
    plain = value[1:-1].replace("''", "'") if value.startswith("'") else value
    return Setting(name.lower(), plain, placeholder, local, function, role)


def _local(text: str) -> bool | None:
    """The last argument of set_config."""
    word = text.strip("'").lower()
    if word in ("true", "t", "on", "yes", "1"):
        return True
    return False if word in ("false", "f", "off", "no", "0") else None


_UNITS = {"": 1.0, "us": 1e-3, "ms": 1.0, "s": 1e3, "min": 6e4, "h": 3.6e6, "d": 8.64e7}
_DURATION = re.compile(
    r"\s*([-+]?(?:0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?))\s*(us|ms|s|min|h|d|)\s*"
)


def milliseconds(value: str) -> float | None:
    """A time as PostgreSQL reads it for a setting in milliseconds; None for what it refuses, or is not known."""
    found = _DURATION.fullmatch(value)
    if found is None:
        return None
    digits, unit = found.groups()
    if digits.lower().lstrip("+-").startswith("0x"):
        number = float(int(digits, 16))
    elif re.fullmatch(r"[-+]?0[0-7]+", digits):
        number = float(int(digits, 8))  # as strtol reads it
    else:
        number = float(digits)
    return number * _UNITS[unit]


def is_none(value: str) -> bool:
    """Whether PostgreSQL takes a value for 0: it counts whole milliseconds, and rounds."""
    ms = milliseconds(value)
    return ms is not None and round(ms) == 0


def in_options(text: str) -> str | None:
    """The statement_timeout in server options (`-c name=value`), a DSN or a URL; None where there is none.

    What is unknown in the value is `HOLE`.
    """
    plain = unquote(text).replace("\\ ", " ").replace("+", " ")
    found = re.search(r"""(?:-c\s*|--|[?&\s'"]|^)statement[_-]timeout\s*=\s*['"]?([^\s'"&]*)""", plain)
    return found[1] if found else None


# PostGIS hands these to GEOS or to a loop that does not look for a cancel request. Measured under a limit of 0.5 s.
_DEAF = (
    "ST_HausdorffDistance", "ST_FrechetDistance", "ST_MakeValid", "ST_Union", "ST_UnaryUnion", "ST_MemUnion",
    "ST_VoronoiPolygons", "ST_VoronoiLines", "ST_DelaunayTriangles",
)  # fmt: skip
_DEAF_BY_CASE = {name.lower(): name for name in _DEAF}
_FUNCTION = re.compile(r"\bST_\w+(?=\s*\()", re.I)
# Work that is meant to take its time, and that nobody waits for: a limit on it is a matter of taste.
_MAINTENANCE = re.compile(
    r"(?:VACUUM|ANALYZE|ANALYSE|REINDEX|CLUSTER|CHECKPOINT|COPY|REFRESH\s+MATERIALIZED|LISTEN|UNLISTEN|NOTIFY"
    r"|CREATE\s+(?:UNIQUE\s+)?INDEX"
    r"|(?:CREATE|DROP|ALTER)\s+(?:DATABASE|ROLE|USER|EXTENSION|SCHEMA|PUBLICATION|SUBSCRIPTION|TABLESPACE)"
    r"|GRANT|REVOKE)\b",
    re.I,
)


def deaf(sql: str) -> list[str]:
    """The PostGIS functions in a text that a cancel request, and so a limit, may not stop."""
    found = (_DEAF_BY_CASE.get(name.lower()) for name in _FUNCTION.findall(sql))
    return list(dict.fromkeys(name for name in found if name))


def maintains(sql: str) -> bool:
    """Whether a text only maintains or administers the database, or loads it in bulk."""
    found = [s for s in statements(sql) if not _is_frame(s)]
    return bool(found) and all(_MAINTENANCE.match(s) for s in found)


def _is_frame(statement: str) -> bool:
    """Whether a statement only sets something or frames a transaction."""
    return bool(
        _BEGIN.match(statement) or _END.match(statement) or re.match(r"(?:SET|RESET|SHOW|SAVEPOINT)\b", statement, re.I)
    )


def works(sql: str) -> bool:
    """Whether a text does more than set something or frame a transaction."""
    return any(not _is_frame(s) and not _CONFIG.search(s) for s in statements(sql))


def begins(sql: str) -> bool:
    """Whether a transaction is open after the text, begun by it."""
    state = False
    for statement in statements(sql):
        state = True if _BEGIN.match(statement) else False if _END.match(statement) else state
    return state


def ends(sql: str) -> str | None:
    """`commit` or `rollback` where the text ends a transaction."""
    for statement in statements(sql):
        if found := _END.match(statement):
            return "rollback" if found[1].upper() in ("ROLLBACK", "ABORT") else "commit"
    return None
