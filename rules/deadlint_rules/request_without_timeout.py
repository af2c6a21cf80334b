"""DL201: an HTTP request that nothing bounds."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from deadlint.index.flow import takes_kwargs
from deadlint.index.scopes import Scope
from deadlint.index.values import NONE, Const, Function, Result
from deadlint.model import Level, Related
from deadlint.rule import Rule
from deadlint.site import PROJECT, Report, Site, Target

from deadlint_rules import _http, _http_fixes, _http_sessions, _http_wrappers
from deadlint_rules._http import Bound, Form, Timeout

_RETRIEVE = "urllib.request.urlretrieve"
_CONNECT = "socket.socket.connect"
_FORMS = (
    _http.REQUESTS | _http.URLOPEN | _http.URLLIB3 | _http.HTTPX | _http.HTTPX_CLIENTS | _http.AIOHTTP
    | _http.AIOHTTP_CLIENTS | _http.HTTP_CLIENT | _http.SOCKET
)  # fmt: skip


class RequestWithoutTimeout(Rule):
    """An HTTP request, or a connection, that nothing bounds.

    ## What it does
    Reports `requests` calls without a timeout: functions, aliases, `functools.partial`, and sessions in locals,
    attributes, parameters and subclasses. `timeout=None`, a pair with None in it, and a parameter whose default is
    None count as no timeout. So do `httpx` and `aiohttp` clients whose limit is switched off (their defaults of 5 s
    and 300 s are fine), and `urlopen`, `urlretrieve`, `urllib3`, `http.client` and `socket.create_connection`
    without one.

    A session that sets a timeout for all of its requests is clean: a subclass or a mounted adapter that does so, or
    `session.request = partial(session.request, timeout=…)`. A function that hands its `**kwargs` on is clean, and
    its callers in the file that give no timeout are reported instead.

    ## Why it is bad
    requests, urllib and http.client wait without limit by default. A server that accepts the connection and then
    says nothing holds the call for ever, and with it the worker, the lock or the database transaction around it.
    Only the connect ends by itself, after about 130 s of unanswered packets on Linux.

    ## Example
    ```python
    import requests

    tile = requests.get("https://tiles.example.com/12/2200/1343.tif")
    ```

    ## Use instead
    ```python
    import requests
    from deadlint_budget import http

    HTTP_LIMIT_S = 30

    tile = http.get("https://tiles.example.com/12/2200/1343.tif", want=HTTP_LIMIT_S)
    ```
    With a budget at hand, `budget=budget`. `timeout=` alone holds for each connect and each read: see DL202.

    ## Fix safety
    Unsafe: a request that took longer than the new limit now raises. A `requests` or `urlopen` call goes through
    `deadlint_budget.http` with the budget in scope, else with the constant that `constants.http` names;
    `http.client`, sockets and aiohttp get that number themselves. Calls with a `**mapping` of unknown content,
    partials and `Session.send` are only shown; httpx and urllib3 have no fix, since their timeout bounds each read
    and not the whole.

    ## Options
    - `wrappers.requests`, `wrappers.sessions`: functions and sessions of the project that set a timeout themselves.
    - `constants.http`: name and value of the constant that fixes use.

    ## References
    - [requests: timeouts](https://requests.readthedocs.io/en/latest/user/advanced/#timeouts)
    - [urllib.request.urlopen](https://docs.python.org/3/library/urllib.request.html#urllib.request.urlopen)
    """

    code = "DL201"
    name = "request-without-timeout"
    since = "0.1.0"
    calls = frozenset({*_FORMS, _RETRIEVE, _CONNECT, PROJECT})
    words = (
        *_http.REQUESTS_WORDS, *_http.URLLIB_WORDS, *_http.URLLIB3_WORDS, *_http.HTTPX_WORDS,
        ("urllib", "urlretrieve"), ("aiohttp", "ClientTimeout"), ("aiohttp", "ClientSession", "timeout"),
        ("aiohttp.request", "timeout"), ("HTTPConnection",), ("HTTPSConnection",),
        ("socket", "create_connection"), ("socket.socket", ".connect("), ("from socket import", ".connect("),
    )  # fmt: skip

    def concerns(self, function: Scope) -> bool:
        """Only one that hands its `**kwargs` on is a wrapper."""
        return takes_kwargs(function)

    def check(self, site: Site) -> Iterable[Report]:
        if site.name == PROJECT:
            return _handed_on(site)
        if site.name == _RETRIEVE:
            return _retrieve(site)
        if site.name == _CONNECT:
            return _connect(site)
        form = _FORMS.get(site.name)
        if form is None:
            return ()
        timeout = _http.timeout_of(site, form)
        match form.library:
            case "requests":
                return _requests(site, timeout)
            case "urllib3":
                return _urllib3(site, timeout)
            case "httpx" | "aiohttp":
                return _async_client(site, timeout, form)
            case "urlopen":
                return _urlopen(site, timeout)
        return _connection(site, timeout)


# --- requests -------------------------------------------------------------------------------------------------


def _requests(site: Site, timeout: Timeout) -> Iterator[Report]:
    if timeout.bound is Bound.UNKNOWN and _http_wrappers.drops_timeout(site):
        timeout = Timeout(Bound.ABSENT)
    if not timeout.unlimited or _http_sessions.overridden(site) or _http_wrappers.configured(site):
        return
    default = _http_sessions.default_of(site) if timeout.bound is Bound.ABSENT else _http_sessions.Default.NO
    if default is _http_sessions.Default.YES:
        return
    sure = timeout.certain and default is _http_sessions.Default.NO
    send = site.name.endswith(".send")
    yield site.report(
        _message(site, timeout),
        _http_fixes.remedy(site, what="http.request" if send else f"http.{_verb(site)}"),
        level=Level.DEFAULT if sure else Level.STRICT,
        related=_made_at(site),
        fix=_http_fixes.of_requests(site),
    )


def _verb(site: Site) -> str:
    verb = site.name.rpartition(".")[2]
    return verb if verb in _http.VERBS else "request"


def _message(site: Site, timeout: Timeout) -> str:
    call = _http.called(site)
    match timeout:
        case Timeout(bound=Bound.ABSENT):
            return f"`{call}` has no timeout: a server that stops answering holds it for ever"
        case Timeout(part=part) if part:
            return f"the timeout of `{call}` leaves its {part} without a limit: a silent server holds it for ever"
        case Timeout(parameter=parameter) if parameter:
            return (
                f"`{parameter}` is None where the caller gives nothing, and then nothing bounds `{call}`:"
                " a silent server holds it for ever"
            )
        case Timeout(certain=False):
            return f"the timeout of `{call}` may be None, and then a silent server holds it for ever"
    return f"`{call}` has its timeout switched off by None: a server that stops answering holds it for ever"


def _made_at(site: Site) -> tuple[Related, ...]:
    made = _http.constructor(site)
    if made is None or made.call.lineno == site.call.lineno or made.scope.module is not site.module.scope:
        return ()
    return (site.related(made.call, "the session, which sets no timeout"),)


def _handed_on(site: Site) -> Iterator[Report]:
    """A call without a timeout of a function that hands its `**kwargs` on to a request."""
    given = site.argument("timeout")
    if not given.absent and given.constant != NONE:
        return
    for target in site.targets:
        match target:
            case Target(name=name, receiver=Function(scope=function)) if name == PROJECT:
                request = _http_wrappers.request_of(function, site.module)
                if request is not None:
                    yield _caller(site, function, request)
                    return


def _caller(site: Site, function: Scope, request: Site) -> Report:
    value, _ = _http_fixes.seconds(site)
    here = function.module is site.module.scope
    return site.report(
        f"this call gives no timeout, and `{function.name}` hands on to `{_http.called(request)}` what it is given: a"
        " server that stops answering holds it for ever",
        f"give it `timeout={value}`, or let `{function.name}` bound the whole by `deadlint_budget.http`",
        related=(site.related(request.call, "the request that is left without a limit"),) if here else (),
        fix=_http_fixes.add_timeout(site, site.call, hidden=not _http_wrappers.calls_itself(site, function)),
    )


# --- the other libraries --------------------------------------------------------------------------------------


def _urllib3(site: Site, timeout: Timeout) -> Iterator[Report]:
    if timeout.bound is Bound.ABSENT and site.name != "urllib3.request":
        made = _http.constructor(site)
        if made is None:
            return
        timeout = _http.timeout_of(made, Form("urllib3"))
    if timeout.unlimited and not (timeout.bound is Bound.ABSENT and _socket_default(site) is True):
        yield site.report(
            _message(site, timeout),
            "give the pool or the request a `timeout`, which holds for each connect and each read",
            level=_level(site, timeout),
        )


def _async_client(site: Site, timeout: Timeout, form: Form) -> Iterator[Report]:
    client = site.name in _http.HTTPX_CLIENTS or site.name in _http.AIOHTTP_CLIENTS
    if timeout.bound is not Bound.NONE or (client and form.library == "aiohttp" and _is_plain_none(site)):
        return
    if not client and (_disabled_where_made(site, form) or _bounded_by_scope(site)):
        return
    level = Level.DEFAULT if timeout.certain else Level.STRICT
    call = _http.called(site)
    if form.library == "aiohttp":
        yield site.report(
            f"`{call}` has no limit on its total: a server that stops answering holds each request for ever",
            "give `aiohttp.ClientTimeout` a `total`",
            level=level,
            fix=_http_fixes.total_of(site, _client_timeout(site)),
        )
    else:
        yield site.report(_message(site, timeout), "leave the timeout on, and bound the whole around it", level=level)


def _is_plain_none(site: Site) -> bool:
    """`ClientSession(timeout=None)` is the default of 300 s."""
    return site.argument("timeout").constant == NONE


def _client_timeout(site: Site) -> ast.Call | None:
    match site.argument("timeout").values:
        case (Result(name="aiohttp.ClientTimeout", call=ast.Call() as call),):
            return call
    return None


def _disabled_where_made(site: Site, form: Form) -> bool:
    """Whether the client is without a limit itself: it is reported where it is made."""
    made = _http.constructor(site)
    return made is not None and _http.timeout_of(made, form).bound is Bound.NONE


def _bounded_by_scope(site: Site) -> bool:
    """Whether an asyncio scope bounds the whole of an async request; it does nothing for a blocking one."""
    return site.name.startswith(("httpx.AsyncClient", "aiohttp")) and _http.scoped(site)


def _urlopen(site: Site, timeout: Timeout) -> Iterator[Report]:
    if not timeout.unlimited or _local_url(site):
        return
    if timeout.bound is Bound.ABSENT and _socket_default(site) is True:
        return
    yield site.report(
        _message(site, timeout),
        _http_fixes.remedy(site, what="http.urlopen"),
        level=_level(site, timeout),
        fix=_http_fixes.of_urlopen(site),
    )


def _local_url(site: Site) -> bool:
    """Whether what is opened is a file or data, by its literal URL."""
    first = site.argument("url", 0).constant or site.argument("fullurl", 0).constant
    return isinstance(first, Const) and str(first.value).startswith(("file:", "data:"))


def _retrieve(site: Site) -> Iterator[Report]:
    if _local_url(site) or _socket_default(site) is True:
        return
    yield site.report(
        f"`{_http.called(site)}` cannot be given a timeout: a server that stops answering holds it for ever",
        "download it with `http.urlopen` of deadlint_budget, which bounds the whole",
        level=_level(site, Timeout(Bound.ABSENT)),
    )


def _connection(site: Site, timeout: Timeout) -> Iterator[Report]:
    if not timeout.unlimited or (timeout.bound is Bound.ABSENT and _socket_default(site) is True):
        return
    later = _set_later(site)
    if later and site.name in _http.HTTP_CLIENT:
        return
    value, _ = _http_fixes.seconds(site)
    yield site.report(
        _message(site, timeout),
        f"give it `timeout={value}`",
        level=Level.STRICT if later else _level(site, timeout),
        fix=_http_fixes.add_timeout(site, site.call, hidden=site.target.partial is not None),
    )


def _connect(site: Site) -> Iterator[Report]:
    """A plain socket: strict, since what it talks to is not known."""
    made = _http.constructor(site)
    if made is None or made.name != "socket.socket" or _socket_default(site) is not None:
        return
    kinds = {k for value in (*made.call.args, *(k.value for k in made.call.keywords)) for k in _http.names_under(value)}
    if any(kind.endswith(("AF_UNIX", "SOCK_DGRAM", "AF_NETLINK", "AF_CAN", "SOCK_RAW")) for kind in kinds):
        return
    if _set_later(made):
        return
    yield site.report(
        f"`{_http.called(site)}` is on a socket without a timeout: a peer that says nothing holds its reads for ever",
        "call `settimeout` on the socket before it connects",
        level=Level.STRICT,
        related=(site.related(made.call, "the socket"),) if made.scope.module is site.module.scope else (),
    )


def _set_later(site: Site) -> bool:
    """Whether the file sets the timeout of what this call makes afterwards: `x.timeout = …`, `x.settimeout(…)`."""
    value = next((v for v in site.values(site.call) if isinstance(v, Result)), None)
    if value is None:
        return False
    module = site.module
    setting = module.sites_named("settimeout", "setblocking")
    methods = (t for other in setting for t in other.targets if t.receiver == value)
    if any(target.name.endswith((".settimeout", ".setblocking")) for target in methods):
        return True
    return _http_sessions.sets_attribute(value, "timeout", module)


def _level(site: Site, timeout: Timeout) -> Level:
    unsure = not timeout.certain or (timeout.bound is Bound.ABSENT and _socket_default(site) is False)
    return Level.STRICT if unsure else Level.DEFAULT


def _socket_default(site: Site) -> bool | None:
    """Whether the file calls `socket.setdefaulttimeout`: True at module level, False in a function, None nowhere."""
    module = site.module
    if "setdefaulttimeout" not in module.source.text:
        return None
    found: bool | None = None
    for other in module.sites_named("setdefaulttimeout"):
        sets = any(t.name == "socket.setdefaulttimeout" for t in other.targets)
        if sets and other.argument("timeout", 0).constant != NONE:
            found = found or other.scope.kind == "module"
    return found
