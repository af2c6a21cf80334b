"""Places in any file, as the protocol writes them: of open documents as they are in the editor, of others on disk."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from lsprotocol import types
from pygls.uris import from_fs_path

from deadlint.model import Span
from deadlint.server.positions import Positions
from deadlint.source import SourceFile, UnreadableSource


@dataclass(slots=True)
class Places:
    """The texts that places count in, each read once."""

    texts: Mapping[str, str]
    units: str
    uris: Mapping[str, str] = field(default_factory=dict)  # of open documents, by path
    _known: dict[str, Positions] = field(default_factory=dict)

    def range(self, path: str, span: Span) -> types.Range:
        """The range of a span in a file."""
        return self._positions(os.path.abspath(path)).of_span(span)

    def location(self, path: str, span: Span) -> types.Location:
        """A span in a file."""
        return types.Location(self.uri(path), self.range(path, span))

    def uri(self, path: str) -> str:
        """The address of a file, as the editor has it."""
        absolute = os.path.abspath(path)
        return self.uris.get(absolute) or from_fs_path(absolute) or ""

    def link(self, path: str, span: Span) -> str:
        """The address of a place, with its line and column in the fragment that editors read."""
        return f"{self.uri(path)}#L{span.line},{span.column}"

    def _positions(self, path: str) -> Positions:
        known = self._known.get(path)
        if known is None:
            text = self.texts.get(path)
            if text is None:
                try:
                    text = SourceFile.read(path).text
                except (OSError, UnreadableSource):
                    text = ""
            known = self._known[path] = Positions(text, self.units)
        return known
