"""HTTP under a total deadline, against real servers on loopback that misbehave."""

# ruff: noqa: PLC0415 - optional libraries; a block under test is more than one line

from __future__ import annotations

import gzip
import pickle
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from budget_witness import Server, eventually, need_module
from deadlint_budget import Budget, Cancelled, DeadlineExceeded, http

Took = Callable[..., Any]
Serve = Callable[..., Server]
LIMIT = 0.3
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


def heard(conn: socket.socket) -> bytes:
    """One request; empty at the end of the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = conn.recv(65536)
        if not more:
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    while length and len(body) < int(length[1]):
        body += conn.recv(65536)
    return head + body


def fine(conn: socket.socket) -> None:
    while heard(conn):
        conn.sendall(OK)


def silent(conn: socket.socket) -> None:
    conn.recv(65536)
    time.sleep(4)


def drip(conn: socket.socket, data: bytes = b"x" * 1000, pause: float = 0.05) -> None:
    for number in range(len(data)):
        conn.sendall(data[number : number + 1])
        time.sleep(pause)


def drips_the_status(conn: socket.socket) -> None:
    heard(conn)
    drip(conn, OK * 10)


def drips_headers(conn: socket.socket) -> None:
    heard(conn)
    conn.sendall(b"HTTP/1.1 200 OK\r\n")
    drip(conn, b"X-A: 1\r\n" * 100)


def drips_the_body(conn: socket.socket) -> None:
    heard(conn)
    conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    drip(conn)


def drips_chunks(conn: socket.socket) -> None:
    heard(conn)
    conn.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    drip(conn, b"1\r\nx\r\n" * 200)


def drips_to_the_end_of_the_connection(conn: socket.socket) -> None:
    heard(conn)
    conn.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    drip(conn)


def redirects_slowly(conn: socket.socket) -> None:
    while heard(conn):
        time.sleep(0.1)
        conn.sendall(b"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n")


def expands_without_end(conn: socket.socket) -> None:
    heard(conn)
    conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n")
    member = gzip.compress(bytes(1_000_000))
    while True:
        conn.sendall(b"%x\r\n%s\r\n" % (len(member), member))
        time.sleep(0.01)


def floods(conn: socket.socket) -> None:
    heard(conn)
    conn.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        conn.sendall(bytes(10_000))
        time.sleep(0.005)


def says_nothing(conn: socket.socket) -> None:
    time.sleep(4)


MISBEHAVIOUR = [
    silent,
    says_nothing,
    drips_the_status,
    drips_headers,
    drips_the_body,
    drips_chunks,
    drips_to_the_end_of_the_connection,
    redirects_slowly,
    expands_without_end,
    floods,
]


@pytest.fixture
def requests() -> Any:
    return need_module("requests")


def by_get(url: str, **options: Any) -> Any:
    return http.get(url, **options).content


def by_stream(url: str, **options: Any) -> Any:
    with http.get(url, stream=True, **options) as response:
        return b"".join(response.iter_content(8192))


def by_raw(url: str, **options: Any) -> Any:
    import io

    with http.get(url, stream=True, **options) as response:
        shutil.copyfileobj(response.raw, io.BytesIO())


def by_session(url: str, budget: Budget | None = None, want: float | None = None) -> Any:
    with http.session(budget or Budget.of(want or 1, "urlopen")) as session:
        return session.get(url).content


def by_urlopen(url: str, **options: Any) -> Any:
    with http.urlopen(url, **options) as response:
        return response.read()


def by_urlopen_in_pieces(url: str, **options: Any) -> Any:
    with http.urlopen(url, **options) as response:
        while response.read(100):
            pass


@pytest.mark.parametrize("misbehaves", MISBEHAVIOUR, ids=lambda f: f.__name__)
@pytest.mark.parametrize("way", [by_get, by_stream, by_raw, by_session, by_urlopen, by_urlopen_in_pieces])
def test_back_by_the_deadline(
    misbehaves: Callable[..., None], way: Callable[..., Any], serve: Serve, took: Took, requests: Any
) -> None:
    server = serve(misbehaves)
    with took(0, LIMIT + 0.5), pytest.raises(DeadlineExceeded) as caught:
        way(server.url, want=LIMIT)
    if "urlopen" in way.__name__:
        assert isinstance(caught.value, urllib.error.URLError)
    else:
        assert isinstance(caught.value, requests.exceptions.Timeout)
    assert caught.value.limit == LIMIT
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (type(caught.value), str(caught.value))


@pytest.mark.parametrize("way", [by_get, by_urlopen])
def test_a_dropped_syn(way: Callable[..., Any], took: Took, requests: Any) -> None:
    """A listener whose queue is full drops what comes: connect gets no answer."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=0)
    held = [socket.socket() for _ in range(4)]
    for each in held:
        each.setblocking(False)
        each.connect_ex(listener.getsockname())
    try:
        with took(LIMIT - 0.05, LIMIT + 0.5), pytest.raises(DeadlineExceeded):
            way(f"http://127.0.0.1:{listener.getsockname()[1]}/", want=LIMIT)
    finally:
        for each in (*held, listener):
            each.close()


