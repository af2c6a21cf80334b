"""More files than one: what is open and not saved is what the others see."""

from __future__ import annotations

import asyncio
from pathlib import Path

from lsprotocol import types

from tests.server.conftest import write
from tests.server.editor import editing

CLIENT = "import requests\n\nsession = requests.Session()\n"
USE = "from client import session\n\n\ndef fetch(url):\n    return session.get(url)\n"


def test_an_unsaved_buffer_is_what_other_files_import(project: Path) -> None:
    write(project, "client.py", CLIENT)

    async def session() -> None:
        async with editing(project) as editor:
            use = editor.open(write(project, "use.py", USE))
            assert await editor.codes(use) == ["DL201"]
            client = editor.open(project / "client.py")
            editor.replace(client, "requests.Session()", "object()")
            await editor.published_codes(use, [])
            editor.replace(client, "object()", "requests.Session()")
            await editor.published_codes(use, ["DL201"])
            editor.replace(client, "requests.Session()", "object()")
            await editor.published_codes(use, [])
            editor.close(client)  # without saving: the file counts again
            await editor.published_codes(use, ["DL201"])
            assert {one.version for one in editor.published if one.uri == use} == {1}

    asyncio.run(session())


def test_a_client_that_pulls_is_asked_to_pull_again(project: Path) -> None:
    write(project, "client.py", CLIENT)

    async def session() -> None:
        async with editing(project, pull=True) as editor:
            use = editor.open(write(project, "use.py", USE))
            before = await editor.pull(use)
            assert [one.code for one in before.items] == ["DL201"]
            client = editor.open(project / "client.py")
            await editor.pull(client)
            editor.replace(client, "requests.Session()", "object()")
            await editor.until(lambda: "diagnostics" in editor.refreshes)
            assert not (await editor.pull(use, before.result_id)).items

    asyncio.run(session())


def test_files_that_come_change_and_go_on_disk_are_noticed(project: Path) -> None:
    client = project / "client.py"

    async def session() -> None:
        async with editing(project) as editor:

            def tell(kind: types.FileChangeType) -> None:
                event = types.FileEvent(client.as_uri(), kind)
                editor.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))

            use = editor.open(write(project, "use.py", USE))
            assert await editor.codes(use) == []
            write(project, "client.py", CLIENT)
            tell(types.FileChangeType.Created)
            await editor.published_codes(use, ["DL201"])
            write(project, "client.py", "session = object()\n")
            tell(types.FileChangeType.Changed)
            await editor.published_codes(use, [])
            write(project, "client.py", CLIENT)
            tell(types.FileChangeType.Changed)
            await editor.published_codes(use, ["DL201"])
            client.unlink()
            tell(types.FileChangeType.Deleted)
            await editor.published_codes(use, [])

    asyncio.run(session())


def test_a_saved_file_is_noticed_without_a_watcher(project: Path) -> None:
    client = project / "client.py"

    async def session() -> None:
        async with editing(project, watch=False) as editor:
            use = editor.open(write(project, "use.py", USE))
            assert await editor.codes(use) == []
            uri = editor.open(client, CLIENT)
            editor.save(uri, client)
            await editor.published_codes(use, ["DL201"])

    asyncio.run(session())


def test_a_file_that_was_never_saved_can_be_imported(project: Path) -> None:
    async def session() -> None:
        async with editing(project) as editor:
            use = editor.open(write(project, "use.py", USE))
            assert await editor.codes(use) == []
            editor.open(project / "client.py", CLIENT)
            await editor.published_codes(use, ["DL201"])

    asyncio.run(session())


def test_modules_that_import_each_other_are_checked(project: Path) -> None:
    write(project, "client.py", "from use import fetch\n" + CLIENT)

    async def session() -> None:
        async with editing(project) as editor:
            use = editor.open(write(project, "use.py", USE))
            client = editor.open(project / "client.py")
            assert await editor.codes(use) == ["DL201"]
            for number in range(5):
                editor.replace(client, "session = ", f"session_{number} = None\nsession = ")
            editor.replace(client, "requests.Session()", "object()")
            await editor.published_codes(use, [])

    asyncio.run(session())


