"""The server: which message is answered by what."""

from __future__ import annotations

import os
from collections.abc import Iterable

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from deadlint import __version__
from deadlint.server.actions import KINDS, OPEN_RULE, Asked, CannotDo, Deferred, offered
from deadlint.server.buffers import Buffer
from deadlint.server.client import Client
from deadlint.server.diagnostics import diagnostic
from deadlint.server.hints import hints
from deadlint.server.hover import hover
from deadlint.server.links import links
from deadlint.server.pages import page_uri
from deadlint.server.progress import Hidden, Shown
from deadlint.server.protocol import Protocol
from deadlint.server.session import Session

_SERVER_CANCELLED = -32802
WATCHED = ("**/*.py", "**/*.pyi", "**/pyproject.toml", "**/deadlint.toml", "**/.gitignore")


class Server(LanguageServer):
    """The language server, with the session of the editor that it serves."""

    def __init__(self) -> None:
        super().__init__("deadlint", __version__, protocol_cls=Protocol)
        self.session = Session(self)
        self._begun = 0

    async def begin(self, title: str, steps: int) -> Shown | Hidden:
        """Show that work has begun."""
        if not self.session.client.shows_progress:
            return Hidden()
        self._begun += 1
        return await Shown.begin(self, title, steps, self._begun)

    def publish(self, buffer: Buffer, found: list[types.Diagnostic]) -> None:
        """Show the diagnostics of a version of a buffer."""
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(buffer.uri, found, version=buffer.version)
        )

    def refresh(self) -> None:
        """Ask for what has been shown again."""
        if self.session.client.refreshes_diagnostics and self.session.client.pulls:
            self.workspace_diagnostic_refresh(None)
        if self.session.client.refreshes_hints:
            self.workspace_inlay_hint_refresh(None)

    def complain(self, text: str) -> None:
        """Show an error."""
        self.window_show_message(types.ShowMessageParams(types.MessageType.Error, text))


def make_server() -> Server:
    """A server that knows what to answer."""
    server = Server()
    actions = types.CodeActionOptions(code_action_kinds=[*KINDS], resolve_provider=True)
    pulls = types.DiagnosticOptions(
        inter_file_dependencies=True, workspace_diagnostics=False, identifier="deadlint"
    )
    server.feature(types.INITIALIZE)(initialize)
    server.feature(types.INITIALIZED)(initialized)
    server.feature(types.SHUTDOWN)(shutdown)
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(opened)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(changed)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(closed)
    server.feature(types.TEXT_DOCUMENT_DID_SAVE)(saved)
    server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)(watched)
    server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(configured)
    server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)(folders_changed)
    server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, pulls)(pulled)
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, actions)(code_actions)
    server.feature(types.CODE_ACTION_RESOLVE)(resolved)
    server.feature(types.TEXT_DOCUMENT_HOVER)(hovered)
    server.feature(types.TEXT_DOCUMENT_INLAY_HINT)(inlay_hints)
    server.feature(types.TEXT_DOCUMENT_DOCUMENT_LINK)(document_links)
    server.command(OPEN_RULE)(open_rule)
    return server


def initialize(ls: Server, params: types.InitializeParams) -> None:
    """Take note of what the client can do and wants."""
    session = ls.session
    session.client = Client.of(params.capabilities)
    session.buffers.units = str(getattr(ls.workspace.position_encoding, "value", ls.workspace.position_encoding))
    session.folder = next(iter(_folders(ls)), os.getcwd())
    if params.initialization_options is not None:
        session.configure(params.initialization_options)


def initialized(ls: Server, params: types.InitializedParams) -> None:
    """Ask to be told of changes on disk."""
    if ls.session.client.watches:
        watchers = [types.FileSystemWatcher(pattern) for pattern in WATCHED]
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
        ls.client_register_capability(
            types.RegistrationParams([types.Registration("deadlint-files", method, options)])
        )


def shutdown(ls: Server, params: None) -> None:
    """Begin nothing more."""
    ls.session.worker.stop()


