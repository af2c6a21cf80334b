"""DL202: a timeout that holds for each read, so that nothing bounds the whole request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from deadlint.model import Level, Related
from deadlint.rule import Rule
from deadlint.site import Report, Site

from deadlint_rules import _http, _http_fixes, _http_sessions, _http_streams
from deadlint_rules._http import Bound, Form, Timeout

_FORMS = _http.REQUESTS | _http.URLOPEN | _http.URLLIB3 | _http.HTTPX | _http.HTTPX_CLIENTS
_LIMITED = (Bound.NUMBER, Bound.PARTS, Bound.CALLER, Bound.UNKNOWN)


class RequestTimeoutNotTotal(Rule):
    """A request whose timeout holds for each read, so that nothing bounds the whole.

    ## What it does
    Reports requests that have a timeout and nothing else. At the default level: `requests` calls whose timeout is
    one number, those that are streamed by a loop that never looks at a clock or a budget, and those under a limit
    or a budget that the request may outlast. At the strict level also `requests` calls with a `(connect, read)`
    pair or with a timeout that the caller gives, and the same timeouts of `httpx`, `urllib3` and `urlopen`.

    A request without any timeout is DL201.

    ## Why it is bad
    The timeout of these libraries starts again with every socket operation. Measured with a limit of 1 s: a server
    that sends one byte every 0.5 s, of its headers or of its body, holds `requests`, `urllib3`, `httpx` and
    `urlopen` for as long as it likes (still running after 9 s), also with `timeout=(1, 1)`, with urllib3's
    `Timeout(total=1)` and with `stream=True`. Redirects of 0.8 s each took 25 s, and a session with three retries
    10 s. So the number is no limit that anything above can count on.

    ## Example
    ```python
    import requests

    CONNECT_AND_READ_S = 10

    scene = requests.get("https://scenes.example.com/S2A.zip", timeout=CONNECT_AND_READ_S)
    ```

    ## Use instead
    ```python
    from deadlint_budget import http

    CONNECT_AND_READ_S = 10
    HTTP_LIMIT_S = 30

    scene = http.get("https://scenes.example.com/S2A.zip", timeout=CONNECT_AND_READ_S, want=HTTP_LIMIT_S)
    ```
    With a budget at hand, `budget=budget`. A clock between the chunks of a stream does not do it: it is not asked
    while the headers drip in, nor before a chunk is full.

    ## Fix safety
    Unsafe: a request that took longer than the new limit now raises. A `requests` call keeps its `timeout=` and gets
    the budget in scope, or else the constant that `constants.http` names; where that would be shorter than the
    timeout, or the body is streamed, the fix is only shown, since the right total is yours to choose.
    `urlopen(timeout=…)` becomes `http.urlopen(want=…)` with the same number. httpx and urllib3 have no fix.

    ## Options
    - `constants.http`: name and value of the constant that fixes use.

    ## References
    - [requests: timeouts](https://requests.readthedocs.io/en/latest/user/quickstart/#timeouts)
    - [urllib3.Timeout](https://urllib3.readthedocs.io/en/stable/reference/urllib3.util.html#urllib3.util.Timeout)
    """

    code = "DL202"
    name = "request-timeout-not-total"
    since = "0.1.0"
    calls = frozenset(_FORMS)
    words = tuple(
        tuple(dict.fromkeys((*group, "timeout")))
        for group in (
            *_http.REQUESTS_WORDS, *_http.HTTPX_WORDS, *_http.URLLIB3_WORDS, ("urllib", "urlopen"),
            ("urllib", "build_opener"), ("urllib", "OpenerDirector"),
        )
    )  # fmt: skip

    def check(self, site: Site) -> Iterable[Report]:
        form = _FORMS.get(site.name)
        if form is None:
            return ()
        timeout = _http.timeout_of(site, form)
        if timeout.bound not in _LIMITED or not _given(site, form):
            return ()
        return _requests(site, timeout) if form.library == "requests" else _other(site, timeout, form)


def _given(site: Site, form: Form) -> bool:
    """Whether the call itself gives the timeout, so that it is not only perhaps in a `**mapping`."""
    argument = site.argument("timeout", form.position)
    return argument.node is not None or not argument.unknown


def _requests(site: Site, timeout: Timeout) -> Iterator[Report]:
    if _http_sessions.overridden(site) and timeout.bound is Bound.CALLER:
        return
    streamed = _http_streams.unwatched(site)
    around = site.around
    pressing = streamed or bool(around) or site.budget is not None or timeout.bound is Bound.NUMBER
    related: tuple[Related, ...] = ()
    if around:
        outer = around[0].limit
        related = (Related(outer.path, outer.span, f"{outer.label} is around it"),)
    verb = site.name.rpartition(".")[2]
    yield site.report(
        _message(site, timeout, streamed=streamed),
        _http_fixes.remedy(site, what=f"http.{verb if verb in _http.VERBS else 'request'}"),
        level=Level.DEFAULT if pressing else Level.STRICT,
        related=related,
        fix=_http_fixes.of_requests(site, known_seconds=timeout.seconds),
    )


def _message(site: Site, timeout: Timeout, *, streamed: bool) -> str:
    call = _http.called(site)
    each = f"{timeout.seconds:g} s" if timeout.seconds is not None and timeout.bound is not Bound.CALLER else "it"
    head = f"the timeout of `{call}` holds for each connect and each read"
    if streamed:
        return f"{head}, and nothing looks at the clock while the body is read: a slow server streams for ever"
    if each == "it":
        return f"{head}, not for the whole: a server that sends a byte now and then holds it for ever"
    return f"{head}, {each} at a time, not for the whole: a server that sends a byte now and then holds it for ever"


def _other(site: Site, timeout: Timeout, form: Form) -> Iterator[Report]:
    if timeout.bound is Bound.UNKNOWN and site.argument("timeout", form.position).node is None:
        return
    if site.name.startswith("httpx.AsyncClient") and _http.scoped(site):
        return
    fix = None
    if form.library == "urlopen":
        fix = _http_fixes.of_urlopen(site, known_seconds=timeout.seconds or 0.0)
    yield site.report(
        _message(site, timeout, streamed=False),
        _http_fixes.remedy(site, what="http.urlopen")
        if form.library == "urlopen"
        else "bound the whole: an `asyncio.timeout` around an async request, else `deadlint_budget.http`",
        level=Level.STRICT,
        fix=fix,
    )