@pytest.mark.parametrize("way", [by_get, by_urlopen])
def test_a_slow_name_lookup(
    way: Callable[..., Any], took: Took, requests: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = socket.getaddrinfo

    def slow(host: str, *rest: Any, **more: Any) -> Any:
        if host == "slow.invalid":
            time.sleep(2)
        return real(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    with took(LIMIT - 0.05, LIMIT + 0.5), pytest.raises(DeadlineExceeded):
        way("http://slow.invalid/", want=LIMIT)


def test_addresses_share_the_time(serve: Serve, requests: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(fine)
    listener = socket.create_server(("127.0.0.1", 0), backlog=0)
    held = [socket.socket() for _ in range(4)]
    for each in held:
        each.setblocking(False)
        each.connect_ex(listener.getsockname())
    found = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", listener.getsockname()),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", server.port)),
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    assert http.get("http://two.invalid/", want=1).text == "hi"
    for each in (*held, listener):
        each.close()


def test_a_slow_upload(serve: Serve, took: Took, requests: Any) -> None:
    def never_reads(conn: socket.socket) -> None:
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        time.sleep(4)

    def pieces() -> Any:
        while True:
            yield b"x" * 1000
            time.sleep(0.02)

    server = serve(never_reads)
    for data in (b"x" * 20_000_000, pieces()):
        with took(0, LIMIT + 0.5), pytest.raises(DeadlineExceeded):
            http.post(server.url, data=data, want=LIMIT)
    with took(0, LIMIT + 0.5), pytest.raises(DeadlineExceeded):
        http.urlopen(server.url, b"x" * 20_000_000, want=LIMIT)


# --- TLS ---------------------------------------------------------------------------------------------------


class TLS:
    def __init__(self, folder: Path) -> None:
        trustme = need_module("trustme")
        authority = trustme.CA()
        self.ca = str(folder / "ca.pem")
        authority.cert_pem.write_to_path(self.ca)
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(self.server)
        self.client = ssl.create_default_context(cafile=self.ca)

    def serving(self, talk: Callable[..., None]) -> Callable[[socket.socket], None]:
        def over_tls(conn: socket.socket) -> None:
            with self.server.wrap_socket(conn, server_side=True) as wrapped:
                talk(wrapped)

        return over_tls


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> TLS:
    return TLS(tmp_path_factory.mktemp("tls"))


@pytest.mark.parametrize("misbehaves", [drips_headers, drips_the_body, drips_chunks, silent], ids=lambda f: f.__name__)
def test_back_by_the_deadline_under_tls(
    misbehaves: Callable[..., None], tls: TLS, serve: Serve, took: Took, requests: Any
) -> None:
    url = serve(tls.serving(misbehaves)).url.replace("http:", "https:")
    for way, options in ((by_get, {"verify": tls.ca}), (by_urlopen, {"context": tls.client})):
        with took(0, LIMIT + 0.5), pytest.raises(DeadlineExceeded):
            way(url, want=LIMIT, **options)


def test_a_handshake_that_never_ends(tls: TLS, serve: Serve, took: Took, requests: Any) -> None:
    url = serve(says_nothing).url.replace("http:", "https:")
    for way, options in ((by_get, {"verify": tls.ca}), (by_urlopen, {"context": tls.client})):
        with took(0, LIMIT + 0.5), pytest.raises(DeadlineExceeded):
            way(url, want=LIMIT, **options)


def test_tls_that_works_is_reused(tls: TLS, serve: Serve, requests: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)  # requests prefers it to a session's `verify`
    monkeypatch.delenv("CURL_CA_BUNDLE", raising=False)
    server = serve(tls.serving(fine))
    url = server.url.replace("http:", "https:")
    with requests.Session() as session:
        session.verify = tls.ca
        assert [http.get(url, session=session, want=5).text for _ in range(3)] == ["hi"] * 3
    assert server.connections == 1
    assert by_urlopen(url, want=5, context=tls.client) == b"hi"
    with pytest.raises(requests.exceptions.SSLError):
        http.get(url, want=5)


# --- what is in time stays as it is ------------------------------------------------------------------------


def test_everything_requests_does(serve: Serve, requests: Any) -> None:
    seen: list[bytes] = []

    def echo(conn: socket.socket) -> None:
        while head := heard(conn):
            seen.append(head)
            conn.sendall(b"HTTP/1.1 201 Created\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n")

    url = serve(echo).url
    for name in ("get", "post", "put", "patch", "delete", "head", "options"):
        response = getattr(http, name)(url, want=5, headers={"X-Mine": "1"}, params={"q": "x"})
        assert type(response) is requests.Response
        assert response.status_code == 201
        assert seen[-1].startswith(f"{name.upper()} /?q=x ".encode())
        assert b"X-Mine: 1" in seen[-1]
    http.post(url, {"form": "1"}, want=5)
    assert b"form=1" in seen[-1]
    http.post(url, json={"a": 1}, want=5)
    assert b'{"a": 1}' in seen[-1]
    assert http.request("REPORT", url).status_code == 201  # no bound at all is plain requests


def test_a_session_s_own_things_are_used_and_the_session_is_not_changed(serve: Serve, requests: Any) -> None:
    seen: list[bytes] = []

    def echo(conn: socket.socket) -> None:
        while head := heard(conn):
            seen.append(head)
            conn.sendall(b"HTTP/1.1 200 OK\r\nSet-Cookie: token=t1\r\nContent-Length: 2\r\n\r\nhi")

    server = serve(echo)
    hooked: list[int] = []
    session = requests.Session()
    session.headers["X-From"] = "session"
    session.auth = ("me", "secret")
    session.hooks["response"].append(lambda response, **_: hooked.append(response.status_code))
    adapters = dict(session.adapters)
    for _ in range(3):
        assert http.get(server.url, session=session, want=5).text == "hi"
    assert b"X-From: session" in seen[0]
    assert b"Authorization: Basic" in seen[0]
    assert b"Cookie: token=t1" in seen[1]
    assert session.cookies["token"] == "t1"
    assert hooked == [200, 200, 200]
    assert dict(session.adapters) == adapters
    assert "send" not in vars(session)
    assert server.connections == 1
    session.close()


def test_a_subclassed_session_and_a_custom_adapter(serve: Serve, requests: Any) -> None:
    server = serve(fine)

    class Client(requests.Session):  # type: ignore[misc]
        def request(self, method: str, path: str, **options: Any) -> Any:
            self.count = getattr(self, "count", 0) + 1
            return super().request(method, server.url + path, **options)

    class Adapter(requests.adapters.HTTPAdapter):  # type: ignore[misc]
        def init_poolmanager(self, *args: Any, **options: Any) -> None:
            super().init_poolmanager(*args, source_address=("127.0.0.2", 0), **options)

    client = Client()
    client.mount("http://", Adapter())
    assert http.get("x", session=client, want=5).text == "hi"
    assert http.get("y", session=client, want=5).text == "hi"
    assert client.count == 2


def test_timeouts_keep_their_meaning(serve: Serve, took: Took, requests: Any) -> None:
    server = serve(silent)
    with took(0.2, 0.45), pytest.raises(requests.exceptions.ReadTimeout) as caught:
        http.get(server.url, timeout=0.2, want=5)
    assert not isinstance(caught.value, DeadlineExceeded)
    with took(LIMIT - 0.05, LIMIT + 0.5), pytest.raises(DeadlineExceeded):
        http.get(server.url, timeout=(3, 60), want=LIMIT)


def test_errors_in_time_are_left_alone(serve: Serve, requests: Any) -> None:
    def breaks_off(conn: socket.socket) -> None:
        heard(conn)
        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")

    server = serve(breaks_off)
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        http.get(server.url, want=5)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(requests.exceptions.ConnectionError) as caught:
        http.get(f"http://127.0.0.1:{port}/", want=5)
    assert not isinstance(caught.value, DeadlineExceeded)
    with pytest.raises(urllib.error.URLError, match="refused"):
        http.urlopen(f"http://127.0.0.1:{port}/", want=5)
    with pytest.raises(requests.exceptions.MissingSchema):
        http.get("no-scheme", want=5)


def test_urlopen_errors_and_other_schemes(serve: Serve, tmp_path: Path) -> None:
    def not_found(conn: socket.socket) -> None:
        heard(conn)
        conn.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnope")

    with pytest.raises(urllib.error.HTTPError) as caught:
        http.urlopen(serve(not_found).url, want=5)
    assert caught.value.read() == b"nope"
    (tmp_path / "x").write_text("file")
    assert http.urlopen((tmp_path / "x").as_uri(), want=5).read() == b"file"
    assert http.urlopen(serve(fine).url).read() == b"hi"


def test_retries_share_the_deadline(serve: Serve, took: Took, requests: Any) -> None:
    def busy(conn: socket.socket) -> None:
        while heard(conn):
            conn.sendall(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")

    def busy_for_long(conn: socket.socket) -> None:
        while heard(conn):
            conn.sendall(b"HTTP/1.1 503 Busy\r\nRetry-After: 60\r\nContent-Length: 0\r\n\r\n")

    from urllib3.util.retry import Retry

    with requests.Session() as session:
        retry = Retry(total=10, backoff_factor=0.1, status_forcelist=[503])
        session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retry))
        with took(0, 1.1), pytest.raises(DeadlineExceeded):
            http.get(serve(busy).url, session=session, want=1)
        with (
            took(0, 0.3),
            pytest.raises(DeadlineExceeded),
        ):  # at once: the pause that is asked for does not fit
            http.get(serve(busy_for_long).url, session=session, want=5)
        assert type(session.get_adapter("http://").max_retries) is Retry


