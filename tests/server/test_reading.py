"""Hovers, inlay hints and document links: the rule's text, and the limit that really holds."""

from __future__ import annotations

import asyncio
from pathlib import Path

from lsprotocol import types

from tests.server.conftest import UNSAFE, write
from tests.server.editor import editing

LIMITED = """\
import asyncio
import subprocess

import aiohttp
import requests
from prefect import flow, task

FETCH_S = 20


@task(timeout_seconds=600)
def build_tile(url):
    subprocess.run(["gdalinfo", "a.tif"], timeout=900)
    return fetch(url)


def fetch(url):
    requests.get(url, timeout=FETCH_S)
    return requests.get(url)


async def harvest(client: aiohttp.ClientSession, url):
    async with asyncio.timeout(5):
        requests.head(url)
        return await client.get(url)
"""


def test_hints_show_the_limit_that_holds_where_another_stands(project: Path) -> None:
    """A limit around an `await` does not end what blocks, so nothing is claimed there."""

    async def session() -> None:
        async with editing(project) as editor:
            uri = editor.open(write(project, "flows.py", LIMITED))
            assert await editor.hints(uri) == [
                'subprocess.run(["gdalinfo", "a.tif"], timeout=900) ≤ 600 s via build_tile',
                "requests.get(url, timeout=FETCH_S) ≤ 20 s",
                "return requests.get(url) ≤ 600 s via build_tile",
                "return await client.get(url) ≤ 5 s via asyncio.timeout",
            ]
            editor.replace(uri, "timeout_seconds=600", "timeout_seconds=1200")
            assert (await editor.hints(uri))[0].endswith("return requests.get(url) ≤ 1,200 s via build_tile") or (
                await editor.hints(uri)
            )[1].endswith("≤ 1,200 s via build_tile")

    asyncio.run(session())


def test_hints_can_be_switched_off(project: Path) -> None:
    async def session() -> None:
        async with editing(project, options={"inlayHints": False}) as editor:
            assert await editor.hints(editor.open(write(project, "flows.py", LIMITED))) == []

    asyncio.run(session())


def test_a_hint_leads_to_the_limit(project: Path) -> None:
    async def session() -> None:
        async with editing(project) as editor:
            uri = editor.open(write(project, "flows.py", LIMITED))
            whole = types.Range(types.Position(0, 0), types.Position(99, 0))
            params = types.InlayHintParams(types.TextDocumentIdentifier(uri), whole)
            (hint, *_) = await editor.text_document_inlay_hint_async(params) or ()
            assert isinstance(hint.label, list | tuple)
            location = hint.label[0].location
            assert location is not None
            assert (location.uri, location.range.start) == (uri, types.Position(10, 1))
            assert isinstance(hint.tooltip, types.MarkupContent)
            assert "600 s" in hint.tooltip.value

    asyncio.run(session())


def test_a_hover_on_a_limit_names_the_effective_one_and_the_way_to_it(project: Path) -> None:
    async def session() -> None:
        async with editing(project) as editor:
            uri = editor.open(write(project, "flows.py", LIMITED))
            text = await editor.hover(uri, "requests.get(url)\n\n")
            assert "`requests.get` ends after **600 s** at the latest, by task `build_tile`." in text
            assert "flows.py:11" in text
            assert "calls `fetch`" in text
            text = await editor.hover(uri, "requests.get(url, timeout")
            assert "its own limit" in text
            assert "for each read, so not for the whole" in text
            text = await editor.hover(uri, "task(timeout_seconds")
            assert "`build_tile` ends after **600 s**" in text
            assert await editor.hover(uri, "def fetch") == ""

    asyncio.run(session())


def test_a_hover_on_a_finding_is_the_text_of_its_rule(project: Path) -> None:
    async def session() -> None:
        async with editing(project) as editor:
            uri = editor.open(write(project, "fetch.py", UNSAFE))
            text = await editor.hover(uri, "requests.get")
            assert "DL201 request-without-timeout" in text
            assert "Why it is bad" in text

    asyncio.run(session())


def test_links_lead_to_related_places_and_to_the_pages_of_codes(project: Path) -> None:
    text = LIMITED + "\nrequests.get('a')  # deadlint: ignore[DL201] fine\n"

    async def session() -> None:
        async with editing(project) as editor:
            uri = editor.open(write(project, "flows.py", text))
            params = types.DocumentLinkParams(types.TextDocumentIdentifier(uri))
            links = await editor.text_document_document_link_async(params) or ()
            targets = {editor.texts[uri].split("\n")[one.range.start.line].strip(): one.target for one in links}
            assert targets['subprocess.run(["gdalinfo", "a.tif"], timeout=900)'] == f"{uri}#L11,2"
            assert str(targets["requests.get('a')  # deadlint: ignore[DL201] fine"]).endswith("DL201.md")

    asyncio.run(session())
