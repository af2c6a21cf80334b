"""The texts that the editor holds, saved or not, each with its version."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from lsprotocol import types
from pygls.uris import to_fs_path

from deadlint.server.positions import UTF16, Positions


@dataclass(frozen=True)
class Buffer:
    """One version of an open document. `path` is absolute, also of a document that has no file."""

    uri: str
    path: str
    version: int
    text: str
    units: str = UTF16

    @cached_property
    def positions(self) -> Positions:
        """Places in the text."""
        return Positions(self.text, self.units)

    def after(self, changes: Sequence[types.TextDocumentContentChangeEvent], version: int) -> Buffer:
        """The buffer after changes, each of which counts in the text that the one before it left."""
        text = self.text
        for change in changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                places = Positions(text, self.units)
                start, end = places.offset(change.range.start), places.offset(change.range.end)
                text = text[:start] + change.text + text[max(start, end) :]
            else:
                text = change.text
        return replace(self, text=text, version=version)


@dataclass(slots=True)
class Buffers:
    """The open documents. `texts` is what the project sees of them in place of the files."""

    units: str = UTF16
    texts: dict[str, str] = field(default_factory=dict)
    _open: dict[str, Buffer] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Buffer]:
        return iter(tuple(self._open.values()))

    def get(self, uri: str) -> Buffer | None:
        """The document as it is now; None where it is not open."""
        return self._open.get(uri)

    def at(self, path: str) -> Buffer | None:
        """The open document of a file; None where there is none."""
        return next((one for one in self if one.path == path), None)

    def is_current(self, buffer: Buffer) -> bool:
        """Whether a document is still open in this version."""
        return self._open.get(buffer.uri) is buffer

    def open(self, document: types.TextDocumentItem, folder: str) -> Buffer:
        """Take a document; one that has no file counts as one in `folder`."""
        path = path_of(document.uri, folder)
        buffer = Buffer(document.uri, path, document.version, document.text, self.units)
        self._put(buffer)
        return buffer

    def change(self, params: types.DidChangeTextDocumentParams) -> Buffer | None:
        """Apply changes; None where the document is not open."""
        before = self._open.get(params.text_document.uri)
        if before is None:
            return None
        buffer = before.after(params.content_changes, params.text_document.version)
        self._put(buffer)
        return buffer

    def close(self, uri: str) -> Buffer | None:
        """Forget a document; what it was."""
        buffer = self._open.pop(uri, None)
        if buffer is not None:
            self.texts.pop(buffer.path, None)
        return buffer

    def _put(self, buffer: Buffer) -> None:
        self._open[buffer.uri] = buffer
        self.texts[buffer.path] = buffer.text


def path_of(uri: str, folder: str) -> str:
    """The absolute path of a document; in `folder` for one that has no file yet."""
    path = to_fs_path(uri) if uri.startswith("file:") else None
    if path is not None:
        return os.path.abspath(path)
    name = "".join(character if character.isalnum() or character in "-_." else "_" for character in uri)
    return os.path.join(folder, name if name.endswith(".py") else f"{name}.py")
