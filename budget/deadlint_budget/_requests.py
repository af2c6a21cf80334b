"""requests under a total deadline: an adapter whose connections are armed, and calls on a session one has."""

from __future__ import annotations

import copy
import threading
import weakref
from collections import OrderedDict
from collections.abc import Generator
from contextvars import ContextVar
from typing import Any

import requests
import requests.adapters
import urllib3
import urllib3.connection
import urllib3.exceptions
import urllib3.response
from urllib3.util.retry import Retry

from ._armed import Arming, Mapped, armed, connect, pause
from ._bound import Bound, Watched, bounded
from ._budget import Budget
from ._errors import Cancelled, DeadlineExceeded
from ._urllib import url_op

# The bound of the request that this thread (or task) is making, for the connection that it takes from the
# pool.
_active: ContextVar[Bound | None] = ContextVar("deadlint_http_bound", default=None)


class HTTPDeadlineExceeded(DeadlineExceeded, requests.exceptions.Timeout):
    """A request outlasted its limit; also a `requests.exceptions.Timeout`, with the library's error as its cause."""

    request: Any = None
    response: Any = None


class HTTPCancelled(HTTPDeadlineExceeded, Cancelled):
    """A request ended because its budget was cancelled."""


def error_of(bound: Bound) -> DeadlineExceeded:
    return bound.error(HTTPDeadlineExceeded, HTTPCancelled)


def request_bound(url: str, budget: Budget | None, want: float | None) -> Bound:
    """The bound of a request; `HTTPDeadlineExceeded` where there is no time to begin with."""
    return bounded(url_op(url), budget, want, (HTTPDeadlineExceeded, HTTPCancelled), note="not sent")


# --- the connections ---------------------------------------------------------------------------------------


class _ResponseMixin(urllib3.response.HTTPResponse):
    """A response whose reads raise `HTTPDeadlineExceeded`, which passes through requests as it is."""

    bound: Bound | None

    def read(self, *args: Any, **kwargs: Any) -> bytes:
        with Mapped(self.bound, error_of):
            return super().read(*args, **kwargs)

    def read1(self, *args: Any, **kwargs: Any) -> bytes:
        with Mapped(self.bound, error_of):
            return super().read1(*args, **kwargs)

    def read_chunked(self, *args: Any, **kwargs: Any) -> Generator[bytes, None, None]:
        chunks = super().read_chunked(*args, **kwargs)
        while True:
            with Mapped(self.bound, error_of):
                try:
                    chunk = next(chunks)
                except StopIteration:
                    return
            yield chunk


class _ConnectionMixin(urllib3.connection.HTTPConnection):
    """A connection over an armed socket; the bound is the one of the request that is made on it."""

    _arming: Arming

    def connect(self) -> None:
        self._arming = Arming()
        self._arming.use(_active.get())
        super().connect()
        if self.sock is not None:
            self.sock = armed(self.sock, self._arming)

    def _new_conn(self) -> Any:
        idle = self.timeout if isinstance(self.timeout, (int, float)) else None
        try:
            return connect(
                self._dns_host,
                self.port or self.default_port,
                self._arming,
                idle=idle,
                source_address=self.source_address,
                options=self.socket_options,
            )
        except TimeoutError as error:
            words = f"Connection to {self.host} timed out. (connect timeout={self.timeout})"
            raise urllib3.exceptions.ConnectTimeoutError(self, words) from error
        except OSError as error:
            words = f"Failed to establish a new connection: {error}"
            raise urllib3.exceptions.NewConnectionError(self, words) from error

    def request(self, *args: Any, **kwargs: Any) -> None:
        arming = getattr(self, "_arming", None)
        if arming is not None and self.sock is not None:
            arming.use(_active.get())  # a connection from the pool: this request's bound, not the last one's
        super().request(*args, **kwargs)

    def getresponse(self) -> Any:
        response = super().getresponse()
        bound = self._arming.bound
        if bound is not None and type(response) is urllib3.response.HTTPResponse:
            response.__class__ = _ResponseMixin
            response.bound = bound  # type: ignore[attr-defined]
        return response

    def close(self) -> None:
        super().close()
        if hasattr(self, "_arming"):
            self._arming.release()


def _armed_pools(pools: dict[str, Any]) -> dict[str, Any]:
    """The pool classes of a urllib3 manager, with connections that are armed. SOCKS ones connect by their own means."""
    made = {}
    for scheme, pool in pools.items():
        made[scheme] = pool
        connection = pool.ConnectionCls
        if not issubclass(connection, _ConnectionMixin):
            mixin: type = _ConnectionMixin
            connection = type(f"Deadline{connection.__name__}", (mixin, connection), {})
            made[scheme] = type(f"Deadline{pool.__name__}", (pool,), {"ConnectionCls": connection})
    return made


