"""An editor for the tests: a client of pygls that keeps what the server says, over standard input and output."""

from __future__ import annotations

import ast
import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient

PATIENCE_S = 30.0  # nothing takes so long; a test that waits for it has failed


class Editor(LanguageClient):
    """What an editor would show, and the documents that it has open."""

    def __init__(self) -> None:
        super().__init__("test-editor", "1")
        self.published: list[types.PublishDiagnosticsParams] = []
        self.messages: list[str] = []
        self.shown: list[str] = []
        self.registered: list[types.Registration] = []
        self.tokens: list[int | str] = []
        self.progress: list[dict[str, Any]] = []
        self.refreshes: list[str] = []
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self._news = asyncio.Event()
        self.capabilities: types.ServerCapabilities | None = None
        self._listen()

    def _listen(self) -> None:
        def heard(method: str, keep: Callable[[Any], None], answer: Callable[[], Any] | None = None) -> None:
            def on_message(params: Any) -> Any:
                keep(params)
                self._news.set()
                return answer() if answer is not None else None

            self.feature(method)(on_message)

        heard(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, self.published.append)
        heard(types.WINDOW_SHOW_MESSAGE, lambda params: self.messages.append(params.message))
        heard(
            types.WINDOW_SHOW_DOCUMENT,
            lambda params: self.shown.append(params.uri),
            lambda: types.ShowDocumentResult(success=True),
        )
        heard(types.CLIENT_REGISTER_CAPABILITY, lambda params: self.registered.extend(params.registrations))
        heard(types.WINDOW_WORK_DONE_PROGRESS_CREATE, lambda params: self.tokens.append(params.token))
        heard(types.PROGRESS, lambda params: self.progress.append(params.value))
        heard(types.WORKSPACE_DIAGNOSTIC_REFRESH, lambda _: self.refreshes.append("diagnostics"))
        heard(types.WORKSPACE_INLAY_HINT_REFRESH, lambda _: self.refreshes.append("hints"))

    async def until(self, holds: Callable[[], Any]) -> Any:
        """What `holds` says once that is true; it is asked after each message of the server."""

        async def wait() -> Any:
            while not (answer := holds()):
                self._news.clear()
                await self._news.wait()
            return answer

        return await asyncio.wait_for(wait(), PATIENCE_S)

    # --- documents -------------------------------------------------------------------------------------------

    def open(self, path: Path, text: str | None = None) -> str:
        """Open a file, with a text that is not saved where one is given; its address."""
        uri = path.as_uri()
        self.texts[uri] = path.read_text(encoding="utf-8") if text is None else text
        self.versions[uri] = 1
        item = types.TextDocumentItem(uri, "python", 1, self.texts[uri])
        self.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return uri

    def replace(self, uri: str, old: str, new: str) -> int:
        """Replace the only place of `old` as a keystroke does, by its range; the new version."""
        text = self.texts[uri]
        assert text.count(old) == 1, f"{text.count(old)} places of {old!r}"
        start = text.index(old)
        span = types.Range(place(text, start), place(text, start + len(old)))
        self.texts[uri] = text.replace(old, new)
        return self.change(uri, [types.TextDocumentContentChangePartial(range=span, text=new)])

    def change(self, uri: str, changes: Sequence[types.TextDocumentContentChangeEvent]) -> int:
        """Send changes; the new version."""
        self.versions[uri] += 1
        document = types.VersionedTextDocumentIdentifier(uri=uri, version=self.versions[uri])
        self.text_document_did_change(types.DidChangeTextDocumentParams(document, [*changes]))
        return self.versions[uri]

    def close(self, uri: str) -> None:
        """Close a document without saving it."""
        self.text_document_did_close(types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def save(self, uri: str, path: Path) -> None:
        """Write a document to its file."""
        path.write_text(self.texts[uri], encoding="utf-8", newline="")
        self.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri)))

    def apply(self, edit: types.WorkspaceEdit) -> None:
        """Make the edits of an action, those of this version or without one."""
        changes = dict(edit.changes or {})
        for document in edit.document_changes or ():
            assert isinstance(document, types.TextDocumentEdit)
            assert document.text_document.version == self.versions[document.text_document.uri]
            changes[document.text_document.uri] = [one for one in document.edits if isinstance(one, types.TextEdit)]
        for uri, edits in changes.items():
            text = self.texts[uri]
            spans = [(offset(text, one.range.start), offset(text, one.range.end), one.new_text) for one in edits]
            for start, end, new in sorted(spans, key=lambda span: span[:2], reverse=True):
                text = text[:start] + new + text[end:]
            self.texts[uri] = text
            self.change(uri, [types.TextDocumentContentChangeWholeDocument(text)])

    # --- what is found ---------------------------------------------------------------------------------------

    async def diagnostics(self, uri: str, version: int | None = None) -> list[types.Diagnostic]:
        """What is published of a version of a document, the one it has where none is given."""
        wanted = self.versions[uri] if version is None else version
        return list((await self.until(lambda: self._published(uri, wanted))).diagnostics)

    async def codes(self, uri: str) -> list[str]:
        """The codes of what is published of a document as it is."""
        return [str(one.code) for one in await self.diagnostics(uri)]

    async def published_codes(self, uri: str, codes: Sequence[str]) -> list[types.Diagnostic]:
        """What was published last of a document, once it has these codes."""

        def last() -> types.PublishDiagnosticsParams | None:
            found = self.last(uri)
            return found if found is not None and [one.code for one in found.diagnostics] == [*codes] else None

        return list((await self.until(last)).diagnostics)

    def last(self, uri: str) -> types.PublishDiagnosticsParams | None:
        """What was published last of a document."""
        return next((one for one in reversed(self.published) if one.uri == uri), None)

    def _published(self, uri: str, version: int) -> types.PublishDiagnosticsParams | None:
        return next((one for one in reversed(self.published) if one.uri == uri and one.version == version), None)

    async def pull(self, uri: str, previous: str | None = None) -> Any:
        """The report on a document."""
        document = types.TextDocumentIdentifier(uri)
        return await self.text_document_diagnostic_async(
            types.DocumentDiagnosticParams(document, previous_result_id=previous)
        )

    async def actions(self, uri: str, on: str, only: Sequence[str] | None = None) -> dict[str, types.CodeAction]:
        """The actions at the first place of a text, by title."""
        start = self.texts[uri].index(on)
        span = types.Range(place(self.texts[uri], start), place(self.texts[uri], start + len(on)))
        context = types.CodeActionContext(diagnostics=[], only=None if only is None else [*only])
        params = types.CodeActionParams(types.TextDocumentIdentifier(uri), span, context)
        found = await self.text_document_code_action_async(params)
        return {one.title: _action(one) for one in found or ()}

    async def hover(self, uri: str, on: str) -> str:
        """The text of the hover at the first place of a text; empty where there is none."""
        position = place(self.texts[uri], self.texts[uri].index(on))
        found = await self.text_document_hover_async(
            types.HoverParams(types.TextDocumentIdentifier(uri), position)
        )
        return found.contents.value if found is not None and isinstance(found.contents, types.MarkupContent) else ""

    async def hints(self, uri: str) -> list[str]:
        """The inlay hints of a document, each with the line that it stands on."""
        text = self.texts[uri]
        whole = types.Range(types.Position(0, 0), place(text, len(text)))
        found = await self.text_document_inlay_hint_async(
            types.InlayHintParams(types.TextDocumentIdentifier(uri), whole)
        )
        lines = text.split("\n")
        return [f"{lines[one.position.line].strip()} {_label(one)}" for one in found or ()]


