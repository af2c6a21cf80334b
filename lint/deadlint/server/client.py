"""What the editor at the other end can do, as far as it matters here."""

from __future__ import annotations

from dataclasses import dataclass

from lsprotocol import types
from pygls.capabilities import get_capability


@dataclass(frozen=True, slots=True)
class Client:
    """What a client has said of itself; nothing, before it has."""

    pulls: bool = False  # asks for diagnostics itself: none are pushed to it
    refreshes_diagnostics: bool = False
    refreshes_hints: bool = False
    watches: bool = False
    versioned_edits: bool = False
    resolves_edits: bool = False
    shows_progress: bool = False
    shows_documents: bool = False

    @classmethod
    def of(cls, said: types.ClientCapabilities) -> Client:
        """What matters of a client's capabilities."""

        def has(name: str) -> bool:
            return bool(get_capability(said, name, False))

        resolved = get_capability(said, "text_document.code_action.resolve_support.properties", []) or []
        return cls(
            pulls=get_capability(said, "text_document.diagnostic") is not None,
            refreshes_diagnostics=has("workspace.diagnostics.refresh_support"),
            refreshes_hints=has("workspace.inlay_hint.refresh_support"),
            watches=has("workspace.did_change_watched_files.dynamic_registration"),
            versioned_edits=has("workspace.workspace_edit.document_changes"),
            resolves_edits="edit" in resolved,
            shows_progress=has("window.work_done_progress"),
            shows_documents=has("window.show_document.support"),
        )
