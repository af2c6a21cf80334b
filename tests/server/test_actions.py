"""Code actions: what they are called, and the text after each is taken."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from tests.server.conftest import UNSAFE, write
from tests.server.editor import PATIENCE_S, Editor, editing

TWO = "import requests\n\n\ndef fetch(url):\n    return requests.get(url)\n\n\ndef send(url):\n    return requests.put(url)\n"
# A safe fix and two unsafe ones, of two rules.
MIXED = "import time\n\nimport requests\n\n\ndef fetch(url):\n    return requests.get(url)  # deadlint: ignore[DL101]\n"


async def taken(editor: Editor, action: types.CodeAction) -> None:
    """Take an action as an editor does: ask for its edit where it has none, and make it."""
    whole = action if action.edit is not None else await editor.code_action_resolve_async(action)
    assert whole.edit is not None
    editor.apply(whole.edit)


def titled(actions: dict[str, types.CodeAction], *words: str) -> types.CodeAction:
    """The only action with these words in its title."""
    (found,) = [action for title, action in actions.items() if all(word in title for word in words)]
    return found


def test_one_finding_is_fixed_with_what_its_fix_needs(project: Path) -> None:
    async def session() -> None:
        async with editing(project) as editor:
            uri = editor.open(write(project, "fetch.py", TWO))
            action = titled(await editor.actions(uri, "requests.get"), "DL201", "may change behaviour", "http")
            assert action.kind == types.CodeActionKind.QuickFix
            assert [one.code for one in action.diagnostics or ()] == ["DL201"]
            await taken(editor, action)
            assert "from deadlint_budget import http" in editor.texts[uri]
            assert "HTTP_LIMIT_S = 30" in editor.texts[uri]
            assert "http.get(url, want=HTTP_LIMIT_S)" in editor.texts[uri]
            assert "requests.put(url)" in editor.texts[uri]
            assert await editor.codes(uri) == ["DL201"]

    asyncio.run(session())


@pytest.mark.parametrize("resolve", [True, False])
def test_all_of_one_rule_are_fixed_at_once(project: Path, resolve: bool) -> None:
    """Also in an editor that does not ask for edits later."""

    async def session() -> None:
        async with editing(project, resolve=resolve, versions=resolve) as editor:
            uri = editor.open(write(project, "fetch.py", TWO))
            action = titled(await editor.actions(uri, "requests.get"), "DL201", "all its 2 fixes")
            assert (action.edit is None) == resolve
            await taken(editor, action)
            assert "http.get(url" in editor.texts[uri]
            assert "http.put(url" in editor.texts[uri]
            assert editor.texts[uri].count("HTTP_LIMIT_S = 30") == 1
            assert await editor.codes(uri) == []

    asyncio.run(session())


def test_fix_all_makes_the_safe_fixes_only(project: Path) -> None:
    async def session() -> None:
        async with editing(project) as editor:
            uri = editor.open(write(project, "fetch.py", MIXED))
            sources = await editor.actions(uri, "requests.get", only=["source.fixAll"])
            (action,) = sources.values()
            assert action.kind == "source.fixAll.deadlint"
            await taken(editor, action)
            assert editor.texts[uri] == MIXED.replace("  # deadlint: ignore[DL101]", "")
            await editor.diagnostics(uri)
            assert await editor.actions(uri, "requests.get", only=["source.fixAll.deadlint"]) == {}

    asyncio.run(session())


def test_all_fixes_are_made_on_another_request(project: Path) -> None:
    async def session() -> None:
        async with editing(project) as editor:
            uri = editor.open(write(project, "fetch.py", MIXED))
            action = titled(await editor.actions(uri, "requests.get"), "apply all fixes", "may change behaviour")
            assert action.kind == "source.fixAllUnsafe.deadlint"
            await taken(editor, action)
            assert await editor.codes(uri) == []
            assert "http.get(url" in editor.texts[uri]

    asyncio.run(session())


def test_a_safe_fix_is_preferred(project: Path) -> None:
    """Where the project depends on deadlint, the import that a fix adds is no risk."""
    write(project, "pyproject.toml", '[project]\nname = "p"\ndependencies = ["deadlint"]\n')
    text = "from deadlint_budget import Budget\n\nlimit = Budget.of(9)\nBudget.of(5)  # deadlint: ignore[DL101]\n"

    async def session() -> None:
        async with editing(project) as editor:
            uri = editor.open(write(project, "flows.py", text))
            action = titled(await editor.actions(uri, "# deadlint"), "DL002", "remove the comment")
            assert action.is_preferred
            await taken(editor, action)
            assert editor.texts[uri] == text.replace("  # deadlint: ignore[DL101]", "")

    asyncio.run(session())


@pytest.mark.parametrize("resolve", [True, False])
def test_a_finding_is_ignored_with_a_comment_where_it_holds(project: Path, resolve: bool) -> None:
    """Not within a string that goes over lines, and beside a comment that is there already."""
    text = 'import requests\n\nrequests.get("""\n    a\n    """,\n)\nrequests.get("b")  # by the caller\n'

    async def session() -> None:
        async with editing(project, resolve=resolve) as editor:
            uri = editor.open(write(project, "fetch.py", text))
            await taken(editor, titled(await editor.actions(uri, 'requests.get("""'), "DL201", "ignore"))
            assert '    """,  # deadlint: ignore[DL201]\n)' in editor.texts[uri]
            await taken(editor, titled(await editor.actions(uri, 'requests.get("b")'), "DL201", "ignore"))
            assert '("b")  # by the caller  # deadlint: ignore[DL201]\n' in editor.texts[uri]
            assert await editor.codes(uri) == []

    asyncio.run(session())


def test_the_page_of_a_rule_is_opened(project: Path) -> None:
    async def session() -> str:
        async with editing(project) as editor:
            uri = editor.open(write(project, "fetch.py", UNSAFE))
            action = titled(await editor.actions(uri, "requests.get"), "DL201", "open the page")
            assert action.command is not None
            command = types.ExecuteCommandParams(action.command.command, action.command.arguments)
            await editor.workspace_execute_command_async(command)
            (shown,) = await editor.until(lambda: editor.shown)
        async with editing(project, show=False) as editor:
            await editor.workspace_execute_command_async(command)
            assert "DL201.md" in (await editor.until(lambda: editor.messages))[0]
            return str(shown)

    page = Path(asyncio.run(session()).removeprefix("file://"))
    assert page.read_text(encoding="utf-8").startswith("# DL201 request-without-timeout")


def test_an_edit_of_an_older_version_is_refused(project: Path) -> None:
    async def session() -> None:
        async with editing(project) as editor:
            uri = editor.open(write(project, "fetch.py", TWO))
            action = titled(await editor.actions(uri, "requests.get"), "DL201", "all its 2 fixes")
            editor.replace(uri, "def send", "def put")
            with pytest.raises(JsonRpcException, match="changed"):
                await asyncio.wait_for(editor.code_action_resolve_async(action), PATIENCE_S)

    asyncio.run(session())


def test_only_the_kinds_that_are_asked_for_are_offered(project: Path) -> None:
    async def session() -> None:
        async with editing(project) as editor:
            uri = editor.open(write(project, "fetch.py", MIXED))
            quick = await editor.actions(uri, "requests.get", only=["quickfix"])
            assert {action.kind for action in quick.values() if action.kind} == {types.CodeActionKind.QuickFix}
            assert await editor.actions(uri, "requests.get", only=["refactor"]) == {}
            assert not any("DL201" in title for title in await editor.actions(uri, "import time"))

    asyncio.run(session())
