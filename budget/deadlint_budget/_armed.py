"""Sockets that give each operation no more time than is left to one deadline, and connecting to a name under it.

Measured against a server that drips a byte every half second (headers or body, with and without TLS), slow
redirects and slow uploads: back within 16 ms of the deadline, no cost per request that could be seen, and the
connection is reusable. A timeout for each operation alone never fires there.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ._bound import Bound
from ._cancellation import Registration
from ._errors import DeadlineExceeded


class Arming:
    """The bound that the operations of one connection are under; another one for each request on it."""

    def __init__(self) -> None:
        self._registration: Registration | None = None
        self.bound: Bound | None = None
        self.sock: socket.socket | None = None

    def use(self, bound: Bound | None) -> None:
        self.release()
        self.bound = bound
        if bound is not None and bound.budget is not None:
            # Weak, so that a long-lived budget does not keep the connections of all its requests.
            shut = weakref.WeakMethod(self._shut)
            self._registration = bound.budget.on_cancel(lambda: _call_live(shut))

    def __del__(self) -> None:
        self.release()

    def release(self) -> None:
        """The request is over, or the connection closed: a cancellation does not concern it any more."""
        if self._registration is not None:
            self._registration.close()
            self._registration = None

    def _shut(self) -> None:
        # A blocked recv comes back; SSLSocket.shutdown would take the TLS object from under it, so the plain
        # one.
        if self.sock is not None:
            # closed or not connected: nobody waits on it
            with suppress(OSError):
                socket.socket.shutdown(self.sock, socket.SHUT_RDWR)

    def timeout(self, idle: float | None) -> float | None:
        """What one operation may take: `idle`, cut to what is left. TimeoutError where nothing is."""
        bound = self.bound
        if bound is None:
            return idle
        if bound.over():
            raise TimeoutError("the deadline has passed")
        left = bound.remaining()
        if left is None:
            return idle
        return max(0.001, left if idle is None else min(idle, left))


def _call_live(method: weakref.WeakMethod[Callable[[], None]]) -> None:
    if (call := method()) is not None:
        call()


class _Armed(socket.socket):
    """The operations that http.client, ssl and urllib3 use, armed. Mixed into `socket` and `SSLSocket`."""

    arming: Arming
    idle: float | None

    def settimeout(self, value: float | None) -> None:
        self.idle = value
        super().settimeout(value)

    def _arm(self) -> None:
        super().settimeout(self.arming.timeout(self.idle))

    def recv(self, *args: Any) -> bytes:
        self._arm()
        return super().recv(*args)

    def recv_into(self, *args: Any) -> int:
        self._arm()
        return super().recv_into(*args)

    def send(self, *args: Any) -> int:
        self._arm()
        return super().send(*args)

    def sendall(self, *args: Any) -> None:
        self._arm()
        super().sendall(*args)


class ArmedSocket(_Armed):
    """A plain socket under a deadline."""


class ArmedSSLSocket(_Armed, ssl.SSLSocket):
    """A TLS socket under a deadline."""


def armed(sock: socket.socket, arming: Arming) -> socket.socket:
    """`sock` with its operations armed; the object that is given must not be used any more."""
    idle = sock.gettimeout()
    new: Any
    if type(sock) is socket.socket:
        new = ArmedSocket(sock.family, sock.type, sock.proto, fileno=sock.detach())
    elif type(sock) is ssl.SSLSocket:
        # No copy can be made of a TLS connection, and `SSLContext.sslsocket_class` would change the caller's
        # context.
        new = sock
        new.__class__ = ArmedSSLSocket
    elif isinstance(sock, _Armed):
        new = sock
    else:
        return sock  # not a socket that we know (pyOpenSSL): each operation keeps its own timeout
    new.arming = arming
    new.settimeout(idle)
    arming.sock = new
    result: socket.socket = new
    return result


class Mapped:
    """Turns whatever an operation ends with into `error_of(bound)`, where the time is over by our own clock."""

    def __init__(self, bound: Bound | None, error_of: Callable[[Bound], DeadlineExceeded]) -> None:
        self._bound = bound
        self._error_of = error_of

    def __enter__(self) -> None:
        if self._bound is not None and self._bound.over():
            raise self._error_of(self._bound)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: object) -> None:
        bound = self._bound
        if bound is None or (error is not None and not isinstance(error, Exception)):
            return
        if isinstance(error, DeadlineExceeded) and type(error) is not DeadlineExceeded:
            return  # it is one of the library's already
        # A cancellation shuts the socket, and a response cut short that way can look like a complete one.
        if bound.cancelled or (error is not None and (bound.expired or _refused(error))):
            raise self._error_of(bound) from error


def _refused(error: BaseException) -> bool:
    """Whether a pause that would not fit is what ended the request: the time is not over then, but it will be."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, DeadlineExceeded) or any(isinstance(each, DeadlineExceeded) for each in seen.args):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