# --- budgets -----------------------------------------------------------------------------------------------


def test_the_job_is_named(serve: Serve, requests: Any) -> None:
    with Budget.of(0.3, "job"), pytest.raises(DeadlineExceeded) as caught:
        http.get(serve(silent).url, want=9)
    assert (caught.value.layer, caught.value.path) == ("job", "job/127.0.0.1")
    with Budget.of(0.3, "job"), pytest.raises(DeadlineExceeded) as caught:
        http.urlopen(serve(silent).url, want=9)
    assert caught.value.layer == "job"


def test_no_time_sends_nothing(serve: Serve, requests: Any) -> None:
    server = serve(fine)
    for call in (http.get, http.urlopen):
        with pytest.raises(DeadlineExceeded, match="not sent"):
            call(server.url, budget=Budget.of(0))
        with pytest.raises(ValueError, match="finite"):
            call(server.url, want=float("nan"))
    assert server.connections == 0


@pytest.mark.parametrize("way", [by_get, by_stream, by_raw, by_urlopen])
@pytest.mark.parametrize("misbehaves", [silent, drips_headers, drips_the_body], ids=lambda f: f.__name__)
def test_cancel_wakes_a_request(
    way: Callable[..., Any], misbehaves: Callable[..., None], serve: Serve, took: Took, requests: Any
) -> None:
    budget = Budget.of(60, "flow")
    threading.Timer(0.2, budget.cancel, ["operator"]).start()
    with took(0.19, 0.6), pytest.raises(Cancelled, match="operator"):
        way(serve(misbehaves).url, budget=budget)


