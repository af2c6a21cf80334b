"""Every edit that a fix makes: its own, and those at the top of the file for what it needs there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deadlint.model import Edit, Fix

if TYPE_CHECKING:
    from deadlint.report.source_text import SourceText


def whole_fix(fix: Fix, text: SourceText) -> tuple[Edit, ...] | None:
    """The edits in the order of the source; None where it does not parse, so that they cannot be told."""
    edits = fix.edits
    if fix.imports or fix.constants:
        # Only here: it brings in the index, which a run that was answered by the cache has no other use for.
        from deadlint import header  # noqa: PLC0415
        from deadlint.source import SourceFile  # noqa: PLC0415

        try:
            tree = text.tree
        except (SyntaxError, ValueError, RecursionError):
            return None
        edits = (*header.edits(SourceFile("", text.text), tree, fix.imports, fix.constants), *edits)
    return tuple(sorted(edits, key=lambda edit: (edit.start, edit.end)))