def opened(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
    """A document is open."""
    ls.session.opened(params.text_document)


def changed(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
    """A document has changed."""
    ls.session.changed(params)


def closed(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
    """A document is closed."""
    ls.session.closed(params.text_document.uri)


def saved(ls: Server, params: types.DidSaveTextDocumentParams) -> None:
    """A document is saved."""
    ls.session.saved(params.text_document.uri)


def watched(ls: Server, params: types.DidChangeWatchedFilesParams) -> None:
    """Files have changed on disk."""
    changes = []
    for change in params.changes:
        path = to_fs_path(change.uri)
        if path is not None:
            changes.append((os.path.abspath(path), change.type is not types.FileChangeType.Changed))
    ls.session.disk_changed(changes)


def configured(ls: Server, params: types.DidChangeConfigurationParams) -> None:
    """The client has other settings."""
    ls.session.configure(params.settings or {})


def folders_changed(ls: Server, params: types.DidChangeWorkspaceFoldersParams) -> None:
    """The client works on other folders."""
    ls.session.folder = next(iter(_folders(ls)), os.getcwd())


async def pulled(ls: Server, params: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport:
    """The diagnostics of a document; only that they are the same where the client has them."""
    buffer = ls.session.buffers.get(params.text_document.uri)
    if buffer is None:
        return types.RelatedFullDocumentDiagnosticReport([])
    report = await ls.session.report(buffer)
    if report is None:
        raise _again()
    name, found = report
    if name == params.previous_result_id:
        return types.RelatedUnchangedDocumentDiagnosticReport(name)
    return types.RelatedFullDocumentDiagnosticReport(found, result_id=name)


async def code_actions(ls: Server, params: types.CodeActionParams) -> list[types.CodeAction]:
    """What can be done in a range."""
    session = ls.session
    buffer = session.buffers.get(params.text_document.uri)
    if buffer is None:
        return []
    checked = await session.checked(buffer, with_fixes=True)
    if checked is None:
        raise _again()
    client, places = session.client, session.places()
    asked = Asked(
        params.range,
        None if params.context.only is None else tuple(str(getattr(one, "value", one)) for one in params.context.only),
        versioned=client.versioned_edits,
        resolves=client.resolves_edits,
    )
    actions = list(offered(checked, asked, places, lambda finding: diagnostic(finding, checked, places)))
    if client.resolves_edits:
        return actions
    return [action for action in actions if await _resolve(session, action)]


async def resolved(ls: Server, params: types.CodeAction) -> types.CodeAction:
    """An action with its edit."""
    if not await _resolve(ls.session, params):
        raise _again()
    return params


async def _resolve(session: Session, action: types.CodeAction) -> bool:
    """Give an action its edit if it has none yet; whether it can be taken."""
    deferred = Deferred.of(action.data)
    if deferred is None:
        return True
    try:
        action.edit = await session.edit_of(deferred)
    except CannotDo as error:
        session.editor.complain(f"deadlint: {error}")
    return action.edit is not None


async def hovered(ls: Server, params: types.HoverParams) -> types.Hover | None:
    """What is to be said at a position."""
    session = ls.session
    buffer = session.buffers.get(params.text_document.uri)
    if buffer is None:
        return None
    held, checked = await session.held(buffer), await session.checked(buffer)
    if checked is None or held is None:
        raise _again()
    return hover(
        params.position, buffer.positions, checked.findings, held, session.analysis.rules, session.places()
    )


async def inlay_hints(ls: Server, params: types.InlayHintParams) -> list[types.InlayHint]:
    """The limits that hold, where they are not what stands there."""
    session = ls.session
    buffer = session.buffers.get(params.text_document.uri)
    if buffer is None or not session.analysis.options.hints:
        return []
    held = await session.held(buffer)
    if held is None:
        raise _again()
    return list(hints(held, params.range, buffer.path, session.places()))


async def document_links(ls: Server, params: types.DocumentLinkParams) -> list[types.DocumentLink]:
    """The places that findings are about, and the pages of rules that comments name."""
    session = ls.session
    buffer = session.buffers.get(params.text_document.uri)
    if buffer is None:
        return []
    checked = await session.checked(buffer)
    if checked is None:
        raise _again()
    return list(links(buffer, checked.findings, session.analysis.rules, session.places()))


async def open_rule(ls: Server, code: str) -> None:
    """Open the page of a rule in the editor."""
    uri = page_uri(code)
    if uri is None:
        ls.complain(f"no page of {code} can be written; `deadlint rule {code}` prints it")
    elif ls.session.client.shows_documents:
        await ls.window_show_document_async(types.ShowDocumentParams(uri, take_focus=True))
    else:
        ls.window_show_message(types.ShowMessageParams(types.MessageType.Info, f"{code}: {to_fs_path(uri)}"))


def _again() -> JsonRpcException:
    """The answer to a request that has been overtaken by a change: the client is to ask again."""
    return JsonRpcException("the document has changed", _SERVER_CANCELLED, {"retriggerRequest": True})


def _folders(ls: Server) -> Iterable[str]:
    """The paths of the folders that the client works on."""
    uris = [folder.uri for folder in ls.workspace.folders.values()]
    if not uris and ls.workspace.root_uri:
        uris.append(ls.workspace.root_uri)
    return [path for path in map(to_fs_path, uris) if path]