def _label(hint: types.InlayHint) -> str:
    return hint.label if isinstance(hint.label, str) else "".join(part.value for part in hint.label)


def _action(found: types.CodeAction | types.Command) -> types.CodeAction:
    """What the server sent: lsprotocol takes an action with a command in it for the command itself."""
    if isinstance(found, types.CodeAction):
        return found
    inner: dict[str, Any] = ast.literal_eval(str(found.command))
    return types.CodeAction(found.title, command=types.Command(inner["title"], inner["command"], None, inner["arguments"]))


def place(text: str, offset: int) -> types.Position:
    """The position of an offset in UTF-16 units, as an editor counts."""
    before = text[:offset]
    line_start = max(before.rfind("\n"), before.rfind("\r")) + 1
    line = before.count("\n") + before.count("\r") - before.count("\r\n")
    return types.Position(line, len(before[line_start:].encode("utf-16-le")) // 2)


def offset(text: str, position: types.Position) -> int:
    """The offset of a position in UTF-16 units."""
    return next((number for number in range(len(text) + 1) if place(text, number) == position), len(text))


def capabilities(**changes: bool) -> types.ClientCapabilities:
    """What a full editor can do; `pull` for one that asks for diagnostics, the others are taken away by False."""

    def has(name: str) -> bool:
        return changes.get(name, True)

    resolve = types.ClientCodeActionResolveOptions(properties=["edit"])
    return types.ClientCapabilities(
        workspace=types.WorkspaceClientCapabilities(
            workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=has("versions")),
            did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(dynamic_registration=has("watch")),
            diagnostics=types.DiagnosticWorkspaceClientCapabilities(refresh_support=True),
            inlay_hint=types.InlayHintWorkspaceClientCapabilities(refresh_support=True),
            workspace_folders=True,
        ),
        text_document=types.TextDocumentClientCapabilities(
            code_action=types.CodeActionClientCapabilities(
                resolve_support=resolve if has("resolve") else None, data_support=True
            ),
            diagnostic=types.DiagnosticClientCapabilities() if changes.get("pull") else None,
        ),
        window=types.WindowClientCapabilities(
            work_done_progress=has("progress"),
            show_document=types.ShowDocumentClientCapabilities(support=has("show")),
        ),
    )


@asynccontextmanager
async def editing(*folders: Path, options: Any = None, **changes: bool) -> AsyncIterator[Editor]:
    """An editor that works on folders, with its server; both are gone afterwards."""
    editor = Editor()
    environment = {**os.environ, "XDG_CACHE_HOME": str(folders[0].parent / "cache")}
    await editor.start_io(sys.executable, "-m", "deadlint", "server", "--stdio", cwd=folders[0], env=environment)
    try:
        answer = await editor.initialize_async(
            types.InitializeParams(
                capabilities=capabilities(**changes),
                process_id=os.getpid(),
                root_uri=folders[0].as_uri(),
                workspace_folders=[types.WorkspaceFolder(one.as_uri(), one.name) for one in folders],
                initialization_options=options,
            )
        )
        editor.capabilities = answer.capabilities
        editor.initialized(types.InitializedParams())
        yield editor
        await asyncio.wait_for(editor.shutdown_async(None), PATIENCE_S)
        editor.exit(None)
        await asyncio.wait_for(editor.stop(), PATIENCE_S)
        assert editor._server is not None
        assert editor._server.returncode == 0
    finally:
        if editor._server is not None and editor._server.returncode is None:
            editor._server.kill()
            await editor._server.wait()