@pytest.mark.parametrize("way", [by_get, by_urlopen])
def test_cancel_wakes_a_connect(way: Callable[..., Any], took: Took, requests: Any) -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=0)
    held = [socket.socket() for _ in range(4)]
    for each in held:
        each.setblocking(False)
        each.connect_ex(listener.getsockname())
    budget = Budget.of(60, "flow")
    threading.Timer(0.2, budget.cancel, ["operator"]).start()
    try:
        with took(0.19, 0.6), pytest.raises(Cancelled, match="operator"):
            way(f"http://127.0.0.1:{listener.getsockname()[1]}/", budget=budget)
    finally:
        for each in (*held, listener):
            each.close()


def test_a_connection_is_closed_at_the_deadline_and_the_pool_goes_on(serve: Serve, requests: Any) -> None:
    hang = threading.Event()

    def sometimes(conn: socket.socket) -> None:
        while heard(conn):
            if hang.is_set():
                conn.recv(1)
                return
            conn.sendall(OK)

    server = serve(sometimes)
    with requests.Session() as session:
        http.get(server.url, session=session, want=5)
        hang.set()
        with pytest.raises(DeadlineExceeded):
            http.get(server.url, session=session, want=0.2)
        assert eventually(lambda: server.open == 0)
        hang.clear()
        assert http.get(server.url, session=session, want=5).text == "hi"
        time.sleep(0.3)  # past the limit of an earlier request: it is not on the connection any more
        assert http.get(server.url, session=session, want=5).text == "hi"
    assert server.connections == 2


