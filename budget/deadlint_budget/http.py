"""HTTP requests under a total deadline: name lookup, connect, TLS, redirects, retries, headers and body, up and down.

requests, httpx and aiohttp are optional and imported when a function that needs them is called; `urlopen`
needs none.
"""

# ruff: noqa: PLC0415 - imports wait for the call that needs them, so that `import deadlint_budget` is quick

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    import urllib.request
    from typing import Any

    import aiohttp
    import requests

    from ._budget import Budget
    from ._httpx import AsyncDeadlineTransport, DeadlineTransport, HTTPXCancelled, HTTPXDeadlineExceeded
    from ._requests import DeadlineAdapter, HTTPCancelled, HTTPDeadlineExceeded
    from ._urllib import URLCancelled, URLDeadlineExceeded

__all__ = [
    "AsyncDeadlineTransport",
    "DeadlineAdapter",
    "DeadlineTransport",
    "HTTPCancelled",
    "HTTPDeadlineExceeded",
    "HTTPXCancelled",
    "HTTPXDeadlineExceeded",
    "URLCancelled",
    "URLDeadlineExceeded",
    "aiohttp_timeout",
    "delete",
    "get",
    "head",
    "options",
    "patch",
    "post",
    "put",
    "request",
    "session",
    "urlopen",
]

_LAZY = {
    "AsyncDeadlineTransport": "_httpx",
    "DeadlineTransport": "_httpx",
    "HTTPXCancelled": "_httpx",
    "HTTPXDeadlineExceeded": "_httpx",
    "DeadlineAdapter": "_requests",
    "HTTPCancelled": "_requests",
    "HTTPDeadlineExceeded": "_requests",
    "URLCancelled": "_urllib",
    "URLDeadlineExceeded": "_urllib",
}


if not TYPE_CHECKING:  # for a type checker the imports above are all there is

    def __getattr__(name: str) -> object:
        if name in _LAZY:
            from importlib import import_module

            value = getattr(import_module(f"{__package__}.{_LAZY[name]}"), name)
            globals()[name] = value
            return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def request(
    method: str,
    url: str,
    *,
    budget: Budget | None = None,
    want: float | None = None,
    session: requests.Session | None = None,
    **requests_kwargs: Any,
) -> requests.Response:
    """`requests.request`, over in `want` seconds and within the budget (default: the ambient one), in all.

    `timeout=` keeps the meaning that it has in requests, per connect and per read, and is cut to what is
    left. `session` is used with its headers, cookies, auth, hooks, proxies, `verify` and mounted adapters,
    and is not changed; connections are kept and reused among the calls of this module on that session. With
    `stream=True` the deadline stays on the body. An adapter that is no `HTTPAdapter` (a mock) is used as it
    is, and only asked for the time around it.

    Raises `HTTPDeadlineExceeded` (`HTTPCancelled` after a cancellation), which is also a
    `requests.exceptions.Timeout`; what requests raises while there is time is left alone.
    """
    from ._requests import request as send

    return send(method, url, budget=budget, want=want, session=session, options=requests_kwargs)


def get(
    url: str,
    params: Any = None,
    *,
    budget: Budget | None = None,
    want: float | None = None,
    session: requests.Session | None = None,
    **requests_kwargs: Any,
) -> requests.Response:
    """`requests.get` under a total deadline; see `request`."""
    return request("GET", url, params=params, budget=budget, want=want, session=session, **requests_kwargs)


def options(
    url: str,
    *,
    budget: Budget | None = None,
    want: float | None = None,
    session: requests.Session | None = None,
    **requests_kwargs: Any,
) -> requests.Response:
    """`requests.options` under a total deadline; see `request`."""
    return request("OPTIONS", url, budget=budget, want=want, session=session, **requests_kwargs)


def head(
    url: str,
    *,
    budget: Budget | None = None,
    want: float | None = None,
    session: requests.Session | None = None,
    **requests_kwargs: Any,
) -> requests.Response:
    """`requests.head` under a total deadline (redirects off, as there); see `request`."""
    requests_kwargs.setdefault("allow_redirects", False)
    return request("HEAD", url, budget=budget, want=want, session=session, **requests_kwargs)


def post(
    url: str,
    data: Any = None,
    json: Any = None,
    *,
    budget: Budget | None = None,
    want: float | None = None,
    session: requests.Session | None = None,
    **requests_kwargs: Any,
) -> requests.Response:
    """`requests.post` under a total deadline; see `request`."""
    return request("POST", url, data=data, json=json, budget=budget, want=want, session=session, **requests_kwargs)


def put(
    url: str,
    data: Any = None,
    *,
    budget: Budget | None = None,
    want: float | None = None,
    session: requests.Session | None = None,
    **requests_kwargs: Any,
) -> requests.Response:
    """`requests.put` under a total deadline; see `request`."""
    return request("PUT", url, data=data, budget=budget, want=want, session=session, **requests_kwargs)


def patch(
    url: str,
    data: Any = None,
    *,
    budget: Budget | None = None,
    want: float | None = None,
    session: requests.Session | None = None,
    **requests_kwargs: Any,
) -> requests.Response:
    """`requests.patch` under a total deadline; see `request`."""
    return request("PATCH", url, data=data, budget=budget, want=want, session=session, **requests_kwargs)


def delete(
    url: str,
    *,
    budget: Budget | None = None,
    want: float | None = None,
    session: requests.Session | None = None,
    **requests_kwargs: Any,
) -> requests.Response:
    """`requests.delete` under a total deadline; see `request`."""
    return request("DELETE", url, budget=budget, want=want, session=session, **requests_kwargs)


def session(budget: Budget | None = None) -> requests.Session:
    """A `requests.Session` whose requests all end with `budget`; None means the one ambient at each request."""
    from ._requests import session as make

    return make(budget)


def aiohttp_timeout(budget: Budget | None = None, want: float | None = None) -> aiohttp.ClientTimeout:
    """`aiohttp.ClientTimeout(total=…)` of what is left now, `want` seconds at most; for one request.

    aiohttp's `total` covers connect, headers and body, and the request ends with its own TimeoutError. Put
    `async with budget.scope():` around it for an error that names the layer, and for cancellation.
    """
    import aiohttp

    from ._bound import Bound

    return aiohttp.ClientTimeout(total=Bound("aiohttp", budget, want).seconds)


def urlopen(
    url: str | urllib.request.Request,
    data: Any = None,
    *,
    budget: Budget | None = None,
    want: float | None = None,
    context: ssl.SSLContext | None = None,
) -> Any:
    """`urllib.request.urlopen` under a total deadline, on the standard library alone.

    The deadline stays on the response, so reading the body is bounded too. Raises `URLDeadlineExceeded`,
    which is also a `urllib.error.URLError`. An opener installed with `install_opener` is not used. For `ftp:`
    the limit holds for each operation only.
    """
    from ._urllib import urlopen as open_url

    return open_url(url, data, budget=budget, want=want, context=context)
