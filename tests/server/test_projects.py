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
