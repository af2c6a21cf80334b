"""A text in a syntax that is newer than the running Python, as LibCST reads it, put into an older one.

What is new (type statements, type parameters, f-strings that hold their own quotes, template strings) is replaced by
something older of the same length, so that every place stays where it is.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from deadlint.source import SourceFile


def older_syntax(text: str) -> str | None:
    """`text` in older syntax, character for character; None where LibCST cannot read it either."""
    try:
        wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    except (cst.ParserSyntaxError, RecursionError):
        return None
    collector = _Newer()
    wrapper.visit(collector)
    source = SourceFile("", text)
    pieces, position = [], 0
    for start, end, kind in sorted(collector.replaced(source)):
        if start < position:
            continue  # within what is replaced already
        pieces += [text[position:start], _replacement(text[start:end], kind)]
        position = end
    return "".join([*pieces, text[position:]])


def _replacement(old: str, kind: str) -> str:
    """Something older of the same length and lines."""
    match kind:
        case "string" if len(old) >= 3:
            return _keeping_newlines("''", old)
        case "type":
            head, _, value = old.partition("=")
            name = head.removeprefix("type").partition("[")[0].strip()
            return f"{name:<{len(head)}}={value}"
    return "".join(character if character in "\r\n" else " " for character in old)


def _keeping_newlines(text: str, old: str) -> str:
    """`text`, filled up to the length of `old`; in brackets where `old` spans lines."""
    if "\n" not in old:
        return text + " " * (len(old) - len(text))
    blank = "".join(character if character in "\r\n" else " " for character in old)
    return f"({text}{blank[3:-1]})" if len(blank) > 3 and "\n" not in old[:3] else blank


class _Newer(cst.CSTVisitor):
    """Collects the places of newer syntax."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self) -> None:
        super().__init__()
        self._found: list[tuple[CodeRange, str]] = []

    def _note(self, node: cst.CSTNode, kind: str) -> None:
        place = self.get_metadata(PositionProvider, node)
        assert isinstance(place, CodeRange)
        self._found.append((place, kind))

    def visit_TypeAlias(self, node: cst.TypeAlias) -> None:
        self._note(node, "type")

    def visit_TypeParameters(self, node: cst.TypeParameters) -> None:
        self._note(node, "blank")

    def visit_FormattedString(self, node: cst.FormattedString) -> None:
        self._note(node, "string")

    def visit_TemplatedString(self, node: cst.CSTNode) -> None:
        self._note(node, "string")

    def replaced(self, source: SourceFile) -> Iterator[tuple[int, int, str]]:
        """Start and end offset of each place, and what it is. LibCST counts columns in characters."""
        for place, kind in self._found:
            start = source.line_starts[place.start.line - 1] + place.start.column
            end = source.line_starts[place.end.line - 1] + place.end.column
            yield start, end, kind