def test_threads_have_bounds_of_their_own(serve: Serve, requests: Any) -> None:
    fast, slow = serve(fine), serve(silent)
    outcomes: dict[str, str] = {}
    with requests.Session() as session:

        def fetch(name: str, url: str, want: float) -> None:
            try:
                outcomes[name] = http.get(url, session=session, want=want).text
            except DeadlineExceeded as error:
                outcomes[name] = f"{error.limit}"

        threads = [
            threading.Thread(target=fetch, args=args)
            for args in (("a", slow.url, 0.3), ("b", slow.url, 0.6), ("c", fast.url, 5.0))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert outcomes == {"a": "0.3", "b": "0.6", "c": "hi"}


def test_an_adapter_to_mount(serve: Serve, requests: Any) -> None:
    session = requests.Session()
    session.mount("http://", http.DeadlineAdapter(pool_maxsize=3))
    assert session.get(serve(fine).url).text == "hi"
    with Budget.of(0.3, "flow"), pytest.raises(http.HTTPDeadlineExceeded):
        session.get(serve(drips_the_body).url)
    session.close()


def test_through_a_proxy(serve: Serve, took: Took, requests: Any) -> None:
    proxy = serve(drips_headers)
    with took(0, LIMIT + 0.5), pytest.raises(DeadlineExceeded):
        http.get("http://example.invalid/", proxies={"http": proxy.url}, want=LIMIT)
    with took(0, LIMIT + 0.5), pytest.raises(DeadlineExceeded):  # CONNECT, with a drip for an answer
        http.get("https://example.invalid/", proxies={"https": proxy.url}, want=LIMIT)
    fine_proxy = serve(fine)
    assert http.get("http://example.invalid/", proxies={"http": fine_proxy.url}, want=5).text == "hi"


def test_many_requests_leave_nothing(serve: Serve, requests: Any) -> None:
    import gc

    budget = Budget.of(60)
    server = serve(fine)
    for _ in range(50):
        http.get(server.url, budget=budget)
        http.urlopen(server.url, budget=budget).read()
    gc.collect()
    assert not budget._callbacks
    assert not [thread for thread in threading.enumerate() if "127.0.0.1" in thread.name]


def test_nothing_fails_at_import_without_the_libraries() -> None:
    code = (
        "import sys\n"
        "for name in ('requests', 'urllib3', 'httpx', 'aiohttp', 'psycopg'): sys.modules[name] = None\n"
        "from deadlint_budget import Budget, http, statement_timeout, run\n"
        "try: http.urlopen('http://127.0.0.1:9/', want=1)\n"
        "except OSError: print('ok')\n"
        "try: http.get('http://127.0.0.1:9/')\n"
        "except ImportError: print('needs requests')\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "ok\nneeds requests\n"
