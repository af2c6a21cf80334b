"""Diagnostics: pushed and pulled, of what is typed, of the version that is there, under the settings that hold."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcRequestCancelled

from tests.server.conftest import UNSAFE, write
from tests.server.editor import PATIENCE_S, editing, place


def test_what_is_found_is_pushed_when_a_file_is_opened(project: Path) -> None:
    async def session() -> None:
        async with editing(project) as editor:
            uri = editor.open(write(project, "fetch.py", UNSAFE))
            (found,) = await editor.diagnostics(uri)
            assert (found.code, found.source, found.severity) == (
                "DL201",
                "deadlint",
                types.DiagnosticSeverity.Warning,
            )
            assert found.range == types.Range(types.Position(4, 11), types.Position(4, 28))
            assert found.code_description is not None
            assert found.code_description.href.endswith("/DL201.md")
            assert "no limit" in found.message or "timeout" in found.message

    asyncio.run(session())


def test_a_keystroke_is_answered_in_its_version(project: Path) -> None:
    async def session() -> None:
        async with editing(project) as editor:
            uri = editor.open(write(project, "fetch.py", UNSAFE))
            assert await editor.codes(uri) == ["DL201"]
            editor.replace(uri, "(url)\n", "(url, timeout=(3, 5), stream=False)\n")
            assert "DL201" not in await editor.codes(uri)
            editor.replace(uri, "timeout=(3, 5), ", "")
            assert await editor.codes(uri) == ["DL201"]

    asyncio.run(session())


def test_of_many_keystrokes_the_last_is_answered(project: Path) -> None:
    """No version is published after a later one, and what is shown last is of the text that is there."""

    async def session() -> None:
        async with editing(project) as editor:
            uri = editor.open(write(project, "fetch.py", UNSAFE))
            for number in range(60):
                editor.change(
                    uri,
                    [
                        types.TextDocumentContentChangePartial(
                            range=types.Range(types.Position(0, 0), types.Position(0, 0)), text=f"# {number}\n"
                        )
                    ],
                )
                editor.texts[uri] = f"# {number}\n{editor.texts[uri]}"
            (found,) = await editor.diagnostics(uri)
            assert found.range.start == types.Position(64, 11)
            versions = [one.version or 0 for one in editor.published if one.uri == uri]
            assert versions == sorted(versions)
            assert versions[-1] == editor.versions[uri]

    asyncio.run(session())


def test_ranges_are_counted_in_the_units_of_the_client(project: Path) -> None:
    """Characters beyond 16 bits, form feeds and a carriage return alone: all that counts differently somewhere."""
    text = "import requests\r\n\f\n# \U0001f5fa\n\U0001d4b3 = '\U0001f5fa\x0b'; requests.get('\U0001f5fa')\r\n"

    async def session() -> None:
        async with editing(project) as editor:
            uri = editor.open(write(project, "fetch.py", text), text)
            (found,) = await editor.diagnostics(uri)
            start = text.index("requests.get")
            assert found.range == types.Range(place(text, start), place(text, len(text) - 2))
            editor.replace(uri, "# \U0001f5fa\n", "# \U0001f5fa\U0001f5fa\f\n# two\n")
            editor.replace(uri, "get(", "post(")
            text_now = editor.texts[uri]
            (found,) = await editor.diagnostics(uri)
            start = text_now.index("requests.post")
            assert found.range == types.Range(place(text_now, start), place(text_now, len(text_now) - 2))

    asyncio.run(session())


def test_a_syntax_error_is_an_error_where_it_is(project: Path) -> None:
    async def session() -> None:
        async with editing(project) as editor:
            uri = editor.open(write(project, "fetch.py", UNSAFE))
            editor.replace(uri, "def fetch(url):", "def fetch(url:")
            (found,) = await editor.diagnostics(uri)
            assert (found.code, found.severity) == ("DL001", types.DiagnosticSeverity.Error)
            editor.replace(uri, "def fetch(url:", "def fetch(url):")
            assert await editor.codes(uri) == ["DL201"]

    asyncio.run(session())


def test_a_closed_document_shows_nothing(project: Path) -> None:
    async def session() -> None:
        async with editing(project) as editor:
            uri = editor.open(write(project, "fetch.py", UNSAFE))
            assert await editor.codes(uri)
            editor.close(uri)
            await editor.published_codes(uri, [])

    asyncio.run(session())


def test_a_document_without_a_file_is_checked(project: Path) -> None:
    async def session() -> None:
        async with editing(project) as editor:
            uri = "untitled:Untitled-1"
            editor.versions[uri] = 1
            editor.text_document_did_open(
                types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "python", 1, UNSAFE))
            )
            assert await editor.codes(uri) == ["DL201"]

    asyncio.run(session())


def test_diagnostics_are_pulled_by_a_client_that_pulls(project: Path) -> None:
    async def session() -> None:
        async with editing(project, pull=True) as editor:
            uri = editor.open(write(project, "fetch.py", UNSAFE))
            first = await editor.pull(uri)
            assert (first.kind, [one.code for one in first.items]) == ("full", ["DL201"])
            again = await editor.pull(uri, first.result_id)
            assert (again.kind, again.result_id) == ("unchanged", first.result_id)
            editor.replace(uri, "import requests\n", "import requests  # noqa\n")
            changed = await editor.pull(uri, first.result_id)
            assert changed.kind == "full"
            assert editor.published == []

    asyncio.run(session())


def test_a_pull_that_is_overtaken_is_to_be_asked_again(project: Path) -> None:
    """The answer is for the text that is there, or none: never the findings of a text that is gone."""

    async def session() -> None:
        async with editing(project, pull=True) as editor:
            uri = editor.open(write(project, "fetch.py", UNSAFE))
            pulls = []
            for number in range(12):
                pulls.append(asyncio.create_task(editor.pull(uri)))
                await asyncio.sleep(0)
                editor.change(uri, [types.TextDocumentContentChangeWholeDocument("\n" * number + UNSAFE)])
            answers = await asyncio.gather(*pulls, return_exceptions=True)
            overtaken = [one for one in answers if isinstance(one, Exception)]
            assert overtaken
            assert all("changed" in str(one) for one in overtaken)
            (found,) = (await editor.pull(uri)).items
            assert found.range.start.line == 15

    asyncio.run(session())


def test_a_cancelled_pull_is_answered_as_cancelled(project: Path) -> None:
    async def session() -> None:
        async with editing(project, pull=True) as editor:
            uri = editor.open(write(project, "fetch.py", UNSAFE * 200))
            params = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(uri))
            pull = editor.protocol.send_request_async(types.TEXT_DOCUMENT_DIAGNOSTIC, params, msg_id="to-cancel")
            editor.cancel_request(types.CancelParams("to-cancel"))
            with pytest.raises(JsonRpcRequestCancelled):
                await asyncio.wait_for(pull, PATIENCE_S)
            assert len((await editor.pull(uri)).items) == 200

    asyncio.run(session())


def test_the_settings_of_each_folder_hold_in_it(project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    write(other, "deadlint.toml", 'ignore = ["DL201"]\n')

    async def session() -> None:
        async with editing(project, other) as editor:
            here = editor.open(write(project, "fetch.py", UNSAFE))
            there = editor.open(write(other, "fetch.py", UNSAFE))
            assert await editor.codes(here) == ["DL201"]
            assert await editor.codes(there) == []

    asyncio.run(session())


def test_a_changed_configuration_is_noticed(project: Path) -> None:
    """By what the client tells of the disk, and at the next keystroke where it tells nothing."""
    configuration = project / "deadlint.toml"

    async def session() -> None:
        async with editing(project) as editor:
            uri = editor.open(write(project, "fetch.py", UNSAFE))
            assert await editor.codes(uri) == ["DL201"]
            registered = await editor.until(lambda: editor.registered)
            assert "**/deadlint.toml" in str(registered[0].register_options)
            configuration.write_text('ignore = ["DL201"]\n', encoding="utf-8")
            event = types.FileEvent(configuration.as_uri(), types.FileChangeType.Changed)
            editor.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))
            await editor.published_codes(uri, [])
        async with editing(project, watch=False) as editor:
            uri = editor.open(project / "fetch.py")
            assert await editor.codes(uri) == []
            configuration.write_text("", encoding="utf-8")
            editor.replace(uri, "import requests\n", "import requests  # once\n")
            await editor.published_codes(uri, ["DL201"])

    asyncio.run(session())


def test_a_wrong_configuration_is_said_once_and_mended(project: Path) -> None:
    configuration = write(project, "deadlint.toml", 'ignore = ["DL999"]\n')

    async def session() -> None:
        async with editing(project, watch=False) as editor:
            uri = editor.open(write(project, "fetch.py", UNSAFE))
            (found,) = await editor.diagnostics(uri)
            assert "DL999" in found.message
            editor.replace(uri, "import requests\n", "import requests  # once\n")
            assert [one.code for one in await editor.diagnostics(uri)] == [None]
            assert len([one for one in editor.messages if "DL999" in one]) == 1
            configuration.write_text("", encoding="utf-8")
            editor.replace(uri, "# once", "# twice")
            await editor.published_codes(uri, ["DL201"])

    asyncio.run(session())


def test_the_settings_of_the_editor_are_over_those_of_the_project(project: Path) -> None:
    strict = "import httpx\n\n\ndef fetch(url):\n    return httpx.get(url, timeout=5)\n"

    async def session() -> None:
        async with editing(project, options={"level": "strict"}) as editor:
            uri = editor.open(write(project, "fetch.py", strict))
            (found,) = await editor.diagnostics(uri)
            assert found.severity == types.DiagnosticSeverity.Information
            editor.workspace_did_change_configuration(
                types.DidChangeConfigurationParams({"deadlint": {"level": "default"}})
            )
            await editor.published_codes(uri, [])
            editor.workspace_did_change_configuration(types.DidChangeConfigurationParams({"level": "loud"}))
            await editor.until(lambda: any("loud" in one for one in editor.messages))

    asyncio.run(session())


def test_an_excluded_file_and_a_suppressed_finding_are_not_shown(project: Path) -> None:
    write(project, "deadlint.toml", 'exclude = ["vendored/"]\n')

    async def session() -> None:
        async with editing(project) as editor:
            excluded = editor.open(write(project, "vendored/fetch.py", UNSAFE))
            assert await editor.codes(excluded) == []
            ignored = UNSAFE.replace("get(url)", "get(url)  # deadlint: ignore[DL201] by the caller")
            assert await editor.codes(editor.open(write(project, "fetch.py", ignored))) == []

    asyncio.run(session())


LIMITED = """\
import subprocess