FLOW = """\
from prefect import task

from tiles import warp


@task(timeout_seconds=600)
def build_tile(source):
    warp(source)
"""
TILES = 'import subprocess\n\n\ndef warp(source):\n    subprocess.run(["gdalinfo", source], timeout=900)\n'


def test_limits_of_callers_in_other_files_are_known(project: Path) -> None:
    """Also of those that are not open: the project is indexed first, and the editor shows how far that is."""
    write(project, "flow.py", FLOW)

    async def session() -> None:
        async with editing(project) as editor:
            tiles = editor.open(write(project, "tiles.py", TILES))
            (found,) = await editor.published_codes(tiles, ["DL401"])
            related = [one.location.uri.rpartition("/")[2] for one in found.related_information or ()]
            assert related == ["flow.py", "flow.py"]
            assert await editor.hints(tiles) == [
                'subprocess.run(["gdalinfo", source], timeout=900) ≤ 600 s via build_tile'
            ]
            assert "flow.py:8" in await editor.hover(tiles, "subprocess.run")
            await editor.until(lambda: editor.progress[-1]["kind"] == "end")
            kinds = [one["kind"] for one in editor.progress]
            assert (kinds[0], kinds[-1]) == ("begin", "end")

    asyncio.run(session())


def test_a_limit_that_changes_in_a_caller_changes_what_is_found(project: Path) -> None:
    write(project, "flow.py", FLOW)

    async def session() -> None:
        async with editing(project) as editor:
            tiles = editor.open(write(project, "tiles.py", TILES))
            flow = editor.open(project / "flow.py")
            await editor.published_codes(tiles, ["DL401"])
            editor.replace(flow, "=600", "=1200")
            await editor.published_codes(tiles, [])
            editor.replace(flow, "=1200", "=300")
            await editor.published_codes(tiles, ["DL401"])
            assert await editor.hints(tiles) == [
                'subprocess.run(["gdalinfo", source], timeout=900) ≤ 300 s via build_tile'
            ]
            editor.replace(flow, "=300", "=1800")
            await editor.published_codes(tiles, [])
            editor.close(flow)
            await editor.published_codes(tiles, ["DL401"])

    asyncio.run(session())


def test_a_limit_is_handed_on_over_a_file_that_is_not_open(project: Path) -> None:
    write(project, "between.py", "from tiles import warp\n\n\ndef prepare(source):\n    warp(source)\n")
    write(project, "flow.py", FLOW.replace("tiles import warp", "between import prepare").replace("warp(", "prepare("))

    async def session() -> None:
        async with editing(project, pull=True) as editor:
            tiles = editor.open(write(project, "tiles.py", TILES))
            flow = editor.open(project / "flow.py")
            await editor.until(lambda: "diagnostics" in editor.refreshes)
            assert [one.code for one in (await editor.pull(tiles)).items] == ["DL401"]
            await editor.pull(flow)
            editor.refreshes.clear()
            editor.replace(flow, "=600", "=1200")
            await editor.pull(flow)
            await editor.until(lambda: "diagnostics" in editor.refreshes)
            assert not (await editor.pull(tiles)).items

    asyncio.run(session())


def test_the_index_can_be_cancelled(project: Path) -> None:
    for number in range(300):
        write(project, f"flow_{number}.py", FLOW + "    warp(source)\n" * 40)

    async def session() -> None:
        async with editing(project) as editor:
            tiles = editor.open(write(project, "tiles.py", TILES))
            await editor.until(lambda: editor.progress)
            editor.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(editor.tokens[0]))
            await editor.until(lambda: editor.progress[-1]["kind"] == "end")
            assert all(one.get("percentage", 0) < 100 for one in editor.progress)
            editor.replace(tiles, "timeout=900", "timeout=9")
            await editor.diagnostics(tiles)

    asyncio.run(session())
