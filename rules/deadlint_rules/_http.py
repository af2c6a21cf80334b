"""What the HTTP rules share: which calls make requests, and what is known of the timeout of each."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from deadlint.index.scopes import dotted
from deadlint.index.values import (
    NONE,
    UNKNOWN,
    Const,
    Mapping,
    Parameter,
    Result,
    Sequence,
    Value,
    Values,
    number,
)
from deadlint.site import Argument, Site, Target

VERBS = ("get", "post", "put", "patch", "delete", "head", "options")


@dataclass(frozen=True, slots=True)
class Form:
    """How a call takes its timeout: the library whose rules hold, and the position of `timeout`."""

    library: str
    position: int | None = None


def _forms(library: str, base: str, names: tuple[str, ...]) -> dict[str, Form]:
    return {f"{base}.{name}": Form(library) for name in names}


_URLLIB3_CALLS = ("request", "urlopen", "request_encode_url", "request_encode_body")
_URLLIB3_POOLS = ("PoolManager", "ProxyManager", "HTTPConnectionPool", "HTTPSConnectionPool")
# `*` is what `getattr(requests, verb)` may be.
REQUESTS = (
    _forms("requests", "requests", (*VERBS, "request", "*"))
    | _forms("requests", "requests.Session", (*VERBS, "send", "*"))
    | {"requests.Session.request": Form("requests", 8)}
)
URLOPEN = {
    "urllib.request.urlopen": Form("urlopen", 2),
    "urllib.request.OpenerDirector.open": Form("urlopen", 2),
}
URLLIB3 = {"urllib3.request": Form("urllib3")} | {
    name: form for pool in _URLLIB3_POOLS for name, form in _forms("urllib3", f"urllib3.{pool}", _URLLIB3_CALLS).items()
}
HTTPX_CLIENTS = {
    f"httpx.{client}{suffix}": Form("httpx") for client in ("Client", "AsyncClient") for suffix in ("", ".__init__")
}
HTTPX = {
    name: form
    for base in ("httpx", "httpx.Client", "httpx.AsyncClient")
    for name, form in _forms("httpx", base, (*VERBS, "request", "stream")).items()
}
AIOHTTP_CLIENTS = {"aiohttp.ClientSession": Form("aiohttp"), "aiohttp.ClientSession.__init__": Form("aiohttp")}
AIOHTTP = {"aiohttp.request": Form("aiohttp")} | _forms("aiohttp", "aiohttp.ClientSession", (*VERBS, "request"))
HTTP_CLIENT = {
    "http.client.HTTPConnection": Form("http.client", 2),
    "http.client.HTTPSConnection": Form("http.client"),
}
SOCKET = {"socket.create_connection": Form("socket", 1)}

# What a call must name for the resolver to find one of ours: an import of the library and, where the library is in
# every second file, the call as well.
REQUESTS_WORDS = (
    ("import requests",), ("from requests",), (", requests",), ('"requests"',), ("'requests'",),
    ("requests_cache",), ("requests_oauthlib",), ("requests_toolbelt",), ("requests_futures",),
)  # fmt: skip
URLLIB_WORDS = (("urllib", "urlopen"), ("urllib", "build_opener"), ("urllib", "OpenerDirector"))
URLLIB3_WORDS = (
    ("urllib3", "PoolManager"), ("urllib3", "ProxyManager"), ("urllib3", "ConnectionPool"),
    ("urllib3", "connection_from_url"), ("urllib3", "urllib3.request"),
)  # fmt: skip
HTTPX_WORDS = (("import httpx", "timeout"), ("from httpx", "timeout"), ("httpx", "AsyncClient", "timeout"))


class Bound(Enum):
    """What a timeout does for a request."""

    ABSENT = "not given"
    NONE = "given as no limit"
    NUMBER = "one number for each connect and each read"
    PARTS = "a number for connect and another for each read"
    CALLER = "what the caller gives"
    TOTAL = "a limit on the whole"
    UNKNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Timeout:
    """What is known of a timeout.

    `part` is the phase that has no limit where it is not all of them; `certain` is False where the value is one of
    several that other code of the file gives.
    """

    bound: Bound
    seconds: float | None = None
    part: str = ""
    certain: bool = True
    parameter: str = ""

    @property
    def unlimited(self) -> bool:
        return self.bound in (Bound.ABSENT, Bound.NONE)


def timeout_of(site: Site, form: Form) -> Timeout:
    """What is known of the timeout that a request or client constructor gives."""
    argument = _argument(site, form)
    if argument.absent:
        return Timeout(Bound.ABSENT)
    values = argument.values
    match argument.node:
        case ast.BoolOp(op=ast.Or(), values=[*_, ast.Constant(value=None)]):
            # `timeout or None` says that 0 stands for none: what the caller gives decides.
            values = tuple(v for v in values if v != NONE) or values
    judged = [_judged(value, form.library, site) for value in values]
    if argument.node is None and UNKNOWN not in values and _open_spread(site):
        judged = [replace(t, bound=Bound.CALLER) if t.bound in (Bound.NUMBER, Bound.PARTS) else t for t in judged]
    return _combined(judged, certain=_set_here(argument.node, site))


def _argument(site: Site, form: Form) -> Argument:
    argument = site.argument("timeout", form.position)
    if form.library == "requests" and site.name in ("requests.*", "requests.Session.*") and argument.absent:
        return site.argument("timeout", 8) if site.call.args[8:] else argument
    return argument


def _open_spread(site: Site) -> bool:
    """Whether the call has a `**mapping` to which others may have added."""
    return any(
        isinstance(value, Mapping) and value.open
        for keyword in site.call.keywords
        if keyword.arg is None
        for value in site.values(keyword.value)
    )


def _set_here(node: ast.expr | None, site: Site) -> bool:
    """Whether all that may set the expression is in the function: one None among other values is then a real path."""
    match node:
        case ast.Attribute() | ast.Subscript() | ast.Call():
            return False
        case ast.Name(id=name):
            home = site.module.resolver.scope_binding(name, site.scope)
            return home is not None and home.kind in ("function", "lambda")
    return True


def _combined(judged: list[Timeout], *, certain: bool) -> Timeout:
    """One verdict for several possible values: no limit outweighs the rest, then what is least known."""
    none = [t for t in judged if t.unlimited]
    if none:
        # A default of None that went through an attribute is what whoever made the object chose to leave.
        every = len(none) == len(judged) and not none[0].parameter
        return replace(none[0], certain=certain or every)
    for bound in (Bound.UNKNOWN, Bound.CALLER, Bound.PARTS, Bound.NUMBER, Bound.TOTAL):
        of_kind = [t for t in judged if t.bound is bound]
        if of_kind:
            return of_kind[0]
    return Timeout(Bound.UNKNOWN)


def _judged(value: Value, library: str, site: Site) -> Timeout:
    seconds = number(value)
    if seconds is not None:
        return _plain(seconds, library)
    match value:
        case Const(value=None):
            return Timeout(Bound.NONE)
        case Parameter(default=default, name=name) if NONE in default:
            return Timeout(Bound.NONE, parameter=name)
        case Parameter(name=name):
            return Timeout(Bound.CALLER, parameter=name)
        case Sequence(items=items) if items and library in ("requests", "httpx"):
            return _parts(items, library, site)
        case Result(name=name, call=ast.Call() as call) if name in _OBJECTS:
            scope = value.scope or site.scope
            return _OBJECTS[name](Site(site.module, call, scope, (Target(name),), name))
    return Timeout(Bound.UNKNOWN)


def _plain(seconds: float, library: str) -> Timeout:
    if library == "aiohttp":
        return Timeout(Bound.TOTAL if seconds else Bound.NONE, seconds)
    return Timeout(Bound.NUMBER, seconds)


_PHASES = ("connect", "read", "write", "pool")


def _parts(items: tuple[Values, ...], library: str, site: Site) -> Timeout:
    """A pair of requests, or the two to four numbers of httpx, which has no limit for those that are left out."""
    wanted = 2 if library == "requests" else 3
    longest: float | None = None
    for phase, values in zip(_PHASES, (*items, *((NONE,) for _ in range(wanted - len(items)))), strict=False):
        judged = [_judged(value, library, site) for value in values]
        if phase != "pool" and judged and all(t.unlimited for t in judged):
            return Timeout(Bound.NONE, part=phase, parameter=judged[0].parameter)
        known = [t.seconds for t in judged if t.seconds is not None]
        longest = max([*known, *([] if longest is None else [longest])], default=None)
    return Timeout(Bound.PARTS, longest)


def _httpx_timeout(made: Site) -> Timeout:
    """`httpx.Timeout(default, connect=, read=, write=, pool=)`."""
    base = timeout_of(made, Form("httpx", 0))
    for phase in _PHASES[:3]:
        own = made.argument(phase)
        if own.absent and base.unlimited and base.part in ("", phase):
            return Timeout(Bound.NONE, part="" if base.part == "" and _only_base(made) else phase)
        if not own.absent and all(v == NONE for v in own.values):
            return Timeout(Bound.NONE, part=phase)
    if base.bound is Bound.NUMBER:
        return base
    return Timeout(Bound.UNKNOWN if base.bound is Bound.UNKNOWN else Bound.PARTS, base.seconds)


def _only_base(made: Site) -> bool:
    return not any(keyword.arg in _PHASES for keyword in made.call.keywords)


def _urllib3_timeout(made: Site) -> Timeout:
    """`urllib3.Timeout(total, connect, read)`; total is cut down to each read, so that it is no total either."""
    total = made.argument("total", 0)
    if not _unlimited(total):
        return Timeout(Bound.PARTS)
    for phase, position in (("connect", 1), ("read", 2)):
        if _unlimited(made.argument(phase, position)):
            return Timeout(Bound.NONE, part=phase)
    return Timeout(Bound.PARTS)


def _aiohttp_timeout(made: Site) -> Timeout:
    """`aiohttp.ClientTimeout(total, connect, sock_read, sock_connect)`; a total that is not given is none."""
    total = made.argument("total", 0)
    if _unlimited(total, zero=True):
        read = made.argument("sock_read", 2)
        return Timeout(Bound.NONE if _unlimited(read, zero=True) else Bound.PARTS)
    return Timeout(Bound.TOTAL)


def _unlimited(argument: Argument, *, zero: bool = False) -> bool:
    nothing = (NONE, Const(0), Const(0.0)) if zero else (NONE,)
    return argument.absent or all(value in nothing for value in argument.values)


_OBJECTS = {
    "httpx.Timeout": _httpx_timeout,
    "urllib3.Timeout": _urllib3_timeout,
    "aiohttp.ClientTimeout": _aiohttp_timeout,
}


# --- what a site says of itself ------------------------------------------------------------------------------


def called(site: Site) -> str:
    """The call in the words of the source, short enough for a message."""
    text = ast.unparse(site.call.func)
    return text if len(text) <= 40 and "\n" not in text else site.name


def constructor(site: Site) -> Site | None:
    """The call that made the client, session or pool whose method this is, where it is in sight."""
    match site.target.receiver:
        case Result(name=name, call=ast.Call() as call, scope=scope):
            return Site(site.module, call, scope or site.scope, (Target(name),), name)
    return None


def scoped(site: Site) -> bool:
    """Whether a scope such as `asyncio.timeout` is around the call."""
    return any(around.limit.layer == "scope" for around in site.around)


def names_under(node: ast.AST) -> Iterator[str]:
    """The dotted names in a piece of source."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name | ast.Attribute):
            yield dotted(inner)