class _RetryMixin(Retry):
    """Pauses between urllib3's own retries, and those that a server asks for, within the bound."""

    def sleep(self, response: Any = None) -> None:
        bound = _active.get()
        if bound is None:
            super().sleep(response)
            return
        wait = self.get_retry_after(response) if self.respect_retry_after_header and response is not None else None
        pause(self.get_backoff_time() if wait is None else max(0.0, wait), bound)


def _bounded_retry(retry: Retry) -> Retry:
    if isinstance(retry, _RetryMixin):
        return retry
    bounded = copy.copy(retry)
    bounded.__class__ = type(f"Deadline{type(retry).__name__}", (_RetryMixin, type(retry)), {})
    return bounded


# --- the adapter -------------------------------------------------------------------------------------------


class _AdapterMixin(requests.adapters.HTTPAdapter):
    budget: Budget | None = None

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = _armed_pools(self.poolmanager.pool_classes_by_scheme)

    def proxy_manager_for(self, proxy: Any, **kwargs: Any) -> Any:
        known = proxy in self.proxy_manager
        manager = super().proxy_manager_for(proxy, **kwargs)
        if not known:
            manager.pool_classes_by_scheme = _armed_pools(manager.pool_classes_by_scheme)
        return manager

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        bound = _active.get()
        if bound is None:
            bound = request_bound(request.url or "", self.budget, None)
        token = _active.set(bound)
        try:
            with Mapped(bound, error_of):
                return super().send(request, *args, **kwargs)
        finally:
            _active.reset(token)


class DeadlineAdapter(_AdapterMixin):
    """A `requests` adapter under a deadline: mount it on any session.

    `budget` None means the one that is ambient when a request is made. Other arguments are those of
    `requests.adapters.HTTPAdapter`; `max_retries` keeps its meaning, with the pauses inside the deadline.
    """

    def __init__(self, budget: Budget | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.budget = budget
        self.max_retries = _bounded_retry(self.max_retries)


def session(budget: Budget | None = None) -> requests.Session:
    """A `requests.Session` whose requests all end with `budget` (None: the ambient one of each request)."""
    made = requests.Session()
    for scheme in ("https://", "http://"):
        made.mount(scheme, DeadlineAdapter(budget))
    return made


# One for each adapter of a caller's session, so that connections are reused from one call to the next.
_shadows: weakref.WeakKeyDictionary[requests.adapters.BaseAdapter, requests.adapters.BaseAdapter]
_shadows = weakref.WeakKeyDictionary()
_shadows_lock = threading.Lock()


def _shadow(adapter: requests.adapters.BaseAdapter) -> requests.adapters.BaseAdapter:
    """An armed twin of an adapter, with its options and pools of its own; one of an unknown kind as it is."""
    if isinstance(adapter, _AdapterMixin) or not isinstance(adapter, requests.adapters.HTTPAdapter):
        return adapter
    with _shadows_lock:
        if adapter not in _shadows:
            kind = type(f"Deadline{type(adapter).__name__}", (_AdapterMixin, type(adapter)), {})
            twin: Any = object.__new__(kind)
            twin.__dict__.update(adapter.__dict__)
            twin.proxy_manager = {}
            twin.max_retries = _bounded_retry(adapter.max_retries)
            options: Any = adapter
            twin.init_poolmanager(options._pool_connections, options._pool_maxsize, block=options._pool_block)
            _shadows[adapter] = twin
        return _shadows[adapter]


def _borrowed(session: requests.Session) -> requests.Session:
    """A twin of the session with armed adapters, and with the same headers, cookies, auth, hooks in it."""
    twin = object.__new__(type(session))
    twin.__dict__.update(session.__dict__)
    twin.adapters = OrderedDict((prefix, _shadow(adapter)) for prefix, adapter in session.adapters.items())
    return twin


def _give_back(session: requests.Session, twin: requests.Session, before: dict[str, Any]) -> None:
    """What a subclass rebound while it sent (a refreshed token) belongs to the caller's session."""
    for name, value in twin.__dict__.items():
        if name != "adapters" and before.get(name, twin) is not value:
            setattr(session, name, value)


def request(
    method: str,
    url: str,
    *,
    budget: Budget | None,
    want: float | None,
    session: requests.Session | None,
    options: dict[str, Any],
) -> requests.Response:
    """See `http.request`."""
    bound = request_bound(url, budget, want)
    token = _active.set(bound)
    try:
        with Watched("http", bound), Mapped(bound, error_of):
            if session is None:
                with requests.Session() as own:
                    return _borrowed(own).request(method, url, **options)
            twin = _borrowed(session)
            before = dict(twin.__dict__)
            try:
                return twin.request(method, url, **options)
            finally:
                _give_back(session, twin, before)
    finally:
        _active.reset(token)