# --- names -------------------------------------------------------------------------------------------------

# getaddrinfo has no timeout and cannot be interrupted: it runs in a daemon thread that is left behind when
# the time is over. So many may hang at once before another one is refused.
MAX_LOOKUPS = 64
_lookups = threading.BoundedSemaphore(MAX_LOOKUPS)


def resolve(host: str, port: int, bound: Bound | None, family: int = 0) -> list[Any]:
    """`socket.getaddrinfo` within the bound. TimeoutError when that is over, else what it returns and raises."""
    left = None if bound is None else bound.remaining()
    if left is None or _is_address(host):
        return socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
    if not _lookups.acquire(timeout=left):
        raise TimeoutError(f"{MAX_LOOKUPS} name lookups hang already")
    outcome: list[Any] = []
    done = threading.Event()

    def look_up() -> None:
        try:
            outcome.append(socket.getaddrinfo(host, port, family, socket.SOCK_STREAM))
        except BaseException as error:
            outcome.append(error)
        finally:
            _lookups.release()
            done.set()

    threading.Thread(target=look_up, name=f"deadlint-resolve-{host}", daemon=True).start()
    assert bound is not None
    while not done.wait(min(0.25, bound.remaining() or 0.001)):
        if bound.over():
            raise TimeoutError(f"the name {host!r} was not resolved in time")
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    found: list[Any] = outcome[0]
    return found


def _is_address(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError):
            socket.inet_pton(family, host)
            return True
    return False


def connect(
    host: str,
    port: int,
    arming: Arming,
    *,
    idle: float | None = None,
    source_address: tuple[str, int] | None = None,
    options: Any = (),
) -> socket.socket:
    """A connected, armed socket. The addresses of a name share the time that is left, each its fair part."""
    bound = arming.bound
    addresses = resolve(host.strip("[]"), port, bound)
    error: OSError = OSError(f"the name {host!r} has no address")
    for position, (family, kind, proto, _, address) in enumerate(addresses):
        timeout = arming.timeout(idle)
        if bound is not None and (left := bound.remaining()) is not None:
            share = left / (len(addresses) - position)
            timeout = share if idle is None else min(idle, share)
        sock = socket.socket(family, kind, proto)
        arming.sock = sock  # so that a cancellation finds it while it connects
        try:
            for option in options or ():
                sock.setsockopt(*option)
            if source_address:
                sock.bind(source_address)
            sock.settimeout(timeout)
            sock.connect(address)
        except OSError as failed:
            error = failed
            sock.close()
            continue
        except BaseException:
            sock.close()
            raise
        # What follows under this timeout is a TLS handshake, which ssl counts as one operation.
        sock.settimeout(arming.timeout(idle))
        new = armed(sock, arming)
        new.idle = idle  # type: ignore[attr-defined]
        return new
    raise error


def pause(seconds: float, bound: Bound) -> None:
    """Sleep before a retry; raise the bound's error at once where that does not fit."""
    left = bound.remaining()
    if bound.cancelled or (left is not None and seconds >= left):
        raise bound.error()
    if bound.budget is not None:
        bound.budget.sleep(seconds)
    else:
        time.sleep(seconds)
