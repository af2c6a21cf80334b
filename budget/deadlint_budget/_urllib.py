"""`urlopen` with a total deadline, on the standard library alone."""

from __future__ import annotations

import http.client
import ssl
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from ._armed import Arming, Mapped, armed, connect
from ._bound import Bound, Watched, bounded
from ._budget import Budget
from ._errors import Cancelled, DeadlineExceeded


class URLDeadlineExceeded(DeadlineExceeded, urllib.error.URLError):
    """A request outlasted its limit; also a `urllib.error.URLError`, with the driver's error as its cause."""

    filename: Any = None
    reason: str = ""  # as URLError has it: the message; what `cancel` was told where that ended it


class URLCancelled(URLDeadlineExceeded, Cancelled):
    """A request ended because its budget was cancelled."""


def error_of(bound: Bound) -> DeadlineExceeded:
    return _with_reason(bound.error(URLDeadlineExceeded, URLCancelled))


def _with_reason(error: DeadlineExceeded) -> DeadlineExceeded:
    error.__dict__.setdefault("reason", str(error))
    return error


class _Connecting(http.client.HTTPConnection):
    """`http.client` over armed sockets."""

    bound: Bound

    def connect(self) -> None:
        arming = Arming()
        arming.use(self.bound)
        idle = self.timeout if isinstance(self.timeout, (int, float)) else None

        def create(address: tuple[str, int], timeout: Any = None, source: Any = None) -> Any:
            return connect(*address, arming, idle=idle, source_address=source)

        self._create_connection = create
        super().connect()
        self.sock = armed(self.sock, arming)


class _PlainConnection(_Connecting):
    pass


class _TLSConnection(_Connecting, http.client.HTTPSConnection):
    pass


class _Handler(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
    """Opens http and https with connections under `bound`."""

    def __init__(self, bound: Bound, context: ssl.SSLContext | None) -> None:
        # Not HTTPSHandler's, which from 3.12 on makes a TLS context at once: 15 ms.
        urllib.request.AbstractHTTPHandler.__init__(self)
        self._bound = bound
        self._tls = context

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(self._connection, req)

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(self._tls_connection, req)

    def _connection(self, host: str, **options: Any) -> http.client.HTTPConnection:
        made = _PlainConnection(host, **options)
        made.bound = self._bound
        made.response_class = _response_class(self._bound)
        return made

    def _tls_connection(self, host: str, **options: Any) -> http.client.HTTPConnection:
        context = self._tls or ssl.create_default_context()  # 15 ms: not before there is an https URL
        made = _TLSConnection(host, context=context, **options)
        made.bound = self._bound
        made.response_class = _response_class(self._bound)
        return made


class _Response(http.client.HTTPResponse):
    """A response whose reads raise `URLDeadlineExceeded` when the time is over."""

    bound: Bound

    def read(self, amt: int | None = None) -> bytes:
        with Mapped(self.bound, error_of):
            return super().read(amt)

    def read1(self, n: int = -1) -> bytes:
        with Mapped(self.bound, error_of):
            return super().read1(n)

    def readinto(self, b: Any) -> int:
        with Mapped(self.bound, error_of):
            return super().readinto(b)

    def readline(self, limit: int = -1) -> bytes:  # type: ignore[override]
        with Mapped(self.bound, error_of):
            return super().readline(limit)


def _response_class(bound: Bound) -> type[_Response]:
    return type("HTTPResponse", (_Response,), {"bound": bound})


def urlopen(
    url: str | urllib.request.Request,
    data: Any = None,
    *,
    budget: Budget | None = None,
    want: float | None = None,
    context: ssl.SSLContext | None = None,
) -> Any:
    """`urllib.request.urlopen` within `want` seconds and the budget, in all: connect, redirects, headers and body.

    The deadline stays on the response, so reading the body is bounded too. Raises `URLDeadlineExceeded`,
    which is also a `urllib.error.URLError`. An opener that was installed with `install_opener` is not used.
    `file:` and `data:` URLs work as ever; for `ftp:` the limit holds for each operation only.
    """
    address = url.full_url if isinstance(url, urllib.request.Request) else url
    bound = url_bound(address, budget, want)
    opener = urllib.request.build_opener(_Handler(bound, context))
    with Watched("urlopen", bound), Mapped(bound, error_of):
        left = bound.remaining()
        # By position, as the limit is to be left out where nothing bounds the request.
        return opener.open(url, data, *(() if left is None else (left,)))


def url_bound(address: str, budget: Budget | None, want: float | None) -> Bound:
    """The bound of a request; `URLDeadlineExceeded` where there is no time to begin with."""
    try:
        return bounded(url_op(address), budget, want, (URLDeadlineExceeded, URLCancelled), note="not sent")
    except DeadlineExceeded as refused:
        raise _with_reason(refused) from None


def url_op(address: str) -> str:
    """What errors call a request: its host. No path and no query, which may hold secrets."""
    try:
        return urllib.parse.urlsplit(address).hostname or "request"
    except ValueError:
        return "request"
