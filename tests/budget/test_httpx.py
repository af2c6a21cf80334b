"""httpx transports and the aiohttp timeout, against servers that misbehave."""

# ruff: noqa: PLC0415, SIM117 - optional libraries; a block under test is more than one line

from __future__ import annotations

import asyncio
import pickle
import ssl
import threading
from collections.abc import Callable
from typing import Any

import pytest
from budget_witness import Server, need_module
from deadlint_budget import Budget, Cancelled, DeadlineExceeded, http
from test_http import (
    LIMIT,
    MISBEHAVIOUR,
    TLS,
    drips_the_body,
    fine,
    redirects_slowly,
    silent,
)

Took = Callable[..., Any]
Serve = Callable[..., Server]


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> TLS:
    return TLS(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def httpx() -> Any:
    return need_module("httpx")


def get(url: str, budget: Budget | None = None, want: float | None = None, **options: Any) -> str:
    import httpx

    transport = http.DeadlineTransport(budget, want, **options)
    with httpx.Client(transport=transport, follow_redirects=True) as client:
        return client.get(url).text


def stream(url: str, budget: Budget | None = None, want: float | None = None) -> str:
    import httpx

    with httpx.Client(transport=http.DeadlineTransport(budget, want)) as client, client.stream("GET", url) as response:
        return b"".join(response.iter_bytes()).decode()


async def aget(url: str, budget: Budget | None = None, want: float | None = None, **options: Any) -> str:
    import httpx

    transport = http.AsyncDeadlineTransport(budget, want, **options)
    async with httpx.AsyncClient(transport=transport, follow_redirects=True) as client:
        return (await client.get(url)).text


async def astream(url: str, budget: Budget | None = None, want: float | None = None) -> str:
    import httpx

    transport = http.AsyncDeadlineTransport(budget, want)
    async with httpx.AsyncClient(transport=transport) as client, client.stream("GET", url) as response:
        return "".join([part async for part in response.aiter_text()])


def by_get_async(url: str, **options: Any) -> str:
    return asyncio.run(aget(url, **options))


def by_stream_async(url: str, **options: Any) -> str:
    return asyncio.run(astream(url, **options))


WAYS = [get, stream, by_get_async, by_stream_async]


@pytest.mark.parametrize("misbehaves", [f for f in MISBEHAVIOUR if f is not redirects_slowly], ids=lambda f: f.__name__)
@pytest.mark.parametrize("way", WAYS)
def test_back_by_the_deadline(
    misbehaves: Callable[..., None], way: Callable[..., Any], serve: Serve, took: Took, httpx: Any
) -> None:
    with took(0, LIMIT + 0.5), pytest.raises(httpx.TimeoutException) as caught:
        way(serve(misbehaves).url, want=LIMIT)
    assert isinstance(caught.value, DeadlineExceeded)
    assert caught.value.limit == LIMIT
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize("way", [get, by_get_async])
def test_redirects_share_the_budget(way: Callable[..., Any], serve: Serve, took: Took, httpx: Any) -> None:
    with took(0, LIMIT + 0.5), pytest.raises(DeadlineExceeded) as caught:
        way(serve(redirects_slowly).url, budget=Budget.of(LIMIT, "job"))
    assert caught.value.layer == "job"


@pytest.mark.parametrize("way", WAYS)
def test_what_is_in_time(way: Callable[..., Any], serve: Serve, httpx: Any) -> None:
    assert way(serve(fine).url, want=5) == "hi"
    assert way(serve(fine).url) == "hi"


def test_connections_are_kept_and_bounds_are_not(serve: Serve, httpx: Any) -> None:
    server = serve(fine)
    with httpx.Client(transport=http.DeadlineTransport()) as client:
        for seconds in (0.2, 5):
            with Budget.of(seconds):
                assert client.get(server.url).text == "hi"
                threading.Event().wait(0.15)
        with pytest.raises(DeadlineExceeded), Budget.of(0):
            client.get(server.url)
    assert server.connections == 1


def test_tls(tls: TLS, serve: Serve, took: Took, httpx: Any) -> None:
    fine_url = serve(tls.serving(fine)).url.replace("http:", "https:")
    drip_url = serve(tls.serving(drips_the_body)).url.replace("http:", "https:")
    for way in (get, by_get_async):
        verify = ssl.create_default_context(cafile=tls.ca)
        assert way(fine_url, want=5, verify=verify) == "hi"
        with took(0, LIMIT + 0.5), pytest.raises(DeadlineExceeded):
            way(drip_url, want=LIMIT, verify=verify)
        with pytest.raises(httpx.ConnectError):
            way(fine_url, want=5)
    with took(0, LIMIT + 0.5), pytest.raises(DeadlineExceeded):
        get(serve(silent).url.replace("http:", "https:"), want=LIMIT)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("misbehaves", [silent, drips_the_body], ids=lambda f: f.__name__)
def test_cancel(way: Callable[..., Any], misbehaves: Callable[..., None], serve: Serve, took: Took, httpx: Any) -> None:
    budget = Budget.of(60)
    threading.Timer(0.2, budget.cancel, ["enough"]).start()
    with took(0.19, 0.7), pytest.raises(Cancelled, match="enough"):
        way(serve(misbehaves).url, budget=budget)


def test_httpx_s_own_timeouts_keep_their_meaning(serve: Serve, httpx: Any) -> None:
    with httpx.Client(transport=http.DeadlineTransport(want=5), timeout=0.2) as client:
        with pytest.raises(httpx.ReadTimeout) as caught:
            client.get(serve(silent).url)
    assert not isinstance(caught.value, DeadlineExceeded)


def test_aiohttp(serve: Serve, took: Took) -> None:
    aiohttp = need_module("aiohttp")
    url = serve(drips_the_body).url

    async def main() -> None:
        async with aiohttp.ClientSession() as session:
            budget = Budget.of(LIMIT, "job")
            async with session.get(url, timeout=http.aiohttp_timeout(budget)) as response:
                await response.read()

    async def scoped() -> None:
        async with aiohttp.ClientSession() as session, Budget.of(LIMIT, "job").scope():
            async with session.get(url, timeout=http.aiohttp_timeout(want=60)) as response:
                await response.read()

    with took(0, LIMIT + 0.5), pytest.raises(TimeoutError):
        asyncio.run(main())
    with took(0, LIMIT + 0.5), pytest.raises(DeadlineExceeded) as caught:
        asyncio.run(scoped())
    assert caught.value.layer == "job"
    with pytest.raises(DeadlineExceeded):
        http.aiohttp_timeout(Budget.of(0))
    assert http.aiohttp_timeout().total is None
