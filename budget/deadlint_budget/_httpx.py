"""httpx and aiohttp under a total deadline: transports, and a timeout that is cut to what is left."""

from __future__ import annotations

import asyncio
import select
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import ContextVar
from typing import Any

import httpcore
import httpx

from ._armed import Arming, Mapped, armed, connect
from ._bound import Bound, Watched, bounded
from ._budget import Budget
from ._errors import Cancelled, DeadlineExceeded
from ._urllib import url_op

_active: ContextVar[Bound | None] = ContextVar("deadlint_httpx_bound", default=None)


class HTTPXDeadlineExceeded(DeadlineExceeded, httpx.TimeoutException):
    """A request outlasted its limit; also an `httpx.TimeoutException`, with the library's error as its cause."""

    _request: Any = None


class HTTPXCancelled(HTTPXDeadlineExceeded, Cancelled):
    """A request ended because its budget was cancelled."""


def error_of(bound: Bound) -> DeadlineExceeded:
    return bound.error(HTTPXDeadlineExceeded, HTTPXCancelled)


def _bound(request: httpx.Request, budget: Budget | None, want: float | None) -> Bound:
    kinds = (HTTPXDeadlineExceeded, HTTPXCancelled)
    return bounded(url_op(str(request.url)), budget, want, kinds, note="not sent")


# --- synchronous: connections over armed sockets -------------------------------------------------------------


class _Stream(httpcore.NetworkStream):
    def __init__(self, sock: socket.socket, arming: Arming) -> None:
        self._sock = sock
        self._arming = arming

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._sock.settimeout(timeout)
        try:
            return self._sock.recv(max_bytes)
        except TimeoutError as error:
            raise httpcore.ReadTimeout(str(error)) from error
        except OSError as error:
            raise httpcore.ReadError(str(error)) from error

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if self._arming.bound is not _active.get():
            self._arming.use(_active.get())  # a kept connection: this request's bound, not the last one's
        self._sock.settimeout(timeout)
        try:
            self._sock.sendall(buffer)
        except TimeoutError as error:
            raise httpcore.WriteTimeout(str(error)) from error
        except OSError as error:
            raise httpcore.WriteError(str(error)) from error

    def close(self) -> None:
        self._arming.release()
        self._sock.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        try:
            self._sock.settimeout(self._arming.timeout(timeout))
            wrapped = ssl_context.wrap_socket(self._sock, server_hostname=server_hostname)
        except TimeoutError as error:
            self.close()
            raise httpcore.ConnectTimeout(str(error)) from error
        except OSError as error:
            self.close()
            raise httpcore.ConnectError(str(error)) from error
        return _Stream(armed(wrapped, self._arming), self._arming)

    def get_extra_info(self, info: str) -> Any:
        match info:
            case "ssl_object":
                return self._sock if isinstance(self._sock, ssl.SSLSocket) else None
            case "client_addr":
                return self._sock.getsockname()
            case "server_addr":
                return self._sock.getpeername()
            case "socket":
                return self._sock
            case "is_readable":
                return bool(select.select([self._sock], [], [], 0)[0])
        return None


class _Backend(httpcore.NetworkBackend):
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        arming = Arming()
        arming.use(_active.get())
        source = None if local_address is None else (local_address, 0)
        options = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), *(socket_options or ())]
        try:
            sock = connect(host, port, arming, idle=timeout, source_address=source, options=options)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        return _Stream(sock, arming)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class _MappedBody(httpx.SyncByteStream):
    def __init__(self, body: httpx.SyncByteStream, bound: Bound) -> None:
        self._body = body
        self._bound = bound

    def __iter__(self) -> Iterator[bytes]:
        chunks = iter(self._body)
        while True:
            with Mapped(self._bound, error_of):
                try:
                    chunk = next(chunks)
                except StopIteration:
                    return
            yield chunk

    def close(self) -> None:
        self._body.close()


class DeadlineTransport(httpx.HTTPTransport):
    """An httpx transport whose requests end with `budget` (None: the ambient one), each within `want` seconds.

    `httpx.Client(transport=DeadlineTransport(budget))`. Redirects are requests of their own: each gets its `want`,
    all of them together the budget. httpx's own timeouts keep their meaning and are cut to what is left. Other
    arguments are those of `httpx.HTTPTransport`. Under HTTP/2, requests that share a connection share the bound of
    the one that wrote last.
    """

    def __init__(self, budget: Budget | None = None, want: float | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._budget = budget
        self._want = want
        pool: Any = self._pool
        pool._network_backend = _Backend()  # httpcore takes one in its constructor; httpx does not pass it on

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        bound = _bound(request, self._budget, self._want)
        token = _active.set(bound)
        try:
            with Watched("httpx", bound), Mapped(bound, error_of):
                response = super().handle_request(request)
        finally:
            _active.reset(token)
        assert isinstance(response.stream, httpx.SyncByteStream)
        response.stream = _MappedBody(response.stream, bound)
        return response


# --- asynchronous: the task is cancelled at the deadline -----------------------------------------------------


@asynccontextmanager
async def _under(bound: Bound) -> AsyncIterator[None]:
    """The deadline (and a cancellation) of `bound` over the block, as the error of this module."""
    if bound.over():
        raise error_of(bound)
    loop = asyncio.get_running_loop()
    left = bound.remaining()
    timeout = asyncio.timeout(left)

    def fire() -> None:
        if not timeout.expired():
            timeout.reschedule(loop.time())

    registration = None
    try:
        async with timeout:
            if bound.budget is not None:
                registration = bound.budget.on_cancel(_threadsafe(loop, fire))
            yield
    except Exception as error:
        if timeout.expired() or (bound.over() and not isinstance(error, DeadlineExceeded)):
            raise error_of(bound) from error
        raise
    finally:
        if registration is not None:
            registration.close()


def _threadsafe(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> Callable[[], None]:
    def wake() -> None:
        with suppress(RuntimeError):  # the loop is closed: nothing is left to wake
            loop.call_soon_threadsafe(call)

    return wake


class _MappedAsyncBody(httpx.AsyncByteStream):
    def __init__(self, body: httpx.AsyncByteStream, under: Callable[[], AbstractAsyncContextManager[None]]) -> None:
        self._body = body
        self._under = under

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = aiter(self._body)
        while True:
            async with self._under():
                try:
                    chunk = await anext(chunks)
                except StopAsyncIteration:
                    return
            yield chunk

    async def aclose(self) -> None:
        await self._body.aclose()


class AsyncDeadlineTransport(httpx.AsyncHTTPTransport):
    """`DeadlineTransport` for `httpx.AsyncClient`, under asyncio."""

    def __init__(self, budget: Budget | None = None, want: float | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._budget = budget
        self._want = want

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        bound = _bound(request, self._budget, self._want)
        with Watched("httpx", bound):
            async with _under(bound):
                response = await super().handle_async_request(request)
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _MappedAsyncBody(response.stream, lambda: _under(bound))
        return response