from prefect import task


@task(timeout_seconds=600)
def build_tile(source):
    limit = 900
    return warp(source, limit)


def warp(source, limit):
    subprocess.run(["gdalinfo", source], timeout=limit)


class Tiles:
    def load(self):
        return open("a")
"""


def test_what_a_keystroke_changes_elsewhere_in_the_file_follows(project: Path) -> None:
    """At once only the function is looked at that is typed in; the rest when typing pauses."""

    async def session() -> None:
        async with editing(project) as editor:
            uri = editor.open(write(project, "flows.py", LIMITED))
            (found,) = await editor.published_codes(uri, ["DL401"])
            editor.replace(uri, "limit = 900\n", "limit = 900\n    other = 1\n")
            (moved,) = await editor.diagnostics(uri)
            assert moved.range.start.line == found.range.start.line + 1
            task, call = moved.related_information or ()
            assert [task.location.range.start.line, call.location.range.start.line] == [5, 9]
            version = editor.replace(uri, "limit = 900", "limit = 60")
            await editor.published_codes(uri, [])
            last = editor.last(uri)
            assert last is not None
            assert last.version == version
            editor.replace(uri, "limit = 60", "limit = 901")
            await editor.published_codes(uri, ["DL401"])

    asyncio.run(session())


def test_a_client_that_pulls_is_told_when_the_rest_has_changed(project: Path) -> None:
    async def session() -> None:
        async with editing(project, pull=True) as editor:
            uri = editor.open(write(project, "flows.py", LIMITED))
            assert [one.code for one in (await editor.pull(uri)).items] == ["DL401"]
            editor.refreshes.clear()
            editor.replace(uri, "limit = 900", "limit = 60")
            first = await editor.pull(uri)
            await editor.until(lambda: "diagnostics" in editor.refreshes)
            assert not (await editor.pull(uri, first.result_id)).items

    asyncio.run(session())
