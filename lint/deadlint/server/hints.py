"""Inlay hints: the limit that really holds where that is not what stands there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lsprotocol import types

from deadlint.server.effective import Held, name_of, seconds
from deadlint.server.hover import held_text
from deadlint.server.places import Places
from deadlint.server.positions import overlaps


def hints(held: Sequence[Held], within: types.Range, here: str, places: Places) -> Iterator[types.InlayHint]:
    """The hints in a range of the file at `here`."""
    for one in held:
        effective = one.effective
        if effective is None or (effective.limit == one.own and one.written):
            continue
        where = places.range(here, one.span)
        if not overlaps(where, within):
            continue
        length = seconds(effective.limit.seconds or 0.0)
        via = "" if effective.limit == one.own else f" via {name_of(effective.limit)}"
        label = types.InlayHintLabelPart(
            value=f"≤ {length}{via}", location=places.location(effective.limit.path, effective.limit.span)
        )
        yield types.InlayHint(
            position=where.end,
            label=[label],
            tooltip=types.MarkupContent(types.MarkupKind.Markdown, held_text(one, places)),
            padding_left=True,
        )
